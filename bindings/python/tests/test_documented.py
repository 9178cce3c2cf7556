"""Every public name has a docstring and type annotations."""
import inspect

import mpcore
from mpcore import _sys


def members(kind: type) -> dict:
    """Public functions that a class defines itself, by "class.member"."""
    unwrapped = {name: getattr(thing, "fget", getattr(thing, "__func__", thing))
                 for name, thing in vars(kind).items()}
    return {f"{kind.__name__}.{name}": function for name, function in unwrapped.items()
            if inspect.isfunction(function) and not name.startswith("_")}


PUBLIC = {name: getattr(mpcore, name) for name in mpcore.__all__}
CLASSES = [thing for thing in PUBLIC.values() if inspect.isclass(thing)]
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(thing)}
for base in {base for kind in CLASSES for base in kind.__mro__ if base.__module__.startswith("mpcore.")}:
    FUNCTIONS.update(members(base))


def gaps(name: str, function) -> list:
    """Missing annotations and a missing docstring of a function."""
    signature = inspect.signature(function)
    found = [f"{name}: {parameter.name} has no type" for parameter in signature.parameters.values()
             if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")]
    if signature.return_annotation is signature.empty:
        found.append(f"{name}: its result has no type")
    return found if inspect.getdoc(function) else [*found, f"{name}: no text"]


def test_public_names_are_classes_functions_and_the_library():
    assert [name for name in PUBLIC if name not in FUNCTIONS and PUBLIC[name] not in CLASSES] == ["lib"]
    assert isinstance(mpcore.lib, _sys.Library)


def test_functions_are_documented():
    assert len(FUNCTIONS) > 100
    assert not [gap for name, function in FUNCTIONS.items() for gap in gaps(name, function)]


def test_classes_are_documented():
    """A constructor has the docstring of its class, and needs no return annotation."""
    assert not [kind.__name__ for kind in CLASSES if not kind.__doc__]
    # Excludes NamedTuple.
    constructed = [kind for kind in CLASSES if inspect.isfunction(kind.__init__)]
    found = [gap for kind in constructed for gap in gaps(kind.__name__, kind.__init__)]
    assert not [gap for gap in found if not gap.endswith((": its result has no type", ": no text"))]


def test_injected_gaps_are_found():
    def bare(context, x: int):
        return context, x
    assert gaps("bare", bare) == ["bare: context has no type", "bare: its result has no type", "bare: no text"]
