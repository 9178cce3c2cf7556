"""Every public name has a docstring; test_mypy.py checks that types are annotated."""
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


def test_public_names_are_classes_functions_and_the_library():
    assert [name for name in PUBLIC if name not in FUNCTIONS and PUBLIC[name] not in CLASSES] == ["lib"]
    assert isinstance(mpcore.lib, _sys.Library)


def test_functions_and_classes_are_documented():
    assert len(FUNCTIONS) > 100
    assert not [name for name, function in FUNCTIONS.items() if not inspect.getdoc(function)]
    assert not [kind.__name__ for kind in CLASSES if not kind.__doc__]
