"""Types and checks of the raw bindings in _sys.py, which bindings/generate/generate writes."""

from __future__ import annotations

import ctypes
import operator
import threading
from ctypes import (CFUNCTYPE, POINTER, c_char_p, c_double, c_float, c_int, c_int8, c_int16, c_int32, c_int64, c_size_t,
                    c_uint8, c_uint16, c_uint32, c_uint64, c_void_p)
from typing import Any, Dict, Optional, Tuple, TypeVar, Union

Handle = Union[int, c_void_p, None]
Pointer = Any  # an integer, None, ctypes.byref(x), an array
T = TypeVar("T")
To = Union[Any, T]  # pointer to T
Text = Optional[bytes]
Address = Optional[int]
double = float
uint8_t = int
int32_t = int
uint32_t = int
int64_t = int
size_t = int


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or hasattr(value, "__index__")


class Structure(ctypes.Structure):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if _is_whole(value):
            got = getattr(self, name)  # ctypes truncates silently
            if isinstance(got, int) and got != operator.index(value):
                raise range_error(name, value, next(kind for field, kind, *_ in self._fields_ if field == name))


def fields(*groups: Tuple[Any, str]) -> Any:
    """Returns (name, type) pairs for groups of names with one type."""
    return [(name, kind) for kind, names in groups for name in names.split()]


class Sized(Structure):
    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


S = TypeVar("S", bound=Structure)


def made(init: Any, struct: S, *arguments: Any) -> S:
    """Returns the struct after the library has initialized it."""
    init(struct, ctypes.sizeof(struct), *arguments)
    return struct


_raised = threading.local()  # .error: exception of a callback during the current call


def callback(result: Any, *arguments: Any) -> Any:
    """Returns a CFUNCTYPE whose Python functions may raise."""
    base: Any = CFUNCTYPE(result, *arguments)
    failure = None if result is c_void_p else -1

    def new(cls: Any, *source: Any) -> Any:
        if not (source and callable(source[0])):
            return base.__new__(cls, *source)

        def guarded(*values: Any) -> Any:
            try:
                return source[0](*values)
            except BaseException as error:  # _checked() raises it
                _raised.__dict__.setdefault("error", error)
                return failure

        return base.__new__(cls, guarded)

    return type("Callback", (base,), {"__new__": new, "_flags_": base._flags_, "_restype_": base._restype_,
                                      "_argtypes_": base._argtypes_})


def _range(kind: Any) -> Optional[Tuple[int, int]]:
    """Returns the bounds of an integer or pointer type, None for other types."""
    if kind not in (c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p):
        return None
    count = 2 ** (8 * ctypes.sizeof(kind))
    return (-count // 2, count // 2 - 1) if kind(-1).value == -1 else (0, count - 1)


def range_error(name: str, value: Any, kind: Any) -> ValueError:
    """Returns the error for an integer that ctypes would truncate."""
    low, high = _range(kind) or (0, 0)
    return ValueError(f"{name} = {value} must be from {low} to {high}")


def _checked(function: Any, arguments: Dict[str, Any]) -> Any:
    """Wraps a function to raise ValueError for integers that ctypes would truncate."""
    ranges = [(i, name, _range(kind)) for i, (name, kind) in enumerate(arguments.items())]
    bounds = [(i, name, *limits) for i, name, limits in ranges if limits is not None]

    def call(*values: Any) -> Any:
        if len(values) == len(arguments):
            for i, name, low, high in bounds:
                if _is_whole(values[i]) and not low <= operator.index(values[i]) <= high:
                    raise ValueError(f"{name} = {values[i]} must be from {low} to {high}")
        result = function(*values)
        error = _raised.__dict__.pop("error", None)
        if error is not None:
            raise error
        return result

    return call


class _Pointers:
    def __class_getitem__(cls, kind: Any) -> Any:
        return POINTER(kind)


class _Annotated:
    def __class_getitem__(cls, kinds: Any) -> Any:
        return kinds[1]


# Types of C for the hints of Library.
C_TYPES = dict(Handle=c_void_p, Pointer=c_void_p, Address=c_void_p, Text=c_char_p, bytes=c_char_p, To=_Pointers,
               Annotated=_Annotated, int=c_int, float=c_float, double=c_double, uint8_t=c_uint8,
               int32_t=c_int32, uint32_t=c_uint32, int64_t=c_int64, size_t=c_size_t)


L = TypeVar("L", bound=ctypes.CDLL)


def declared(library: L, methods: type, names: Dict[str, Any]) -> L:
    """Replaces the methods, whose hints use these names, by functions of the library with their
    types.  Raises AttributeError if the library lacks one."""
    types: Dict[str, Any] = {}

    def c_type(hint: str) -> Any:
        if hint not in types:
            types[hint] = eval(hint, names, C_TYPES)
        return types[hint]

    for name, method in vars(methods).items():
        if name.startswith("mp_"):
            function = library[name]
            arguments = {argument: c_type(hint) for argument, hint in method.__annotations__.items()}
            function.restype = arguments.pop("return")
            function.argtypes = list(arguments.values())
            setattr(library, name, _checked(function, arguments))
    return library
