"""Reads the public headers, include/mpcore.h and those it includes, into a Model.

pycparser parses the output of `cc -E`, which has no comments: they are read from the source and
assigned to declarations by line numbers.  System headers are omitted; only the names of their types
are needed.
"""

import bisect
import os
import pathlib
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

try:
    from pycparser import c_ast, c_parser
except ImportError:  # Debian packages are visible only to /usr/bin/python3
    if os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3"):
        sys.exit("pycparser is missing: tools/setup installs it (Debian: python3-pycparser)")
    os.execv("/usr/bin/python3", ["/usr/bin/python3", *sys.argv])


class HeaderError(Exception):
    pass


@dataclass(frozen=True)
class Type:
    """Type of C.  `const void *const *` is base "void", const_base True, pointers (True, False):
    True for each pointer that is itself const."""

    base: str
    const_base: bool = False
    pointers: Tuple[bool, ...] = ()


def is_text(kind: "Type") -> bool:
    """Returns whether a parameter is a `const char *`."""
    return kind.base == "char" and kind.const_base and len(kind.pointers) == 1


@dataclass(frozen=True)
class Callback:
    """Pointer to a function."""

    result: Type
    params: Tuple["Param", ...]


@dataclass
class Param:
    name: str
    type: Type
    host_out: bool = False  # documented as "host, out"
    is_optional: bool = False  # documented as "host, out, optional"


@dataclass
class Field:
    name: str
    type: object  # Type or Callback
    array: int = 0  # elements; 0 = not an array


@dataclass
class Struct:
    name: str  # name of the typedef: mp_param_group_t
    fields: List[Field]
    doc: str = ""


@dataclass
class Enum:
    name: str
    values: List[Tuple[str, int, str]]  # name, value, doc
    doc: str = ""


@dataclass
class Constant:
    name: str
    value: int


@dataclass
class Function:
    name: str
    result: Type
    params: List[Param]
    doc: str = ""
    header: str = ""  # gemm.h


@dataclass
class Inline:
    """Static inline function that returns a struct initialized by `init`."""

    name: str
    result: Type
    params: List[Param]
    init: str


@dataclass
class Model:
    constants: List[Constant] = field(default_factory=list)
    enums: List[Enum] = field(default_factory=list)
    structs: List[Struct] = field(default_factory=list)
    handles: List[Tuple[str, str]] = field(default_factory=list)  # (mp_context_t, mp_context)
    callbacks: List[Tuple[str, Callback]] = field(default_factory=list)
    functions: List[Function] = field(default_factory=list)
    inlines: List[Inline] = field(default_factory=list)

    def struct(self, name) -> Optional[Struct]:
        return next((s for s in self.structs if s.name == name), None)

    def enum(self, name) -> Optional[Enum]:
        return next((e for e in self.enums if e.name == name), None)

    def is_described(self, kind) -> bool:
        """Returns whether a type points to a struct in host memory, not to output of a kernel."""
        struct = self.struct(kind.base) if len(kind.pointers) == 1 else None
        return struct is not None and "into device memory" not in struct.doc

    def is_handle(self, name) -> bool:
        return any(h[0] == name for h in self.handles)

    def callback(self, name) -> Optional[Callback]:
        return next((c[1] for c in self.callbacks if c[0] == name), None)

    def values(self) -> Dict[str, int]:
        return {**{c.name: c.value for c in self.constants},
                **{name: value for e in self.enums for name, value, _ in e.values}}

    def types(self) -> List[str]:
        return ([h[0] for h in self.handles] + [c[0] for c in self.callbacks] +
                [e.name for e in self.enums] + [s.name for s in self.structs])

    def names(self) -> set:
        """Returns the names of all declarations except fields."""
        return {f.name for f in self.functions + self.inlines} | set(self.types()) | set(self.values())


# ---------------------------------------------------------------- the text


def files_of(umbrella: pathlib.Path) -> List[pathlib.Path]:
    """Returns the headers in reading order; the umbrella header is first."""
    names = re.findall(r'^#include "(mpcore/\w+\.h)"', umbrella.read_text(encoding="utf-8"), re.M)
    return [umbrella] + [umbrella.parent / name for name in names]


def by_dependency(paths: List[pathlib.Path]) -> List[pathlib.Path]:
    """Returns the headers with each one after those that it includes."""
    ordered: List[pathlib.Path] = []

    def visit(path: pathlib.Path) -> None:
        for name in re.findall(r'^#include "(\w+\.h)"', path.read_text(encoding="utf-8"), re.M):
            visit(path.parent / name)
        if path not in ordered:
            ordered.append(path)

    for path in paths:
        visit(path)
    return ordered


SYSTEM_TYPES = "size_t int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t".split()
DEFINE = re.compile(r"^#define (MP_\w+)[ ]+(?!__attribute__|extern|})([^\s\\].*?)\s*(?:/\*.*)?$", re.M)


def syntax_tree(umbrella: pathlib.Path, options=("-DMP_ENABLE_EXPERIMENTAL",)) -> c_ast.FileAST:
    """Returns the syntax tree of all headers.  Integer macros are enumerators at its end."""
    text = "".join(f"typedef int {name};\n" for name in SYSTEM_TYPES)
    constants = []
    for path in by_dependency(files_of(umbrella)):
        content = path.read_text(encoding="utf-8")
        constants += [name for name, _ in DEFINE.findall(content)]
        text += f'# 1 "{path}"\n' + re.sub(r"^#include.*$", "", content, flags=re.M)
    values = ", ".join(f"VALUE_OF_{name} = {name}" for name in constants)
    text += f'# 1 "constants"\nenum {{ {values} }};\n'
    compiler = shlex.split(os.environ.get("CC", "cc"))
    done = subprocess.run([*compiler, "-E", "-U__GNUC__", *options, "-x", "c", "-"],
                          input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HeaderError(done.stderr)
    try:
        return c_parser.CParser().parse(done.stdout)
    except Exception as error:  # pycparser's ParseError has moved between its modules
        raise HeaderError(str(error)) from None


def comment_text(comment: str) -> str:
    """Returns the text of /** ... */ or /**< ... */ without comment markers."""
    lines = re.sub(r"^/\*\*<?|\*/$", "", comment).split("\n")
    lines = [lines[0].strip()] + [re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines[1:]]
    if comment.startswith("/**<"):
        lines = [line.strip() for line in lines]
    elif len(lines) > 1:  # " *  second" is indented by one column more than "/** First"
        lines[1:] = [line[1:] if line.startswith(" ") else line for line in lines[1:]]
    return "\n".join(lines).strip().replace("@source ", "Source: ")


def comments_of(path: pathlib.Path, lines_of_declarations) -> Dict[int, str]:
    """Maps lines of declarations to comments: /** before or /**< after them, as in Doxygen."""
    text = path.read_text(encoding="utf-8")
    declared = sorted(lines_of_declarations)
    found = {}
    for match in re.finditer(r"/\*\*.*?\*/", text, re.S):
        first = text.count("\n", 0, match.start()) + 1
        last = first + match.group().count("\n")
        if match.group().startswith("/**<"):
            found[declared[bisect.bisect_right(declared, first) - 1]] = comment_text(match.group())
        elif not re.search(r"@(page|defgroup|\{|\})", match.group()) and last < declared[-1]:
            found[declared[bisect.bisect_right(declared, last)]] = comment_text(match.group())
    return found


# ---------------------------------------------------------------- from the tree to the model


def number(node, known: Dict[str, int]) -> int:
    if isinstance(node, c_ast.Constant):
        return int(node.value.rstrip("uUlL"), 0)
    if isinstance(node, c_ast.ID):
        return known[node.name]
    if isinstance(node, c_ast.UnaryOp) and node.op == "-":
        return -number(node.expr, known)
    operators = {"+": int.__add__, "*": int.__mul__, "<<": int.__lshift__, "|": int.__or__}
    return operators[node.op](number(node.left, known), number(node.right, known))


def kind_of(node):
    """Returns a Type or a Callback."""
    pointers: list = []
    while isinstance(node, c_ast.PtrDecl):
        pointers.insert(0, "const" in node.quals)
        node = node.type
    if isinstance(node, c_ast.FuncDecl):
        return Callback(kind_of(node.type), tuple(params_of(node)))
    inner = node.type
    base = inner.name if isinstance(inner, c_ast.Struct) else " ".join(inner.names)
    return Type(base, "const" in node.quals, tuple(pointers))


def params_of(function: c_ast.FuncDecl) -> List[Param]:
    params = function.args.params if function.args else []
    return [Param(p.name, kind_of(p.type)) for p in params if p.name is not None]


class Reader:
    def __init__(self, tree: c_ast.FileAST):
        self.model = Model()
        self.documented: List[tuple] = []  # file, line, setter of the comment
        *declarations, constants = tree.ext
        for node in declarations[len(SYSTEM_TYPES):]:
            self.declaration(node)
        for node in constants.type.values.enumerators:
            name = node.name[len("VALUE_OF_"):]
            self.model.constants.append(Constant(name, number(node.value, {})))

    def takes_comment(self, node, take=lambda text: None):
        """Calls take() with the comment of a declaration.  All declarations are listed, because
        comments_of finds the declaration of a comment by its line."""
        self.documented.append((node.coord.file, node.coord.line, take))

    def takes_doc(self, node, thing):
        self.takes_comment(node, lambda text: setattr(thing, "doc", text))

    def declaration(self, node):
        if isinstance(node, c_ast.Typedef):
            self.typedef(node)
        elif isinstance(node, c_ast.FuncDef):
            self.inline(node)
        elif isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            function = Function(node.name, kind_of(node.type.type), params_of(node.type),
                                header=pathlib.Path(node.coord.file).name)
            self.model.functions.append(function)
            self.takes_doc(node, function)
        else:
            raise HeaderError(f"{node.coord}: neither a type nor a function")

    def typedef(self, node):
        inner = getattr(node.type, "type", None)
        if isinstance(inner, c_ast.Enum):
            self.enum(node.name, inner)
        elif isinstance(inner, c_ast.Struct):
            self.struct(node.name, inner)
        elif isinstance(node.type, c_ast.PtrDecl) and isinstance(inner, c_ast.FuncDecl):
            self.model.callbacks.append((node.name, kind_of(node.type)))
            self.takes_comment(node)
        else:
            self.model.handles.append((node.name, kind_of(node.type).base))
            self.takes_comment(node)

    def enum(self, name, node):
        enum = Enum(name, [])
        self.model.enums.append(enum)
        self.takes_doc(node, enum)
        for at, each in enumerate(node.values.enumerators):
            enum.values.append((each.name, number(each.value, self.model.values()), ""))
            if each.coord.line != node.coord.line:  # otherwise it is the comment of the enum
                def document(text, at=at):
                    enum.values[at] = (*enum.values[at][:2], text)
                self.takes_comment(each, document)

    def struct(self, name, node):
        struct = Struct(name, [])
        self.model.structs.append(struct)
        self.takes_doc(node, struct)
        for each in node.decls:
            array = number(each.type.dim, {}) if isinstance(each.type, c_ast.ArrayDecl) else 0
            struct.fields.append(Field(each.name, kind_of(each.type.type if array else each.type), array))
            self.takes_comment(each)

    def inline(self, node):
        calls: List[str] = []

        class Calls(c_ast.NodeVisitor):
            def visit_FuncCall(self, call):
                calls.append(call.name.name)

        Calls().visit(node.body)
        self.takes_comment(node)
        if not any(name.startswith("mp_") for name in calls):
            return  # a constructor of a small struct: the layers have natural forms for it
        init = next((f for f in self.model.functions if [f.name] == calls), None)
        if init is None:
            raise HeaderError(f"{node.coord}: {node.decl.name} should call one function")
        kind = node.decl.type
        inline = Inline(node.decl.name, kind_of(kind.type), params_of(kind), init.name)
        self.model.inlines.append(inline)


def host_outputs(doc: str, more: str = "") -> set:
    """Returns the parameters that are documented as "host, out", followed by the pattern `more`."""
    return {name for match in re.finditer(rf"@param ([\w,]+)  +host, out\b{more}", doc)
            for name in match.group(1).split(",")}


def read(umbrella: pathlib.Path) -> Model:
    reader = Reader(syntax_tree(umbrella))
    model = reader.model
    for path in files_of(umbrella):
        takers: Dict[int, list] = {}
        for file, line, take in reader.documented:
            if file == str(path):
                takers.setdefault(line, []).append(take)
        text = path.read_text(encoding="utf-8")
        for match in DEFINE.finditer(text):  # constants
            takers.setdefault(text.count("\n", 0, match.start()) + 1, [])
        if takers:
            for line, words in comments_of(path, takers).items():
                for take in takers[line]:
                    take(words)
    for f in model.functions:
        for p in f.params:
            p.host_out = p.name in host_outputs(f.doc)
            p.is_optional = p.name in host_outputs(f.doc, r", (each )?optional\b")
    return model
