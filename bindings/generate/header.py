"""Reads include/mpcore.h into a Model.

The header is regular, and this is a parser of that regularity, not of C: whatever it does not know
is an error that names the line, so that a new form of declaration cannot be passed over in silence.
"""

import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple


class HeaderError(Exception):
    pass


@dataclass(frozen=True)
class Type:
    """`const void *const *`: base "void", const_base True, pointers (True, False); a pointer is True
    where it is const itself."""

    base: str
    const_base: bool = False
    pointers: Tuple[bool, ...] = ()


@dataclass(frozen=True)
class Callback:
    """A pointer to a function."""

    result: Type
    params: Tuple["Param", ...]


@dataclass
class Param:
    name: str
    type: Type
    host_out: bool = False  # the manual says: "host, out"


@dataclass
class Field:
    name: str
    type: object  # Type or Callback
    array: int = 0  # elements; 0: no array
    doc: str = ""


@dataclass
class Struct:
    name: str  # of the typedef: mp_hyper_t
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
    doc: str = ""


@dataclass
class Function:
    name: str
    result: Type
    params: List[Param]
    doc: str = ""
    section: str = ""
    experimental: bool = False


@dataclass
class Inline:
    """A static inline function: a struct by value, as `init` fills it in."""

    name: str
    result: Type
    params: List[Param]
    init: str
    doc: str = ""


@dataclass
class Model:
    constants: List[Constant] = field(default_factory=list)
    enums: List[Enum] = field(default_factory=list)
    structs: List[Struct] = field(default_factory=list)
    handles: List[Tuple[str, str, str]] = field(default_factory=list)  # mp_context_t, mp_context, doc
    callbacks: List[Tuple[str, Callback, str]] = field(default_factory=list)
    functions: List[Function] = field(default_factory=list)
    inlines: List[Inline] = field(default_factory=list)

    def struct(self, name) -> Optional[Struct]:
        return next((s for s in self.structs if s.name == name), None)

    def enum(self, name) -> Optional[Enum]:
        return next((e for e in self.enums if e.name == name), None)

    def is_described(self, kind) -> bool:
        """A pointer to a struct in host memory.  What kernels write is data."""
        struct = self.struct(kind.base) if len(kind.pointers) == 1 else None
        return struct is not None and "device memory" not in struct.doc

    def inline(self, name) -> Optional[Inline]:
        return next((f for f in self.inlines if f.name == name), None)

    def is_handle(self, name) -> bool:
        return any(h[0] == name for h in self.handles)

    def callback(self, name) -> Optional[Callback]:
        return next((c[1] for c in self.callbacks if c[0] == name), None)

    def enumerators(self) -> Dict[str, int]:
        return {name: value for e in self.enums for name, value, _ in e.values}

    def values(self) -> Dict[str, int]:
        return {**{c.name: c.value for c in self.constants}, **self.enumerators()}


# ---------------------------------------------------------------- tokens

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/)|(?P<line_comment>//[^\n]*)|(?P<directive>^[ ]*\#(?:[^\n]*\\\n)*[^\n]*)
      |(?P<space>\s+)|(?P<name>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eE][+-]\d|[\w.])*)
      |(?P<string>"[^"\n]*")|(?P<op>->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>=?:;,.(){}\[\]])""",
    re.X | re.S | re.M,
)


@dataclass
class Token:
    kind: str
    text: str
    line: int


def tokenize(text: str) -> List[Token]:
    tokens, at, line = [], 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise HeaderError(f"mpcore.h:{line}: cannot read {text[at:at + 20]!r}")
        kind, value = match.lastgroup, match.group()
        if kind == "comment" and not value.startswith("/**"):
            banner = re.match(r"/\* =+\n \*\s+(.*)\n", value)
            if banner:
                tokens.append(Token("section", banner.group(1).strip(), line))
        elif kind not in ("space", "line_comment"):
            tokens.append(Token(kind, value, line))
        line += value.count("\n")
        at = match.end()
    return tokens


def comment_text(comment: str) -> str:
    """The words of /** ... */ or /**< ... */, without the frame."""
    lines = re.sub(r"^/\*\*<?|\*/$", "", comment).split("\n")
    lines = [lines[0].strip()] + [re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines[1:]]
    if comment.startswith("/**<"):
        lines = [line.strip() for line in lines]
    elif len(lines) > 1:  # "/** First" stands one column left of " *  second"
        lines[1:] = [line[1:] if line.startswith(" ") else line for line in lines[1:]]
    return "\n".join(lines).strip()


# ---------------------------------------------------------------- parser


class Parser:
    def __init__(self, text: str):
        self.tokens = tokenize(text)
        self.at = 0
        self.model = Model()
        self.doc = ""
        self.section = ""
        self.experimental = False

    def fail(self, what: str):
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        raise HeaderError(f"mpcore.h:{token.line}: {what}, found {token.text[:40]!r}")

    def peek(self, text: str = "") -> Optional[Token]:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        return token if token and (not text or token.text == text) else None

    def accept(self, text: str) -> bool:
        found = self.peek(text) is not None
        self.at += found
        return found

    def expect(self, text: str):
        if not self.accept(text):
            self.fail(f"expected {text!r}")

    def name(self) -> str:
        token = self.peek()
        if not token or token.kind != "name":
            self.fail("expected a name")
        self.at += 1
        return token.text

    def parse(self) -> Model:
        self.skip_prologue()
        while self.peek():
            token = self.peek()
            if token.kind == "section":
                self.section, self.doc = token.text, ""
                self.at += 1
            elif token.kind == "comment":
                if not token.text.startswith("/**<"):
                    self.doc = comment_text(token.text)
                self.at += 1
            elif token.kind == "directive":
                self.directive(token)
            else:
                self.declaration()
                self.doc = ""
        return self.model

    def skip_prologue(self):
        while not (self.peek() and self.peek().text.startswith("#define MP_VERSION_MAJOR")):
            if self.peek() is None:
                self.fail("no MP_VERSION_MAJOR")
            if self.peek().kind == "section":
                self.section = self.peek().text
            self.at += 1

    def directive(self, token: Token):
        self.at += 1
        text = re.sub(r"\\\n", " ", token.text).strip()
        text = re.sub(r"/\*.*?\*/", "", text).strip()
        if text.startswith("#if defined(__GNUC__)") or text.startswith("#ifdef __cplusplus"):
            while not self.peek().text.startswith("#endif"):
                self.at += 1
            self.at += 1
            self.doc = ""
        elif text == "#ifdef MP_ENABLE_EXPERIMENTAL":
            self.experimental = True
        elif text == "#endif":
            self.experimental = False
        elif text.startswith("#define"):
            self.define(text, token.line)
            self.doc = ""
        else:
            raise HeaderError(f"mpcore.h:{token.line}: cannot read {text!r}")

    def define(self, text: str, line: int):
        match = re.match(r"#define (\w+)(\([^ )]*\))? +(.*)$", text)
        if match and match.group(1) == "MP_INIT_STRUCT":
            return
        if not match or match.group(2) is not None and not re.match(r"\(-?\d+\)$", match.group(2)):
            raise HeaderError(f"mpcore.h:{line}: cannot read {text!r}")
        name, value = match.group(1), match.group(3)
        known = self.model.values()
        expression = re.sub(r"\b[A-Z_]\w*\b", lambda m: str(known[m.group()]), value)
        if not re.match(r"^[-+*()\d\s<|x]+$", expression):
            raise HeaderError(f"mpcore.h:{line}: {name} is no integer: {value!r}")
        self.model.constants.append(Constant(name, eval(expression), self.doc or self.trailing()))

    def trailing(self) -> str:
        token = self.peek()
        if token and token.kind == "comment" and token.text.startswith("/**<"):
            self.at += 1
            return comment_text(token.text)
        return ""

    # ---- declarations

    def declaration(self):
        if self.accept("typedef"):
            self.typedef()
        elif self.accept("MP_API"):
            self.function()
        elif self.accept("static"):
            self.expect("inline")
            self.inline()
        elif self.accept("extern"):  # extern "C" {, where __cplusplus was not skipped
            self.fail("unexpected extern")
        else:
            self.fail("expected typedef, MP_API or static inline")

    def typedef(self):
        doc = self.doc
        if self.accept("enum"):
            self.name()
            values = self.enumerators()
            self.model.enums.append(Enum(self.name(), values, doc))
        elif self.peek("struct") and self.tokens[self.at + 2].text == "{":
            self.at += 2
            fields = self.fields()
            self.model.structs.append(Struct(self.name(), fields, doc))
        elif self.accept("struct"):
            tag = self.name()
            self.expect("*")
            name = self.name()
            self.expect(";")
            self.model.handles.append((name, tag, doc or self.trailing()))
            return
        else:
            result = self.type()
            self.expect("(")
            self.expect("*")
            name = self.name()
            self.expect(")")
            self.model.callbacks.append((name, Callback(result, tuple(self.params())), doc))
        self.expect(";")

    def enumerators(self) -> list:
        self.expect("{")
        values: list = []
        doc = ""
        while not self.accept("}"):
            token = self.peek()
            if token.kind == "comment":
                self.at += 1
                if token.text.startswith("/**<"):
                    name, value, _ = values[-1]
                    values[-1] = (name, value, comment_text(token.text))
                else:
                    doc = comment_text(token.text)
                continue
            name = self.name()
            self.expect("=")
            expression = ""
            while self.peek().text not in (",", "}") and self.peek().kind != "comment":
                expression += self.peek().text
                self.at += 1
            if not re.match(r"^-?\d+(<<\d+)?$", expression):
                self.fail(f"{name} = {expression!r} is no integer")
            values.append((name, eval(expression), doc))
            doc = ""
            self.accept(",")
        return values

    def fields(self) -> List[Field]:
        self.expect("{")
        fields: List[Field] = []
        doc, last = "", 0
        while not self.accept("}"):
            token = self.peek()
            if token.kind == "comment":
                self.at += 1
                text = comment_text(token.text)
                if token.text.startswith("/**<"):
                    for f in fields[last:]:
                        f.doc = text
                else:
                    doc = text
                continue
            last = len(fields)
            fields += self.field(doc)
            doc = ""
        return fields

    def field(self, doc: str) -> List[Field]:
        base, const_base = self.base_type()
        out = []
        while True:
            pointers = self.pointers()
            if self.accept("("):
                self.expect("*")
                name = self.name()
                self.expect(")")
                kind: object = Callback(Type(base, const_base, pointers), tuple(self.params()))
            else:
                kind, name = Type(base, const_base, pointers), self.name()
            array = 0
            if self.accept("["):
                array = int(self.peek().text)
                self.at += 1
                self.expect("]")
            out.append(Field(name, kind, array, doc))
            if self.accept(";"):
                return out
            self.expect(",")

    def base_type(self) -> Tuple[str, bool]:
        const = self.accept("const")
        self.accept("struct")
        base = self.name()
        const = self.accept("const") or const
        return base, const

    def pointers(self) -> Tuple[bool, ...]:
        out = []
        while self.accept("*"):
            out.append(self.accept("const"))
        return tuple(out)

    def type(self) -> Type:
        base, const = self.base_type()
        return Type(base, const, self.pointers())

    def params(self) -> List[Param]:
        self.expect("(")
        out: List[Param] = []
        if self.peek("void") and self.tokens[self.at + 1].text == ")":
            self.at += 1
        while not self.accept(")"):
            kind = self.type()
            out.append(Param(self.name(), kind))
            if not self.peek(")"):
                self.expect(",")
        return out

    def function(self):
        doc, result = self.doc, self.type()
        name, params = self.name(), self.params()
        self.expect(";")
        host = host_outputs(doc)
        for p in params:
            p.host_out = p.name in host
        self.model.functions.append(
            Function(name, result, params, doc, self.section, self.experimental))

    def inline(self):
        doc, result = self.doc, self.type()
        name, params = self.name(), self.params()
        if not self.peek("{"):
            self.fail("expected {")
        start, depth = self.at, 0
        while True:
            depth += (self.peek().text == "{") - (self.peek().text == "}")
            self.at += 1
            if depth == 0:
                break
        calls = [a.text for a, b in zip(self.tokens[start:self.at], self.tokens[start + 1:self.at])
                 if a.kind == "name" and b.text == "("]
        init = next((f for f in self.model.functions if [f.name] == calls), None)
        if init is None:
            self.fail(f"{name} should call one function")
        self.model.inlines.append(Inline(name, result, params, init.name, doc or init.doc))


def host_outputs(doc: str) -> set:
    """Names of the parameters that the manual calls "host, out"."""
    return {name for match in re.finditer(r"@param ([\w, ]+?)  +host, out\b", doc)
            for name in re.split(r"\s*,\s*", match.group(1))}


def read(path) -> Model:
    with open(path, encoding="utf-8") as f:
        return Parser(f.read()).parse()
