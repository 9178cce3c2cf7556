"""bindings/rust/src/sys.rs: the header in Rust, names unchanged."""

import re

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
//! the header: structs by value, as the library fills them in.

#![allow(non_camel_case_types, non_snake_case)]

use core::ffi::c_void;
use std::os::raw::{c_char, c_int};
"""


def word(name: str) -> str:
    return name + "_" if name in KEYWORDS else name


TAG = re.compile(r"@(?:param ([\w,]+)|retval (\w+)|(return))\s+(.*)")


def doc(text: str, model: Model, indent: str = "", path: str = "") -> str:
    """The header's comment as rustdoc has it.  `path` is where sys is, for its names, which become links."""
    names = model.names()
    return "".join(f"{indent}/// {line}".rstrip() + "\n" for line in markdown(text, names, path)) if text else ""


def markdown(text: str, names: set, path: str) -> list:
    """Parameters and statuses become a list.  Indented parts are formulas and tables, which rustdoc would take for
    code to test."""
    out: list = []
    in_item = in_formula = False
    for line in text.split("\n"):
        tag = TAG.match(line)
        was_item, was_formula = in_item, in_formula
        in_item = bool(tag) or in_item and (line.startswith(" ") or line[:1].islower())
        in_formula = not in_item and (line.startswith("    ") or in_formula and line == "")
        if was_formula and not in_formula:
            out += close_formula(out)
        elif in_formula and not was_formula:
            out.append("```text")
        if in_item != was_item and line and out and out[-1]:
            out.append("")  # a list is a paragraph of its own
        out.append(line[4:] if in_formula else ("" if tag or not in_item else "  ") + (
            item(tag, names, path) if tag else linked(line.strip(), names, path)))
    return out + close_formula(out) if in_formula else out


def close_formula(out: list) -> list:
    """The end of a block, behind its last line that is not empty."""
    empty = [out.pop() for _ in range(len(out)) if out[-1] == ""]
    return ["```", *empty]


def item(tag, names: set, path: str) -> str:
    parameters, status, _, text = tag.groups()
    if parameters:
        what = ", ".join(f"`{name}`" for name in parameters.split(",")) + ": "
    else:
        what = linked(status, names, path) + ": " if status else "returns "
    return "* " + what + linked(text, names, path)


def linked(line: str, names: set, path: str) -> str:
    """Names of the header are links, other words stand as they are, whatever Markdown would make of them."""
    out = ""
    for part in re.split(r"(`[^`]*`|\b(?:mp|MP)_\w*[A-Za-z0-9]\b)", line):
        word_of_it = part.strip("`")
        if word_of_it in names:
            out += f"[`{word_of_it}`]" + (f"({path}{word_of_it})" if path else "")
        elif part.startswith("`") or re.fullmatch(r"(mp|MP)_\w+", part):
            out += f"`{word_of_it}`"
        else:
            out += re.sub(r"([\[\]<>*_])", r"\\\1", part.replace("\\", "\\\\"))
    return out


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
        out.append(f"{doc(c.doc, model)}pub const {c.name}: {kind} = {c.value};\n")
    return "".join(out)


def enum(e, model: Model) -> str:
    out = f"\n{doc(e.doc, model)}pub type {e.name} = u32;\n"
    for name, value, text in e.values:
        out += f"{doc(text, model)}pub const {name}: {e.name} = {value};\n"
    return out


def struct(s, model: Model) -> str:
    out = f"\n{doc(s.doc, model)}#[repr(C)]\n#[derive(Clone, Copy)]\npub struct {s.name} {{\n"
    for f in s.fields:
        kind = type_name(f.type, model)
        if f.array:
            kind = f"[{kind}; {f.array}]"
        out += f"{doc(f.doc, model, '    ')}    pub {word(f.name)}: {kind},\n"
    out += "}\n"
    return out


ZEROED = """
macro_rules! zeroed {
    ($about:literal, $finish:expr, $($name:ident)*) => { $(
        impl $name {
            #[doc = $about]
            pub fn zeroed() -> Self {
                // SAFETY: integers, floats, nullable pointers: zeros are a value of each.
                $finish(unsafe { core::mem::zeroed::<Self>() })
            }
        }
    )* };
}
"""


def zeroed(structs: list) -> str:
    def list_of(names):
        return "".join(f"    {name}\n" for name in names)
    with_size = list_of(s.name for s in structs if sized(s))
    without = list_of(s.name for s in structs if not sized(s))
    return (f'{ZEROED}\nzeroed! {{\n    "Zeros, and `struct_size`: MP_INIT_STRUCT.",\n'
            "    |s| Self { struct_size: core::mem::size_of::<Self>() as u32, ..s },\n"
            f'{with_size}}}\nzeroed! {{\n    "Zeros.",\n    |s| s,\n{without}}}\n')


def sized(s) -> bool:
    return s.fields[0].name == "struct_size"


# ---------------------------------------------------------------- inline functions


def inline(f, model: Model) -> str:
    params = ", ".join(
        f"{word(p.name)}: " + (f"&{p.type.base}" if p.type.pointers else type_name(p.type, model))
        for p in f.params)
    arguments = "".join(f", {word(p.name)}" for p in f.params)
    return (f"\n{doc(f.doc, model)}pub fn {f.name}({params}) -> {f.result.base} {{\n"
            f"    let mut value = {f.result.base}::zeroed();\n"
            f"    let size = core::mem::size_of_val(&value);\n"
            f"    // SAFETY: it writes that many bytes.  Where it fails, it leaves what every call refuses.\n"
            f"    unsafe {{ {f.init}(&mut value, size{arguments}) }};\n"
            f"    value\n}}\n")


# ---------------------------------------------------------------- the file


def function(f, model: Model) -> str:
    params = ", ".join(f"{word(p.name)}: {type_name(p.type, model)}" for p in f.params)
    return f"{doc(f.doc, model, '    ')}    pub fn {f.name}({params}){result(f.result, model)};\n"


def sys(model: Model) -> str:
    out = PROLOGUE + "\n" + constants(model)
    for name, tag, text in model.handles:
        out += f"\n/// Never made here; see {name}.\n#[repr(C)]\npub struct {tag} {{\n    _opaque: [u8; 0],\n}}\n"
        out += f"{doc(text, model)}pub type {name} = *mut {tag};\n"
    for name, callback, text in model.callbacks:
        out += f"\n{doc(text, model)}pub type {name} = {type_name(callback, model)};\n"
    for e in model.enums:
        out += enum(e, model)
    for s in model.structs:
        out += struct(s, model)
    out += zeroed(model.structs)
    for f in model.inlines:
        out += inline(f, model)
    out += '\nextern "C" {\n' + "\n".join(function(f, model) for f in model.functions) + "}\n"
    return out


# ---------------------------------------------------------------- enums of the safe layer

SYS = "crate::sys::"  # from any module of the crate


def camel(text: str) -> str:
    return "".join(part.capitalize() for part in text.split("_"))


def common_prefix(names: list) -> str:
    """Up to an underscore: MP_ACT_RELU, MP_ACT_NONE -> MP_ACT_."""
    prefix = names[0]
    while not all(n.startswith(prefix) for n in names):
        prefix = prefix[:-1]
    return prefix[:prefix.rfind("_") + 1]


NUMBERED = """
macro_rules! numbered {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$about])*
        #[non_exhaustive]
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$of])* $variant = $value,)*
        }

        impl $name {
            /// The value of that number, if this crate knows one.
            pub fn from_raw(raw: u32) -> Option<Self> {
                match raw {
                    $($value => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
"""


FLAGS = """
macro_rules! flags {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $flag:ident = $value:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(u32);

        impl $name {
            $($(#[$of])* pub const $flag: Self = Self($value);)*

            /// The flags of an integer of [`sys`](crate::sys); bits of newer libraries are kept.
            pub const fn from_bits(bits: u32) -> Self {
                Self(bits)
            }

            /// As [`sys`](crate::sys) has them.
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// True if all of `flags` are set.
            pub const fn contains(self, flags: Self) -> bool {
                self.0 & flags.0 == flags.0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, flags: Self) -> Self {
                Self(self.0 | flags.0)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, flags: Self) {
                self.0 |= flags.0;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            /// `self` without `flags`.
            fn sub(self, flags: Self) -> Self {
                Self(self.0 & !flags.0)
            }
        }
    };
}
"""


def enums(model: Model) -> str:
    out = "// Made by bindings/generate/generate from include/mpcore.h; edit that and run bindings/generate/generate.\n\n"
    out += "//! The enums of `mpcore.h` as Rust has them.\n" + NUMBERED + FLAGS
    for e in model.enums:
        is_flags = e.name.endswith("_flags_t")
        prefix = common_prefix([name for name, _, _ in e.values])
        if len(e.values) == 1:
            prefix = e.name[:-len("flags_t")].upper()
        own = camel(e.name[len("mp_"):-len("_t")])
        out += f"\n{'flags' if is_flags else 'numbered'}! {{\n{doc(e.doc or 'See the variants.', model, '    ', SYS)}    {own} {{\n"
        for name, value, text in e.values:
            out += doc(text or name, model, "        ", SYS)
            own_name = name[len(prefix):]
            out += f"        {own_name if is_flags else camel(own_name)} = {value},\n"
        out += "    }\n}\n"
    return out
