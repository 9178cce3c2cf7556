"""bindings/fortran/mpcore_c.f90: the header in Fortran 2018, names unchanged."""

import re

from . import defaults
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
!> takes as NULL is an optional argument.  A variable of a descriptor type begins with the values of
!> its mp_*_default() for arguments of 0.  The module mpcore has the rest: arrays and error handling.
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


def initial(f, s, values: dict, model: Model) -> str:
    if isinstance(f.type, Callback):
        return "c_null_funptr"
    if f.name == "struct_size":
        return f"{struct_layout(s, model)[0]}_c_int32_t"
    if f.type.pointers or model.is_handle(f.type.base):
        return "c_null_ptr"
    if f.type.base == "char":
        return "c_null_char"
    if f.name not in values:
        return number("0", f.type)
    value = values[f.name]
    return number(value[1], f.type) if value[0] == "number" else value[1]


def struct(s, model: Model) -> str:
    default = model.inline(s.name[:-2] + "_default")
    values = {}
    if default and not any(p.type.pointers for p in default.params):
        values = defaults.zero_values(default, model)
    out = f"\n{doc(s.doc)}  type, bind(c) :: {s.name}\n"
    for f in s.fields:
        kind = "type(c_funptr)" if isinstance(f.type, Callback) else scalar(f.type, model)
        shape = f"({f.array})" if f.array else ""
        out += doc(f.doc, "    ") + f"    {kind} :: {f.name}{shape} = {initial(f, s, values, model)}\n"
    return out + "  end type\n"


# ---------------------------------------------------------------- interfaces


def dummy(p, model: Model) -> str:
    kind = p.type
    if isinstance(kind, Callback):
        return "type(c_funptr), value"
    if model.is_described(kind):
        if p.name in ARRAYS:
            return f"type({kind.base}), intent(in)"
        return f"type({kind.base}), " + ("intent(in), optional" if kind.const_base else "intent(inout)")
    if not kind.pointers:
        return scalar(kind, model) + ", value"
    out = len(kind.pointers) == 1 and model.is_handle(kind.base)  # a new object
    if out or len(kind.pointers) == 2 and not kind.pointers[0]:
        return "type(c_ptr), intent(out)"
    if len(kind.pointers) == 1 and p.host_out:
        return scalar(Type(kind.base), model) + ", intent(out)"
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


def expression(e, kind: Type, model: Model) -> str:
    """kind: of the variable that takes it."""
    what = e[0]
    if what == "number":
        return number(e[1], kind)
    if what == "name":
        return e[1]
    if what == "member":
        return f"{expression(e[1], kind, model)}%{e[2]}"
    if what == "address":
        return expression(e[1], kind, model)
    if what == "cast":
        inner = expression(e[2], e[1], model)
        if e[1].base in REALS:
            return f"real({inner}, {REALS[e[1].base]})"
        return f"int({inner}, {INTEGERS[e[1].base]})"
    if what == "negative":
        return f"-{expression(e[1], kind, model)}"
    if what == "binary" and e[1] == "&":
        return f"iand({expression(e[2], kind, model)}, {expression(e[3], kind, model)})"
    if what == "binary":
        op = {"!=": "/=", "&&": ".and.", "||": ".or."}.get(e[1], e[1])
        return f"{expression(e[2], Type('int'), model)} {op} {expression(e[3], Type('int'), model)}"
    if what == "choose":
        condition = expression(e[1], Type("int"), model)
        if not (e[1][0] == "binary" and e[1][1] in ("==", "!=", "<", ">", "<=", ">=")):
            condition += " /= 0"
        # Both sides of merge are of one kind: that of the variable.
        return (f"merge({converted(e[2], kind, model)}, {converted(e[3], kind, model)}, {condition})")
    if what == "call":
        types = [p.type for p in model.inline(e[1]).params]
        return f"{e[1]}({', '.join(expression(a, t, model) for a, t in zip(e[2], types))})"
    raise ValueError(e)


def converted(e, kind: Type, model: Model) -> str:
    text = expression(e, kind, model)
    if e[0] in ("number", "negative", "cast"):
        return text
    if kind.base in REALS:
        return f"real({text}, {REALS[kind.base]})"
    return f"int({text}, {INTEGERS.get(kind.base, 'c_int')})"


def inline(f, model: Model) -> str:
    names = ", ".join(p.name for p in f.params)
    fields = {g.name: g.type for g in model.struct(f.result.base).fields}
    body = defaults.body(f, model)
    local = [s for s in body if s[0] == "declare"]
    out = "\n" + doc(f.doc) + f"  pure function {f.name}({names}) result(answer)\n"
    for p in f.params:
        kind = f"type({p.type.base}), intent(in)" if p.type.pointers else scalar(p.type, model) + ", value"
        out += f"    {kind} :: {p.name}\n"
    out += f"    type({f.result.base}) :: answer\n"
    for s in local:
        out += f"    type({s[1].base}) :: {s[2]}\n"

    def begin(s) -> str:
        if s[3]:
            return f"    {s[2]} = {expression(s[3], s[1], model)}\n"
        # Zeros but for struct_size: the default initialisation is taken back.
        declared = model.struct(s[1].base)
        zeros = {g.name: initial(g, declared, {}, model) for g in declared.fields if not g.array}
        return "".join(f"    {s[2]}%{name} = {value}\n" for name, value in zeros.items()
                       if name != "struct_size" and default_of(declared).get(name))

    def default_of(declared) -> dict:
        default = model.inline(declared.name[:-2] + "_default")
        if default and not any(p.type.pointers for p in default.params):
            return defaults.zero_values(default, model)
        return {}

    def run(statements, indent) -> str:
        text = ""
        for s in statements:
            if s[0] == "declare":
                text += begin(s)
            elif s[0] == "assign":
                for target in reversed(s[1]):
                    if target[2] == "struct_size" and s[2][0] == "cast":
                        continue
                    kind = fields[target[2]]
                    text += (f"{indent}{expression(target, kind, model)} = "
                             f"{expression(s[2], kind, model)}\n")
            elif s[0] == "switch":
                text += f"{indent}select case ({expression(s[1], Type('int'), model)})\n"
                for label, inner in s[2]:
                    text += f"{indent}case {f'({label})' if label else 'default'}\n"
                    text += run(inner, indent + "  ")
                text += f"{indent}end select\n"
            elif s[0] == "return":
                text += f"{indent}answer = {expression(s[1], f.result, model)}\n"
                if indent != "    ":
                    text += f"{indent}return\n"
        return text

    return out + run(body, "    ") + "  end function\n"


def module(model: Model) -> str:
    out = PROLOGUE + "\n" + constants(model)
    for s in model.structs:
        out += struct(s, model)
    out += "\n  interface\n" + "\n".join(function(f, model) for f in model.functions) + "  end interface\n"
    out += "\ncontains\n"
    out += "".join(inline(f, model) for f in model.inlines)
    return out + "\nend module\n"
