"""bindings/rust/src/sys.rs: the header in Rust, names unchanged."""

import re

from . import defaults
from .header import Callback, Model, Type

TYPES = {
    "void": "c_void", "char": "c_char", "int": "c_int", "float": "f32", "double": "f64",
    "int8_t": "i8", "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32",
    "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "size_t": "usize",
}
KEYWORDS = {"in", "type", "ref", "match", "move", "fn", "loop", "use", "where", "mod", "self"}

PROLOGUE = """\
// Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.

//! The C ABI as it is: names, structs and constants of `mpcore.h`, whose manual stands here too.
//!
//! An enum is an integer here, for a library newer than this file may know more values; the
//! crate's own enums are for Rust programs.  The functions with a body are the inline functions of
//! the header, in Rust.

#![allow(non_camel_case_types, non_snake_case)]

use core::ffi::c_void;
use std::os::raw::{c_char, c_int};
"""


def word(name: str) -> str:
    return name + "_" if name in KEYWORDS else name


def doc(text: str, indent: str = "") -> str:
    """Indented parts are formulas and tables, which rustdoc would take for code to test."""
    out, fenced = [], False
    for line in text.split("\n") if text else []:
        formula = line.startswith("    ") or fenced and line == ""
        if formula != fenced:
            if formula or out:
                out.append("```text" if formula else "```")
            fenced = formula
        out.append(line if fenced else re.sub(r"([\[\]<>*_])", r"\\\1", line.replace("\\", "\\\\")))
    if fenced:
        out.append("```")
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in out)


def type_name(kind, model: Model) -> str:
    if isinstance(kind, Callback):
        params = ", ".join(f"{word(p.name)}: {type_name(p.type, model)}" for p in kind.params)
        return f'Option<unsafe extern "C" fn({params}){result(kind.result, model)}>'
    text = TYPES.get(kind.base, kind.base)
    const = kind.const_base
    for pointer_is_const in kind.pointers:
        text = f"*{'const' if const else 'mut'} {text}"
        const = pointer_is_const
    return text


def result(kind: Type, model: Model) -> str:
    return "" if kind == Type("void") else f" -> {type_name(kind, model)}"


def constants(model: Model) -> str:
    out = []
    for c in model.constants:
        kind = "u32" if c.name.startswith("MP_VERSION") else "i32"
        out.append(f"{doc(c.doc)}pub const {c.name}: {kind} = {c.value};\n")
    return "".join(out)


def enum(e) -> str:
    out = f"\n{doc(e.doc)}pub type {e.name} = u32;\n"
    for name, value, text in e.values:
        out += f"{doc(text)}pub const {name}: {e.name} = {value};\n"
    return out


def struct(s, model: Model) -> str:
    out = f"\n{doc(s.doc)}#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {s.name} {{\n"
    for f in s.fields:
        kind = type_name(f.type, model)
        if f.array:
            kind = f"[{kind}; {f.array}]"
        out += f"{doc(f.doc, '    ')}    pub {word(f.name)}: {kind},\n"
    out += "}\n"
    out += f"\nimpl {s.name} {{\n"
    out += "    /// Zeros" + (", and `struct_size`: MP_INIT_STRUCT.\n" if sized(s) else ".\n")
    out += "    pub fn zeroed() -> Self {\n"
    out += "        // SAFETY: integers, floats, nullable pointers: zeros are a value of each.\n"
    out += f"        let {'mut ' if sized(s) else ''}s: Self = unsafe {{ core::mem::zeroed() }};\n"
    if sized(s):
        out += "        s.struct_size = core::mem::size_of::<Self>() as u32;\n"
    out += "        s\n    }\n}\n"
    return out


def sized(s) -> bool:
    return s.fields[0].name == "struct_size"


# ---------------------------------------------------------------- inline functions


def expression(e, integer: bool = True) -> str:
    """integer: whether a bare number stays one; in Rust no integer becomes a float by itself."""
    kind = e[0]
    if kind == "number":
        text = e[1].rstrip("fFuUlL") if not e[1].lower().startswith("0x") else e[1]
        return text if integer or re.search(r"[.eE]", text) else text + ".0"
    if kind == "name":
        return word(e[1])
    if kind == "member":
        return f"{expression(e[1])}.{word(e[2])}"
    if kind == "address":
        return f"&{expression(e[1])}"
    if kind == "cast":
        return f"{expression(e[2])} as {TYPES.get(e[1].base, e[1].base)}"
    if kind == "negative":
        return f"-{expression(e[1], integer)}"
    if kind == "binary":
        return f"{expression(e[2])} {e[1]} {expression(e[3])}"
    if kind == "choose":
        return (f"if {condition(e[1])} {{ {expression(e[2], integer)} }} "
                f"else {{ {expression(e[3], integer)} }}")
    if kind == "call":
        return f"{e[1]}({', '.join(expression(a) for a in e[2])})"
    raise ValueError(e)


def condition(e) -> str:
    if e[0] == "binary" and e[1] in ("==", "!=", "<", ">", "<=", ">="):
        return expression(e)
    return f"{expression(e)} != 0"


def inline(f, model: Model) -> str:
    params = ", ".join(
        f"{word(p.name)}: " + (f"&{p.type.base}" if p.type.pointers else type_name(p.type, model))
        for p in f.params)
    out = f"\n{doc(f.doc)}pub fn {f.name}({params}) -> {f.result.base} {{\n"
    returned = model.struct(f.result.base)
    floats = {g.name for g in returned.fields if isinstance(g.type, Type) and
              g.type.base in defaults.FLOATS and not g.type.pointers}

    body = defaults.body(f, model)

    def writes(s) -> bool:
        if s[0] == "assign":
            return not (s[1][0][2] == "struct_size" and s[2][0] == "cast")
        return s[0] == "switch"

    def run(statements, indent) -> str:
        text = ""
        for index, s in enumerate(statements):
            last = indent == "    " and index == len(statements) - 1
            if s[0] == "declare":
                const = s[1].const_base or not any(writes(t) for t in body if t[0] != "return")
                value = expression(s[3]) if s[3] else f"{s[1].base}::zeroed()"
                text += f"{indent}let {'' if const else 'mut '}{s[2]} = {value};\n"
            elif s[0] == "assign":
                for target in reversed(s[1]):
                    field = target[2]
                    if field == "struct_size" and s[2][0] == "cast":
                        continue  # zeroed() has set it
                    text += f"{indent}{expression(target)} = {expression(s[2], field not in floats)};\n"
            elif s[0] == "switch":
                text += f"{indent}match {expression(s[1])} {{\n"
                for label, inner in s[2]:
                    text += f"{indent}    {label or '_'} => {{\n{run(inner, indent + ' ' * 8)}{indent}    }}\n"
                if all(label for label, _ in s[2]):
                    text += f"{indent}    _ => {{}}\n"
                text += f"{indent}}}\n"
            elif s[0] == "return":
                text += f"{indent}{expression(s[1])}\n" if last else f"{indent}return {expression(s[1])};\n"
        return text

    return out + run(body, "    ") + "}\n"


# ---------------------------------------------------------------- the file


def function(f, model: Model) -> str:
    params = ", ".join(f"{word(p.name)}: {type_name(p.type, model)}" for p in f.params)
    return f"{doc(f.doc, '    ')}    pub fn {f.name}({params}){result(f.result, model)};\n"


def sys(model: Model) -> str:
    out = PROLOGUE + "\n" + constants(model)
    for name, tag, text in model.handles:
        out += f"\n/// Never made here; see {name}.\n#[repr(C)]\npub struct {tag} {{\n    _opaque: [u8; 0],\n}}\n"
        out += f"{doc(text)}pub type {name} = *mut {tag};\n"
    for name, callback, text in model.callbacks:
        out += f"\n{doc(text)}pub type {name} = {type_name(callback, model)};\n"
    for e in model.enums:
        out += enum(e)
    for s in model.structs:
        out += struct(s, model)
    for f in model.inlines:
        out += inline(f, model)
    out += '\nextern "C" {\n' + "\n".join(function(f, model) for f in model.functions) + "}\n"
    return out


# ---------------------------------------------------------------- enums of the safe layer

# Flags are or-ed, and a status is what Error has.
NOT_SAFE_ENUMS = ("mp_status_t", "mp_log_level_t", "mp_target_t")


def camel(text: str) -> str:
    return "".join(part.capitalize() for part in text.split("_"))


def common_prefix(names: list) -> str:
    """Up to an underscore: MP_ACT_RELU, MP_ACT_NONE -> MP_ACT_."""
    prefix = names[0]
    while not all(n.startswith(prefix) for n in names):
        prefix = prefix[:-1]
    return prefix[:prefix.rfind("_") + 1]


def enums(model: Model) -> str:
    out = "// Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.\n\n"
    out += "//! The enums of `mpcore.h` as Rust has them.\n"
    for e in model.enums:
        if e.name.endswith("_flags_t"):
            continue
        prefix = common_prefix([name for name, _, _ in e.values])
        own = camel(e.name[len("mp_"):-len("_t")])
        out += f"\n{doc(e.doc) or '/// See the variants.' + chr(10)}#[non_exhaustive]\n#[repr(u32)]\n"
        out += f"#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum {own} {{\n"
        for name, value, text in e.values:
            short = name[len(prefix):]
            text = text or f"`{name}`"
            out += f"{doc(text, '    ') if '`' not in text[:1] else '    /// ' + text + chr(10)}"
            out += f"    {camel(short)} = {value},\n"
        out += f"}}\n\nimpl {own} {{\n    /// The value of that number, if this crate knows one.\n"
        out += "    pub fn from_raw(raw: u32) -> Option<Self> {\n        Some(match raw {\n"
        for name, value, _ in e.values:
            out += f"            {value} => Self::{camel(name[len(prefix):])},\n"
        out += "            _ => return None,\n        })\n    }\n}\n"
    return out
