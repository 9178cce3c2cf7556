"""bindings/python/mpcore/_sys.py: the header in ctypes, names unchanged."""

import keyword

from .header import Callback, Model

TYPES = {
    "char": "c_char", "int": "c_int", "float": "c_float", "double": "c_double", "int8_t": "c_int8",
    "uint8_t": "c_uint8", "int16_t": "c_int16", "uint16_t": "c_uint16", "int32_t": "c_int32",
    "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64", "size_t": "c_size_t",
}

PROLOGUE = '''\
# Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.
"""The C ABI as it is: names, structs and constants of mpcore.h, through ctypes.

Pointers to plain data, handles and streams are c_void_p: an integer, None or ctypes.byref(x).
Functions are those of Library, which mpcore.lib is; they return a status, which the package's own layer checks.
Integers beyond the range of their C type raise ValueError.  An exception in a callback that returns something ends
the call that it was called from: the callback returns -1 or NULL, and the call raises the exception."""

from __future__ import annotations

import ctypes
import enum
import operator
import threading
from ctypes import (CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_float, c_int, c_int8,
                    c_int16, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64,
                    c_void_p)
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple, Union

Handle = Union[int, c_void_p, None]
Pointer = Any  # what ctypes takes for one: an integer, None, ctypes.byref(x), an array


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or hasattr(value, "__index__")


class Structure(ctypes.Structure):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if _is_whole(value):
            got = getattr(self, name)  # ctypes cuts
            if isinstance(got, int) and got != operator.index(value):
                raise ValueError(f"{name} = {value} is beyond the range of its type")


_raised = threading.local()  # error: of a callback of the call that this thread is in


def _callback(result: Any, *arguments: Any) -> Any:
    """CFUNCTYPE, of which a function of Python may raise."""
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
    """Bounds of an integer or a pointer; None for other types."""
    if kind not in (c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p):
        return None
    count = 2 ** (8 * ctypes.sizeof(kind))
    return (-count // 2, count // 2 - 1) if kind(-1).value == -1 else (0, count - 1)


def _checked(function: Any, arguments: Dict[str, Any]) -> Any:
    """The function, with ValueError for integers that ctypes would cut."""
    ranges = [(i, name, _range(kind)) for i, (name, kind) in enumerate(arguments.items())]
    bounds = [(i, name, *limits) for i, name, limits in ranges if limits is not None]

    def call(*values: Any) -> Any:
        if len(values) == len(arguments):
            for i, name, low, high in bounds:
                if _is_whole(values[i]) and not low <= operator.index(values[i]) <= high:
                    raise ValueError(f"{name} = {values[i]} is beyond the range of its type")
        result = function(*values)
        error = _raised.__dict__.pop("error", None)
        if error is not None:
            raise error
        return result

    return call


'''


def word(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def docstring(text: str, indent: str = "    ") -> str:
    """Of what stands above it; behind a name, tools take it for the description of that name."""
    if not text:
        return ""
    lines = text.replace("\\", "\\\\").replace('"""', "'''").split("\n")
    if lines[-1].endswith('"'):
        lines[-1] += " "
    body = ("\n" + indent).join(lines)
    return "\n".join(line.rstrip() for line in f'{indent}"""{body}"""'.split("\n")) + "\n"


def type_name(kind, model: Model) -> str:
    if isinstance(kind, Callback):
        types = [type_name(kind.result, model)] + [type_name(p.type, model) for p in kind.params]
        return f"{'CFUNCTYPE' if types[0] == 'None' else '_callback'}({', '.join(types)})"
    if not kind.pointers:
        if kind.base == "void":
            return "None"
        if model.enum(kind.base):
            return "c_uint32"
        if model.is_handle(kind.base):
            return "c_void_p"
        return TYPES.get(kind.base, kind.base)
    if model.is_described(kind):
        return f"POINTER({kind.base})"
    if kind.base == "char":
        return "c_char_p" if len(kind.pointers) == 1 else "POINTER(c_char_p)"
    if len(kind.pointers) == 1 and model.is_handle(kind.base):
        return "POINTER(c_void_p)"
    if len(kind.pointers) == 2 and not kind.pointers[0]:
        return "POINTER(c_void_p)"
    return "c_void_p"


def hint(kind, model: Model) -> str:
    """What a type checker takes for it: an argument, a result or a field of a struct."""
    if isinstance(kind, Callback) or model.callback(kind.base):
        return "Any"
    if not kind.pointers:
        if kind.base in ("float", "double"):
            return "float"
        if model.is_handle(kind.base):
            return "Handle"
        return {"void": "None", "char": "bytes"}.get(kind.base, kind.base if model.struct(kind.base) else "int")
    return "Optional[bytes]" if kind.base == "char" and len(kind.pointers) == 1 and kind.const_base else "Pointer"


def enum_class(e) -> str:
    base = "IntFlag" if e.name.endswith("_flags_t") else "IntEnum"
    out = f"\n\nclass {e.name}(enum.{base}):\n" + docstring(e.doc) + ("\n" if e.doc else "")
    for name, value, text in e.values:
        out += f"    {name} = {value}\n" + docstring(text)
    out += "\n\n" + "".join(f"{name} = {e.name}.{name}\n" for name, _, _ in e.values)
    return out


def struct(s, model: Model) -> str:
    base = "_Sized" if s.fields[0].name == "struct_size" else "Structure"
    out = f"\n\nclass {s.name}({base}):\n" + docstring(s.doc) + ("\n" if s.doc else "")
    out += "    _fields_ = [\n"
    for f in s.fields:
        kind = type_name(f.type, model) + (f" * {f.array}" if f.array else "")
        out += f'        ("{f.name}", {kind}),\n'
    return out + "    ]\n" + "".join(field(f, model) for f in s.fields)


def field(f, model: Model) -> str:
    """A field of _fields_ for readers and type checkers.  One that is a keyword, from, can only be read by getattr."""
    if keyword.iskeyword(f.name):
        return ""
    is_array = f.array and f.type.base != "char"
    kind = f"ctypes.Array[{type_name(f.type, model)}]" if is_array else hint(f.type, model)
    return f"    {f.name}: {kind}\n" + docstring(f.doc)


# ---------------------------------------------------------------- inline functions


def inline(f, model: Model) -> str:
    params = ", ".join(f"{word(p.name)}: {p.type.base if p.type.pointers else hint(p.type, model)}" for p in f.params)
    arguments = "".join(f", {word(p.name)}" for p in f.params)
    return (f"\n\ndef {f.name}({params}) -> {f.result.base}:\n" + docstring(f.doc) +
            f"    value = {f.result.base}()\n"
            f"    _library.{f.init}(value, ctypes.sizeof(value){arguments})\n"
            f"    return value\n")


# ---------------------------------------------------------------- the file


def function(f, model: Model) -> str:
    arguments = ", ".join(f'"{p.name}": {type_name(p.type, model)}' for p in f.params)
    return f'    "{f.name}": ({type_name(f.result, model)}, {{{arguments}}}),\n'


def method(f, model: Model) -> str:
    """What a type checker and an editor show of the function, which takes its arguments by position."""
    params = ", ".join(["self"] + [f"{word(p.name)}: {hint(p.type, model)}" for p in f.params] + ["/"])
    result = type_name(f.result, model)
    result = {"c_char_p": "bytes", "c_void_p": "Optional[int]"}.get(result) or hint(f.result, model)
    body = docstring(f.doc, " " * 12) or " " * 12 + "...\n"
    return f"        def {f.name}({params}) -> {result}:\n{body}\n"


def library(model: Model) -> str:
    out = '''

class Library(ctypes.CDLL):
    """The shared library, each function with its types once declare() has seen it."""

    if TYPE_CHECKING:  # ctypes makes them when they are asked for

'''
    return (out + "".join(method(f, model) for f in model.functions)).rstrip("\n") + "\n"


def sys(model: Model) -> str:
    out = PROLOGUE
    for c in model.constants:
        out += f"{c.name} = {c.value}\n" + docstring(c.doc, "")
    for e in model.enums:
        out += enum_class(e)
    out += "\n\n"
    for name, callback, text in model.callbacks:
        out += f"{name} = {type_name(callback, model)}\n" + docstring(text, "")
    out += '''

class _Sized(Structure):
    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)
'''
    for s in model.structs:
        out += struct(s, model)
    for f in model.inlines:
        out += inline(f, model)
    out += library(model)
    out += "\n\n# name: (result, types of its arguments)\nFUNCTIONS: Dict[str, Tuple[Any, Dict[str, Any]]] = {\n"
    out += "".join(function(f, model) for f in model.functions) + "}\n"
    out += '''
_library: Library  # of the functions above, once it is declared


def declare(library: Library) -> Library:
    """Give every function of the library its types; AttributeError where one is missing."""
    global _library
    _library = library
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = list(arguments.values())
        setattr(library, name, _checked(function, arguments))
    return library
'''
    return out
