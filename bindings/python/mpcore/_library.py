"""Finds and loads libmpcore.so; turns a status into an exception."""

from __future__ import annotations

import ctypes
import enum
import operator
import os
import pathlib
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type, TypeVar, Union

from . import _sys

SONAME = f"libmpcore.so.{_sys.MP_VERSION_MAJOR}"


class Error(RuntimeError):
    """A call failed: `status` says how, the text is mp_last_error(), which names the argument."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def candidates() -> List[str]:
    """MPCORE_LIBRARY (a file), MPCORE_DIR (where the library or its lib/ is), the copy in the wheel,
    and last what the loader knows."""
    if "MPCORE_LIBRARY" in os.environ:
        return [os.environ["MPCORE_LIBRARY"]]
    if "MPCORE_DIR" in os.environ:
        folder = pathlib.Path(os.environ["MPCORE_DIR"])
        return [str(path) for path in (folder / "lib" / SONAME, folder / SONAME) if path.exists()] or [
            str(folder / SONAME)]
    inside = pathlib.Path(__file__).with_name(SONAME)
    return [str(inside)] if inside.exists() else [SONAME]


def load() -> _sys.Library:
    path = candidates()[0]
    try:
        library = _sys.Library(path)
    except OSError as error:
        raise ImportError(f"mpcore: {error}; MPCORE_DIR names the folder of the library") from None
    try:
        return _sys.declare(library)
    except AttributeError as error:
        raise ImportError(f"mpcore: {path} is another version than this package: {error}") from None


lib = load()


def last_error() -> str:
    return lib.mp_last_error().decode(errors="replace")


def check(status: int) -> None:
    """Raise Error unless the status is MP_SUCCESS."""
    if status != _sys.MP_SUCCESS:
        raise Error(status, last_error())


class Addressed:
    """What stands for an address.  A copy would have the same one, and free it again or outlive what is there."""

    _instead = "make another one"

    def __reduce_ex__(self, protocol: Any) -> Any:  # of copy, deepcopy and pickle alike
        name = type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise TypeError(f"{article} {name} can neither be copied nor pickled: {self._instead}")


class Native(int):
    """A handle or an address, freed with the last reference to it: a holder keeps the number itself."""

    @classmethod
    def own(cls, number: int, free: Optional[Callable[[int], Any]], needs: Sequence["Native"] = (),
            kept: Any = None) -> "Native":
        """free  is called with the number; None: it is part of what `needs` has
        needs  are freed after it, even if the garbage collector finds them together
        kept   lives as long"""
        self = cls(number)
        self._free, self._needs, self.kept = [free], needs, kept
        self._is_dead, self._users = False, set()
        for native in needs:
            native._users.add(id(self))
        return self

    _free: List[Optional[Callable[[int], Any]]]
    _needs: Sequence["Native"]
    _users: Set[int]
    kept: Any

    def __del__(self) -> None:
        self._is_dead = True
        self._free_unused()

    def _free_unused(self) -> None:
        if not self._is_dead or self._users or not self._free:
            return
        free = self._free.pop()
        if free is not None:
            free(int(self))
        for native in self._needs:
            native._users.discard(id(self))
            native._free_unused()


class Owner(Addressed):
    """Holds a Native until it is closed."""

    _is_closed = False
    _is_lent = False  # numpy, torch or cupy may look into its memory

    def close(self) -> None:
        """Release the object, which is unusable from here on.  Its memory is freed now, or when the last user
        has gone: a list, an optimizer, a graph, or an array of numpy, torch or cupy."""
        self._is_closed = True
        if not self._is_lent:
            self._give_back()

    def _give_back(self) -> None:
        raise NotImplementedError

    def __del__(self) -> None:
        self._give_back()


class Handle(Owner):
    """What has a handle of the library."""

    _destroy = ""
    _handle: Optional[Native] = None

    @property
    def handle(self) -> Native:
        """For mpcore._sys."""
        if self._handle is None or self._is_closed:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    def _own(self, handle: ctypes.c_void_p, needs: Sequence[Native] = (), kept: Any = None) -> None:
        self._handle = Native.own(handle.value or 0, getattr(lib, self._destroy), needs, kept)

    def _give_back(self) -> None:
        self._handle = None

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


# ---------------------------------------------------------------------------- arguments


E = TypeVar("E", bound=enum.Enum)


def enumerator(kind: Type[E], value: Union[int, str, E], argument: str) -> E:
    """The value, or the one whose name ends so: "relu" is MP_ACT_RELU.  `argument` is what the caller calls it."""
    prefix = os.path.commonprefix([member.name for member in kind])
    prefix = prefix[:prefix.rfind("_") + 1]
    if isinstance(value, str):
        wanted = value.upper()
        for member in kind:
            if member.name in (wanted, prefix + wanted):
                return member
    else:
        try:
            return kind(value)
        except ValueError:
            pass
    known = ", ".join(member.name[len(prefix):].lower() for member in kind)
    raise ValueError(f"{argument} = {value!r} is not one of: {known}")


def flags(kind: Type[enum.IntFlag], value: Any, argument: str) -> int:
    """An integer, a name, or several names."""
    if is_integer(value):
        return operator.index(value)
    names = [value] if isinstance(value, str) else value
    return sum({int(enumerator(kind, name, argument)) for name in names})


def is_integer(value: Any) -> bool:
    """Whether it is one number, of Python, numpy, torch or whoever says that it is whole."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def integers(value: Any, argument: str) -> Tuple[int, ...]:
    """Those of a sequence, or one alone."""
    try:
        return tuple(operator.index(number) for number in ([value] if is_integer(value) else value))
    except TypeError:
        raise TypeError(f"{argument} = {value!r} is neither an integer nor a sequence of integers") from None


def array_of(name: str, kind: Any, values: Sequence[Any]) -> Any:
    """An array of ctypes, which would cut integers beyond the range of its type."""
    try:
        array = (kind * len(values))(*values)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    if kind is not ctypes.c_float and list(array) != list(values):
        i = next(i for i, (got, value) in enumerate(zip(array, values)) if got != value)
        raise ValueError(f"{name}[{i}] = {values[i]} is beyond the range of its type")
    return array


def fill(struct: Any, fields: Dict[str, Any]) -> Any:
    """Set fields by name; TypeError for a name that the struct does not have and for a value of another type,
    ValueError for an integer beyond the range of its type."""
    known = {name for name, *_ in struct._fields_}
    for name, value in fields.items():
        if name not in known or name in ("struct_size", "reserved0"):
            raise TypeError(f"{type(struct).__name__} has no {name!r}; it has {', '.join(sorted(known))}")
        try:
            setattr(struct, name, value)
        except TypeError as error:
            raise TypeError(f"{name} = {value!r}: {error}") from None
    return struct
