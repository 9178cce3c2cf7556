"""Finds and loads libmpcore.so, and converts status codes to exceptions."""

from __future__ import annotations

import ctypes
import enum
import operator
import os
import pathlib
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type, TypeVar, Union

from . import _abi, _sys

SONAME = f"libmpcore.so.{_sys.MP_VERSION_MAJOR}"


class Error(RuntimeError):
    """A failed call of the library.  `status` is an mp_status_t; the message names the argument."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def candidates() -> List[str]:
    """Returns the paths to try: MPCORE_LIBRARY (a file), MPCORE_DIR (the folder of the library or
    the parent of its lib/), the copy in the wheel, or the search path of the loader."""
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
        raise ImportError(f"mpcore: {error}; set MPCORE_DIR to the folder of the library") from None
    try:
        return _sys.declare(library)
    except AttributeError as error:
        raise ImportError(f"mpcore: {path} does not match the version of this package: {error}") from None


lib = load()


def last_error() -> str:
    return lib.mp_last_error().decode(errors="replace")


def check(status: int) -> None:
    """Raises Error unless the status is MP_SUCCESS."""
    if status != _sys.MP_SUCCESS:
        raise Error(status, last_error())


class Addressed:
    """Base of objects that hold an address.  A copy would free the address twice or outlive the
    memory."""

    _instead = "create another one"

    def __reduce_ex__(self, protocol: Any) -> Any:  # called by copy, deepcopy and pickle
        name = type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise TypeError(f"{article} {name} cannot be copied or pickled: {self._instead}")


class Native(int):
    """A handle or an address that is freed with its last reference.  Holders keep the Native
    itself."""

    @classmethod
    def own(cls, number: int, free: Optional[Callable[[int], Any]], needs: Sequence["Native"] = (),
            kept: Any = None) -> "Native":
        """Creates an owner of `number`.

        free   called with the number; None: the number is part of an object in `needs`
        needs  freed after this object, even if the garbage collector finds them together
        kept   kept alive as long as this object
        """
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
    _is_lent = False  # arrays of numpy, torch or cupy may share its memory

    def close(self) -> None:
        """Closes the object, which cannot be used afterwards.  Its memory is freed when no list,
        optimizer, graph, or array of numpy, torch or cupy uses it any longer."""
        self._is_closed = True
        if not self._is_lent:
            self._give_back()

    def _give_back(self) -> None:
        raise NotImplementedError

    def __del__(self) -> None:
        self._give_back()


class Handle(Owner):
    """Base of objects with a handle of the library."""

    _destroy = ""
    _handle: Optional[Native] = None

    @property
    def handle(self) -> Native:
        """The handle, for functions of mpcore._sys."""
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
    """Returns the enumerator of a value or of a name without prefix: "relu" is MP_ACT_RELU.  Errors
    name `argument`."""
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
    raise ValueError(f"{argument} = {value!r} must be one of: {known}")


def flags(kind: Type[enum.IntFlag], value: Any, argument: str) -> int:
    """Returns the flags given by an integer, a name, or several names."""
    if is_integer(value):
        return operator.index(value)
    names = [value] if isinstance(value, str) else value
    return sum({int(enumerator(kind, name, argument)) for name in names})


def is_integer(value: Any) -> bool:
    """Returns whether the value is a single integer, of any type with __index__ (Python, numpy,
    torch)."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def integers(value: Any, argument: str) -> Tuple[int, ...]:
    """Returns the integers of a sequence, or a single integer as a tuple."""
    try:
        return tuple(operator.index(number) for number in ([value] if is_integer(value) else value))
    except TypeError:
        raise TypeError(f"{argument} = {value!r} must be an integer or a sequence of integers") from None


def array_of(name: str, kind: Any, values: Sequence[Any]) -> Any:
    """Returns a ctypes array; raises ValueError for integers that ctypes would truncate."""
    try:
        array = (kind * len(values))(*values)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    if kind is not ctypes.c_float and list(array) != list(values):
        i = next(i for i, (got, value) in enumerate(zip(array, values)) if got != value)
        raise _abi.range_error(f"{name}[{i}]", values[i], kind)
    return array


def read_text(write: Any) -> str:
    """Returns the text that a function writes; the first call returns its size."""
    size = ctypes.c_size_t()
    check(write(None, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(write(text, ctypes.byref(size)))
    return text.value.decode(errors="replace")


def fill(struct: Any, fields: Dict[str, Any]) -> Any:
    """Sets fields by name.  Raises TypeError for an unknown name or a value of the wrong type, and
    ValueError for an integer beyond the range of its type."""
    known = {name for name, *_ in struct._fields_}
    for name, value in fields.items():
        if name not in known or name in ("struct_size", "reserved0"):
            raise TypeError(f"{name} is not a field of {type(struct).__name__}; must be one of: {', '.join(sorted(known))}")
        try:
            setattr(struct, name, value)
        except TypeError as error:
            raise TypeError(f"{name} = {value!r}: {error}") from None
    return struct
