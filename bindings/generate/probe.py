"""Generates programs that print the same lines if and only if the bindings match the C compiler:

    size NAME BYTES ALIGNMENT
    offset NAME.FIELD BYTES
    constant NAME VALUE
    default NAME  hexadecimal bytes of the returned struct

Every function that returns a struct is called once, with a different number for each argument; a
struct argument is the result of the first function that returns its type.  The library initializes
the structs, so differences show how a language passes arguments and receives results.
"""

from . import fortran, rust
from .header import Inline, Model, Type, is_text
from .layout import struct_layout


def arguments(f: Inline, model: Model, number, call, text: str) -> list:
    """Returns the arguments; number(type, text) and call(function) write them in the language, and
    text is a string in it."""
    out = []
    for position, p in enumerate(f.params):
        enum = model.enum(p.type.base)
        maker = next((g for g in model.inlines if g.result.base == p.type.base), None)
        if is_text(p.type):
            out.append(text)
        elif p.type.pointers:
            out.append(call(maker))
        else:
            # Not the last enumerator: no call takes storage types.
            out.append(number(p.type, str(enum.values[:4][-1][1] if enum else 3 + 4 * position)))
    return out


# ---------------------------------------------------------------- C


def c(model: Model) -> str:
    out = ("#define MP_ENABLE_EXPERIMENTAL\n#include <stdio.h>\n#include \"mpcore.h\"\n\n"
           "static void bytes(const char *name, const void *p, size_t n) {\n"
           "  size_t i;\n  printf(\"default %s \", name);\n"
           "  for (i = 0; i < n; ++i) printf(\"%02X\", ((const unsigned char *)p)[i]);\n"
           "  printf(\"\\n\");\n}\n\nint main(void) {\n")
    for s in model.structs:
        out += (f"  {{\n    struct probe {{ char c; {s.name} s; }};\n    printf(\"size {s.name} %d %d\\n\", "
                f"(int)sizeof({s.name}), (int)offsetof(struct probe, s));\n  }}\n")
        for f in s.fields:
            out += f"  printf(\"offset {s.name}.{f.name} %d\\n\", (int)offsetof({s.name}, {f.name}));\n"
    for name in model.values():
        out += f"  printf(\"constant {name} %d\\n\", (int){name});\n"

    def call(f: Inline, pointer: str = "&argument") -> str:
        names = arguments(f, model, lambda kind, text: f"({kind.base}){text}", lambda _: pointer, '"name"')
        return f"{f.name}({', '.join(names)})"

    for f in model.inlines:
        out += "  {\n"
        for p in f.params:
            if p.type.pointers and not is_text(p.type):
                maker = next(g for g in model.inlines if g.result.base == p.type.base)
                out += f"    const {p.type.base} argument = {call(maker)};\n"
        out += f"    const {f.result.base} r = {call(f)};\n    bytes(\"{f.name}\", &r, sizeof r);\n  }}\n"
    return out + "  return 0;\n}\n"


# ---------------------------------------------------------------- Rust


def rust_program(model: Model) -> str:
    """Returns the program; the caller must prepend a declaration of the module sys."""
    out = ("use std::ffi::CStr;\nuse sys::*;\n\n"
           "fn bytes<T>(name: &str, value: T) {\n"
           "    let p = &value as *const T as *const u8;\n    print!(\"default {} \", name);\n"
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

    def call(f: Inline) -> str:
        names = arguments(f, model, lambda kind, text: f"{text} as {rust.type_name(kind, model)}",
                          lambda maker: "&" + call(maker), r'CStr::from_bytes_with_nul(b"name\0").unwrap()')
        return f"{f.name}({', '.join(names)})"

    for f in model.inlines:
        out += f"    bytes(\"{f.name}\", {call(f)});\n"
    return out + "}\n"


# ---------------------------------------------------------------- Python


def python(model: Model) -> str:
    """Returns the program, which requires bindings/python in PYTHONPATH."""
    out = ("import ctypes\nfrom mpcore._sys import *\nfrom mpcore import _sys\n\n"
           "def show(name, value):\n    print('default', name, bytes(value).hex().upper())\n\n")
    # getattr: a field can be a keyword, such as from.
    for s in model.structs:
        out += f"print('size {s.name}', ctypes.sizeof({s.name}), ctypes.alignment({s.name}))\n"
        out += "".join(f"print('offset {s.name}.{f.name}', getattr({s.name}, '{f.name}').offset)\n" for f in s.fields)
    out += "".join(f"print('constant {name}', int(_sys.{name}))\n" for name in model.values())

    def call(f: Inline) -> str:
        names = arguments(f, model, lambda _, text: text, call, 'b"name"')
        return f"{f.name}({', '.join(names)})"

    return out + "".join(f"show('{f.name}', {call(f)})\n" for f in model.inlines)


# ---------------------------------------------------------------- Fortran


def fortran_number(text: str, kind: Type) -> str:
    if kind.base in fortran.REALS:
        return f"{text}.0_{fortran.REALS[kind.base]}"
    return f"{text}_{fortran.INTEGERS[kind.base]}" if kind.base in fortran.INTEGERS else text


def fortran_program(model: Model) -> str:
    """Returns the program, with one subroutine per struct: long programs compile slowly."""
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
    for name in model.values():
        main += f"  print '(a,i0)', 'constant {name} ', {fortran.constant_name(name, model)}\n"

    def call(f: Inline) -> str:
        names = arguments(f, model, lambda kind, text: fortran_number(text, kind), call, '"name"//c_null_char')
        return f"{f.name}({', '.join(names)})"

    for f in model.inlines:
        main += f"  call show_{f.name}()\n"
        parts += f"\n  subroutine show_{f.name}()\n    type({f.result.base}), target :: r\n"
        parts += fortran.wrapped(f"r = {call(f)}", "    ")
        parts += f"    call bytes('{f.name}', c_loc(r), c_sizeof(r))\n  end subroutine\n"
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

  subroutine bytes(name, p, n)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: p
    integer(c_size_t), intent(in) :: n
    integer(c_int8_t), pointer :: b(:)
    call c_f_pointer(p, b, [n])
    print '(a,a,1x,*(z2.2))', 'default ', name, b
  end subroutine
{parts}end program
"""


PROGRAMS = {"c": c, "rust": rust_program, "python": python, "fortran": fortran_program}
