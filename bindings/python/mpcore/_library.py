"""Finds and loads libmpcore.so; turns a status into an exception."""

from __future__ import annotations

import ctypes
import enum
import os
import pathlib
from typing import Any, Optional, Type, TypeVar, Union

from . import _sys

SONAME = f"libmpcore.so.{_sys.MP_VERSION_MAJOR}"


class Error(RuntimeError):
    """A call failed: `status` says how, the text is mp_last_error(), which names the argument."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


def candidates() -> list:
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


def load() -> ctypes.CDLL:
    path = candidates()[0]
    try:
        library = ctypes.CDLL(path)
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


class Handle:
    """What has a handle of the library.  Closing is optional: it happens when the object goes."""

    _destroy = ""
    _handle: Optional[int] = None

    @property
    def handle(self) -> int:
        """For mpcore._sys."""
        if self._handle is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle:
            getattr(lib, self._destroy)(handle)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


E = TypeVar("E", bound=enum.IntEnum)


def enumerator(kind: Type[E], value: Union[int, str, E]) -> E:
    """The value, or the one whose name ends so: "relu" is MP_ACT_RELU."""
    if not isinstance(value, str):
        return kind(value)
    wanted = value.upper()
    prefix = os.path.commonprefix([member.name for member in kind])
    prefix = prefix[:prefix.rfind("_") + 1]
    for member in kind:
        if member.name in (wanted, prefix + wanted):
            return member
    known = ", ".join(member.name[len(prefix):].lower() for member in kind)
    raise ValueError(f"{value!r} is none of {known}")


def flags(kind: Type[enum.IntFlag], value) -> int:
    """An integer, a name, or several names."""
    if isinstance(value, int):
        return int(value)
    names = [value] if isinstance(value, str) else value
    return sum({int(enumerator(kind, name)) for name in names})


def fill(struct, fields: dict):
    """Set fields by name; TypeError for a name that the struct does not have, ValueError for an integer
    that ctypes would cut."""
    known = {name for name, *_ in struct._fields_}
    for name, value in fields.items():
        if name not in known or name in ("struct_size", "reserved0"):
            raise TypeError(f"{type(struct).__name__} has no {name!r}; it has {', '.join(sorted(known))}")
        setattr(struct, name, value)
        got = getattr(struct, name)
        if isinstance(value, int) and isinstance(got, int) and got != value:
            raise ValueError(f"{name} = {value} is beyond the range of its type")
    return struct
