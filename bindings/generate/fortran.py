"""bindings/fortran/mpcore_c.f90: the header in Fortran 2018, names unchanged."""

import re

from .header import Callback, Model, Type
from .layout import struct_layout

INTEGERS = {
    "int": "c_int", "int8_t": "c_int8_t", "uint8_t": "c_int8_t", "int16_t": "c_int16_t",
    "uint16_t": "c_int16_t", "int32_t": "c_int32_t", "uint32_t": "c_int32_t",
    "int64_t": "c_int64_t", "uint64_t": "c_int64_t", "size_t": "c_size_t",
}
REALS = {"float": "c_float", "double": "c_double"}
# Pointers to structs that are arrays of them.
ARRAYS = ("items",)

PROLOGUE = """\
! Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.

!> The C ABI as it is: names, types and constants of mpcore.h.  Unsigned integers are signed ones of
!> the same size.  Handles, streams and pointers to plain data are type(c_ptr); a descriptor that C
!> takes as NULL is an optional argument.  A variable of a descriptor type begins with zeros and its
!> struct_size; mp_*_default() has the defaults.  The module mpcore has the rest: arrays and error handling.
module mpcore_c
  use, intrinsic :: iso_c_binding
  implicit none
  public
"""


def doc(text: str, indent: str = "  ") -> str:
    """At most 132 columns are Fortran; the header has 100."""
    return "".join(f"{indent}!> {line}".rstrip() + "\n" for line in text.split("\n")) if text else ""


def wrapped(text: str, indent: str) -> str:
    """One statement over several lines, broken behind commas."""
    lines, line = [], ""
    for part in re.split(r"(?<=,) ", text):
        if len(indent + line + part) > 96 and line:
            lines.append(line.rstrip())
            line = ""
        line += part + " "
    lines.append(line.rstrip())
    return (f" &\n{indent}  ").join([indent + lines[0]] + lines[1:]) + "\n"


def scalar(kind: Type, model: Model) -> str:
    if kind.pointers or model.is_handle(kind.base):
        return "type(c_ptr)"
    if kind.base in INTEGERS:
        return f"integer({INTEGERS[kind.base]})"
    if kind.base in REALS:
        return f"real({REALS[kind.base]})"
    if model.enum(kind.base):
        return "integer(c_int)"
    if model.callback(kind.base):
        return "type(c_funptr)"
    if model.struct(kind.base):
        return f"type({kind.base})"
    return "character(kind=c_char)"


def constant_name(name: str, model: Model) -> str:
    """Fortran knows no case: MP_VERSION and mp_version() would be one name."""
    clash = any(f.name == name.lower() for f in model.functions + model.inlines)
    return name + "_NUMBER" if clash else name


def constants(model: Model) -> str:
    out = ""
    for c in model.constants:
        out += doc(c.doc) + f"  integer(c_int), parameter :: {constant_name(c.name, model)} = {c.value}\n"
    for e in model.enums:
        out += f"\n{doc(e.doc)}  enum, bind(c)  ! {e.name}\n"
        for name, value, text in e.values:
            out += doc(text, "    ") + f"    enumerator :: {constant_name(name, model)} = {value}\n"
        out += "  end enum\n"
    return out


def number(text: str, kind: Type) -> str:
    digits = text.rstrip("fFuUlL")
    if kind.base in REALS:
        return (digits if re.search(r"[.eE]", digits) else digits + ".0") + "_" + REALS[kind.base]
    return digits + ("_" + INTEGERS[kind.base] if kind.base in INTEGERS else "")


def initial(f, s, model: Model) -> str:
    if isinstance(f.type, Callback):
        return "c_null_funptr"
    if f.name == "struct_size":
        return f"{struct_layout(s, model)[0]}_c_int32_t"
    if f.type.pointers or model.is_handle(f.type.base):
        return "c_null_ptr"
    if f.type.base == "char":
        return "c_null_char"
    return number("0", f.type)


def struct(s, model: Model) -> str:
    out = f"\n{doc(s.doc)}  type, bind(c) :: {s.name}\n"
    for f in s.fields:
        kind = "type(c_funptr)" if isinstance(f.type, Callback) else scalar(f.type, model)
        shape = f"({f.array})" if f.array else ""
        out += doc(f.doc, "    ") + f"    {kind} :: {f.name}{shape} = {initial(f, s, model)}\n"
    return out + "  end type\n"


# ---------------------------------------------------------------- interfaces


def points(name: str, model: Model) -> bool:
    """Whether a struct leads to memory, which a call may write.  From intent(in) gfortran concludes that it does not, and
    keeps what it knows of a variable whose address is in the struct."""
    types = [field.type for field in model.struct(name).fields]
    return any(not isinstance(kind, Callback) and kind.pointers and not kind.const_base for kind in types)


def dummy(p, model: Model) -> str:
    kind = p.type
    if isinstance(kind, Callback):
        return "type(c_funptr), value"
    if model.is_described(kind):
        intent = ", intent(inout)" if not kind.const_base else "" if points(kind.base, model) else ", intent(in)"
        return f"type({kind.base}){intent}" + ("" if p.name in ARRAYS or not kind.const_base else ", optional")
    if not kind.pointers:
        return scalar(kind, model) + ", value"
    # A call that is refused leaves its results alone.  From intent(out) gfortran concludes that nobody wants what was
    # in them before.
    is_new_object = len(kind.pointers) == 1 and model.is_handle(kind.base)
    if is_new_object or len(kind.pointers) == 2 and not kind.pointers[0]:
        return "type(c_ptr), intent(inout)" + (", optional" if p.is_optional else "")
    if len(kind.pointers) == 1 and p.host_out and kind.base != "void":  # memory of any size is no scalar
        return scalar(Type(kind.base), model) + ", intent(inout)"
    return "type(c_ptr), value"


def function(f, model: Model) -> str:
    names = ", ".join(p.name for p in f.params)
    nothing = f.result == Type("void")
    what = "subroutine" if nothing else "function"
    tail = "" if nothing else " result(answer)"
    out = doc(f.doc, "    ")
    out += wrapped(f'{what} {f.name}({names}){tail} bind(c, name="{f.name}")', "    ").replace(
        ") result(answer) bind", ") result(answer) &\n      bind" if len(names) > 60 else ") result(answer) bind")
    out += "      import\n"
    for p in f.params:
        shape = "(*)" if p.name in ARRAYS else ""
        out += f"      {dummy(p, model)} :: {p.name}{shape}\n"
    if not nothing:
        out += f"      {scalar(f.result, model)} :: answer\n"
    return out + f"    end {what}\n"


# ---------------------------------------------------------------- inline functions


def inline(f, model: Model) -> str:
    names = ", ".join(p.name for p in f.params)
    arguments = "".join(f", {p.name}" for p in f.params)
    out = "\n" + doc(f.doc) + f"  function {f.name}({names}) result(answer)\n"
    for p in f.params:
        kind = f"type({p.type.base}), intent(in)" if p.type.pointers else scalar(p.type, model) + ", value"
        out += f"    {kind} :: {p.name}\n"
    out += f"    type({f.result.base}) :: answer\n"
    call = f"{f.init}(answer, c_sizeof(answer){arguments})"
    out += wrapped(f"if ({call} /= MP_SUCCESS) answer%struct_size = 0", "    ")
    return out + "  end function\n"


def module(model: Model) -> str:
    out = PROLOGUE + "\n" + constants(model)
    for s in model.structs:
        out += struct(s, model)
    out += "\n  interface\n" + "\n".join(function(f, model) for f in model.functions) + "  end interface\n"
    out += "\ncontains\n"
    out += "".join(inline(f, model) for f in model.inlines)
    return out + "\nend module\n"
