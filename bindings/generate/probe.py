"""Programs that print the same lines where, and only where, the faces agree with the C compiler:

    size NAME BYTES ALIGNMENT
    offset NAME.FIELD BYTES
    constant NAME VALUE
    default NAME NUMBER-OF-CALL  hexadecimal bytes of what it returned

Every inline function is called with several sets of arguments: every enumerator of an enum and one
number that is none, numbers that differ from each other, and, where it takes structs, those that the
other inline functions return and one with numbers in all fields.
"""

from dataclasses import dataclass
from typing import List, Tuple

from . import fortran, rust
from .header import Inline, Model, Struct, Type
from .layout import is_scalar, struct_layout


@dataclass
class Argument:
    """A scalar as text, or a struct: the call that makes it, or numbers for its fields."""

    type: Type
    number: str = ""
    made_by: object = None  # Call
    fields: Tuple[Tuple[str, Type, str], ...] = ()


@dataclass
class Call:
    function: Inline
    arguments: List[Argument]


def numbers(struct: Struct, model: Model, sign: int) -> tuple:
    """Small numbers that every type holds, all different."""
    out = []
    for index, f in enumerate(struct.fields):
        if f.name == "struct_size" or not is_scalar(f.type) or f.array or model.is_handle(f.type.base):
            continue
        signed = f.type.base in ("int32_t", "int64_t", "int", "float", "double")
        out.append((f.name, f.type, str((index + 2) * (sign if signed else 1))))
    return tuple(out)


def arguments_for(kind: Type, position: int, model: Model, depth: int = 0) -> List[Argument]:
    if model.enum(kind.base):
        values = [value for _, value, _ in model.enum(kind.base).values]
        return [Argument(kind, str(v)) for v in sorted(set(values)) + [max(values) + 1]]
    if not kind.pointers:
        return [Argument(kind, str(3 + 4 * position)), Argument(kind, str(1000 + position))]
    struct = model.struct(kind.base)
    out = [Argument(kind, fields=numbers(struct, model, sign)) for sign in (1, -1)]
    if depth == 0:
        makers = [f for f in model.inlines
                  if f.result.base == kind.base and not any(p.type.pointers for p in f.params)]
        out += [Argument(kind, made_by=c) for f in makers for c in calls_of(f, model, 1)]
    return out


def calls_of(f: Inline, model: Model, depth: int = 0) -> List[Call]:
    """Not all combinations: the longest list of arguments once, the others going round beside it."""
    lists = [arguments_for(p.type, i, model, depth) for i, p in enumerate(f.params)]
    count = max([len(each) for each in lists] + [1])
    return [Call(f, [each[i % len(each)] for each in lists]) for i in range(count)]


# ---------------------------------------------------------------- C


def c(model: Model) -> str:
    out = "#define MP_ENABLE_EXPERIMENTAL\n#include <stdio.h>\n#include \"mpcore.h\"\n\n"
    out += ("static void bytes(const char *name, int call, const void *p, size_t n) {\n"
            "  size_t i;\n  printf(\"default %s %d \", name, call);\n"
            "  for (i = 0; i < n; ++i) printf(\"%02X\", ((const unsigned char *)p)[i]);\n"
            "  printf(\"\\n\");\n}\n\nint main(void) {\n")
    for s in model.structs:
        out += (f"  {{\n    struct probe {{ char c; {s.name} s; }};\n    printf(\"size {s.name} %d %d\\n\", "
                f"(int)sizeof({s.name}), (int)offsetof(struct probe, s));\n  }}\n")
        for f in s.fields:
            out += f"  printf(\"offset {s.name}.{f.name} %d\\n\", (int)offsetof({s.name}, {f.name}));\n"
    for name in model.values():
        out += f"  printf(\"constant {name} %d\\n\", (int){name});\n"

    def text(argument: Argument, name: str) -> Tuple[str, str]:
        """Statements before the call, and the argument."""
        kind = argument.type
        if not kind.pointers:
            return "", f"({kind.base}){argument.number}"
        lines = f"    {kind.base} {name};\n    memset(&{name}, 0, sizeof {name});\n"
        if argument.made_by:
            lines += f"    {name} = {call_text(argument.made_by)};\n"
        lines += "".join(f"    {name}.{f} = ({t.base}){v};\n" for f, t, v in argument.fields)
        return lines, f"&{name}"

    def call_text(call: Call) -> str:
        return f"{call.function.name}({', '.join(text(a, '')[1] for a in call.arguments)})"

    for f in model.inlines:
        for index, call in enumerate(calls_of(f, model)):
            pairs = [text(a, f"a{i}") for i, a in enumerate(call.arguments)]
            out += "  {\n" + "".join(before for before, _ in pairs)
            out += f"    const {f.result.base} r = {f.name}({', '.join(t for _, t in pairs)});\n"
            out += f"    bytes(\"{f.name}\", {index}, &r, sizeof r);\n  }}\n"
    return out + "  return 0;\n}\n"


# ---------------------------------------------------------------- Rust


def rust_program(model: Model) -> str:
    """Wants a line that declares the module sys before it."""
    out = ("use sys::*;\n\n"
           "fn bytes<T>(name: &str, call: i32, value: &T) {\n"
           "    let p = value as *const T as *const u8;\n    print!(\"default {} {} \", name, call);\n"
           "    for i in 0..std::mem::size_of::<T>() {\n"
           "        // SAFETY: inside the value, and mpcore.h has no padding.\n"
           "        print!(\"{:02X}\", unsafe { *p.add(i) });\n    }\n    println!();\n}\n\nfn main() {\n")
    for s in model.structs:
        out += (f"    println!(\"size {s.name} {{}} {{}}\", std::mem::size_of::<{s.name}>(), "
                f"std::mem::align_of::<{s.name}>());\n    {{\n        let s = {s.name}::zeroed();\n"
                f"        let at = &s as *const _ as usize;\n")
        for f in s.fields:
            out += (f"        println!(\"offset {s.name}.{f.name} {{}}\", "
                    f"std::ptr::addr_of!(s.{rust.word(f.name)}) as usize - at);\n")
        out += "    }\n"
    for name in model.values():
        out += f"    println!(\"constant {name} {{}}\", {name});\n"

    def text(argument: Argument, name: str) -> Tuple[str, str]:
        kind = argument.type
        if not kind.pointers:
            return "", f"{argument.number} as {rust.type_name(kind, model)}"
        start = call_text(argument.made_by) if argument.made_by else f"{kind.base}::zeroed()"
        mutable = "mut " if argument.fields else ""
        lines = f"        let {mutable}{name} = {start};\n"
        lines += "".join(f"        {name}.{rust.word(f)} = {v} as {rust.type_name(t, model)};\n"
                         for f, t, v in argument.fields)
        return lines, f"&{name}"

    def call_text(call: Call) -> str:
        return f"{call.function.name}({', '.join(text(a, '')[1] for a in call.arguments)})"

    for f in model.inlines:
        for index, call in enumerate(calls_of(f, model)):
            pairs = [text(a, f"a{i}") for i, a in enumerate(call.arguments)]
            out += "    {\n" + "".join(before for before, _ in pairs)
            out += f"        let r = {f.name}({', '.join(t for _, t in pairs)});\n"
            out += f"        bytes(\"{f.name}\", {index}, &r);\n    }}\n"
    return out + "}\n"


# ---------------------------------------------------------------- Python


def python(model: Model) -> str:
    """Runs with bindings/python in PYTHONPATH."""
    out = ("import ctypes\nfrom mpcore._sys import *\nfrom mpcore import _sys\n\n"
           "def show(name, call, value):\n    print('default', name, call, bytes(value).hex().upper())\n\n")
    for s in model.structs:
        out += f"print('size {s.name}', ctypes.sizeof({s.name}), ctypes.alignment({s.name}))\n"
        out += "".join(f"print('offset {s.name}.{f.name}', {s.name}.{f.name}.offset)\n" for f in s.fields)
    out += "".join(f"print('constant {name}', int(_sys.{name}))\n" for name in model.values())

    def call_text(call: Call) -> str:
        return f"{call.function.name}({', '.join(text(a, '')[1] for a in call.arguments)})"

    def text(argument: Argument, name: str) -> Tuple[str, str]:
        if not argument.type.pointers:
            return "", argument.number
        lines = f"{name} = {call_text(argument.made_by) if argument.made_by else argument.type.base + '()'}\n"
        lines += "".join(f"{name}.{f} = {v}\n" for f, _, v in argument.fields)
        return lines, name

    for f in model.inlines:
        for index, call in enumerate(calls_of(f, model)):
            pairs = [text(a, f"a{i}") for i, a in enumerate(call.arguments)]
            out += "".join(before for before, _ in pairs)
            out += f"show('{f.name}', {index}, {f.name}({', '.join(t for _, t in pairs)}))\n"
    return out


# ---------------------------------------------------------------- Fortran


def fortran_program(model: Model) -> str:
    """One subroutine per struct and per function, for a compiler takes long over a long program."""
    main, parts = "", ""
    for s in model.structs:
        main += f"  call layout_{s.name}()\n"
        parts += f"\n  subroutine layout_{s.name}()\n    type({s.name}), target :: s(2)\n"
        parts += (f"    print '(a,i0,1x,i0)', 'size {s.name} ', c_sizeof(s(1)), "
                  f"{struct_layout(s, model)[1]}\n")
        for f in s.fields:
            part = f"s(1)%{f.name}" + ("(1)" if f.array else "")
            parts += f"    print '(a,i0)', 'offset {s.name}.{f.name} ', at(c_loc({part})) - at(c_loc(s(1)))\n"
        parts += "  end subroutine\n"
    constants = list(model.values())
    for name in constants:
        main += f"  print '(a,i0)', 'constant {name} ', {fortran.constant_name(name, model)}\n"

    def number(argument: Argument, text: str) -> str:
        digits = fortran.number(text.lstrip("-"), argument)
        return "-" + digits if text.startswith("-") else digits

    def call_text(call: Call) -> str:
        return f"{call.function.name}({', '.join(text(a, '')[1] for a in call.arguments)})"

    def text(argument: Argument, name: str) -> Tuple[str, str]:
        kind = argument.type
        if not kind.pointers:
            return "", number(kind, argument.number)
        lines = f"    {name} = {call_text(argument.made_by)}\n" if argument.made_by else zeroed(kind, name)
        lines += "".join(f"    {name}%{f} = {number(t, v)}\n" for f, t, v in argument.fields)
        return lines, name

    def zeroed(kind: Type, name: str) -> str:
        struct = model.struct(kind.base)
        return "".join(f"    {name}%{f.name} = {fortran.initial(f, struct, {}, model)}\n"
                       for f in struct.fields)

    for f in model.inlines:
        for index, call in enumerate(calls_of(f, model)):
            own = f"call_{f.name}_{index}"
            main += f"  call {own}()\n"
            pairs = [text(a, f"a{i}") for i, a in enumerate(call.arguments)]
            parts += f"\n  subroutine {own}()\n    type({f.result.base}), target :: r\n"
            parts += "".join(f"    type({a.type.base}) :: a{i}\n"
                             for i, a in enumerate(call.arguments) if a.type.pointers)
            parts += "".join(before for before, _ in pairs)
            parts += fortran.wrapped(f"r = {f.name}({', '.join(t for _, t in pairs)})", "    ")
            parts += f"    call bytes('{f.name}', {index}, c_loc(r), c_sizeof(r))\n  end subroutine\n"
    return f"""\
program probe
  use mpcore_c
  implicit none
{main}
contains

  integer(c_intptr_t) function at(p)
    type(c_ptr), intent(in) :: p
    at = transfer(p, at)
  end function

  subroutine bytes(name, call_number, p, n)
    character(*), intent(in) :: name
    integer, intent(in) :: call_number
    type(c_ptr), intent(in) :: p
    integer(c_size_t), intent(in) :: n
    integer(c_int8_t), pointer :: b(:)
    call c_f_pointer(p, b, [n])
    print '(a,a,1x,i0,1x,*(z2.2))', 'default ', name, call_number, b
  end subroutine
{parts}end program
"""


PROGRAMS = {"c": c, "rust": rust_program, "python": python, "fortran": fortran_program}
