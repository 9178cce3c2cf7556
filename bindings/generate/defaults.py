"""The bodies of the header's inline functions (mp_*_default and their like), as statements.

The library does not export these functions: the size of a struct is the caller's.  So each face has
them in its own language, translated from here.  They are written in a corner of C that this file
reads completely; anything else is an error.  That the translations give the bytes that the C compiler
gives is a test (tests/bindings/test_generate.py).

Statements   ("declare", Type, name, value or None)  ("assign", targets, value)  ("return", value)
             ("switch", value, [(label or None for default, statements)])
Expressions  ("number", text)  ("name", name)  ("member", value, field)  ("address", value)
             ("cast", Type, value)  ("negative", value)  ("binary", op, left, right)
             ("choose", condition, yes, no)  ("call", function, arguments)  ("sizeof", name)
"""

from .header import HeaderError, Inline, Model, Parser, Type

PRECEDENCE = [["||"], ["&&"], ["|"], ["&"], ["==", "!="], ["<", ">", "<=", ">="], ["+", "-"], ["*", "/"]]
INTEGERS = ("int", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t", "uint8_t", "uint16_t")
FLOATS = ("float", "double")


class Body(Parser):
    def __init__(self, function: Inline, model: Model):
        self.tokens, self.at = function.body, 0
        self.model = model

    def statements(self, ends=()) -> list:
        out = []
        while self.peek() and self.peek().text not in ends:
            statement = self.statement()
            if statement:
                out.append(statement)
        return out

    def statement(self):
        text = self.peek().text
        if text == "memset":  # memset(&x, 0, sizeof x): every face begins with zeros
            while not self.accept(";"):
                self.at += 1
            return None
        if self.accept("return"):
            value = self.expression()
            self.expect(";")
            return "return", value
        if self.accept("switch"):
            return self.switch()
        if text == "const" or text in INTEGERS + FLOATS or self.model.struct(text):
            kind = self.type()
            name = self.name()
            value = self.expression() if self.accept("=") else None
            self.expect(";")
            return "declare", kind, name, value
        values = [self.expression()]
        while self.accept("="):
            values.append(self.expression())
        self.expect(";")
        if len(values) < 2:
            self.fail("expected an assignment")
        return "assign", values[:-1], values[-1]

    def switch(self):
        self.expect("(")
        value = self.expression()
        self.expect(")")
        self.expect("{")
        cases: list = []
        while not self.accept("}"):
            if self.accept("default"):
                label = None
            else:
                self.expect("case")
                label = self.name()
            self.expect(":")
            body = self.statements(("break", "case", "default", "}"))
            ends = self.accept("break")
            if ends:
                self.expect(";")
            if not ends and not self.peek("}") and not (body and body[-1][0] == "return"):
                self.fail("a case that falls through")
            cases.append((label, body))
        return "switch", value, cases

    def expression(self):
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.expect(":")
        return "choose", condition, yes, self.expression()

    def binary(self, level: int):
        if level == len(PRECEDENCE):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() and self.peek().text in PRECEDENCE[level]:
            op = self.peek().text
            self.at += 1
            left = "binary", op, left, self.binary(level + 1)
        return left

    def unary(self):
        if self.accept("-"):
            return "negative", self.unary()
        if self.accept("&"):
            return "address", self.unary()
        if self.accept("sizeof"):
            return "sizeof", self.name()
        if self.accept("("):
            if self.peek().text in INTEGERS + FLOATS or self.model.enum(self.peek().text):
                kind = self.type()
                self.expect(")")
                return "cast", kind, self.unary()
            value = self.expression()
            self.expect(")")
            return value
        return self.postfix()

    def postfix(self):
        token = self.peek()
        if token.kind == "number":
            self.at += 1
            return "number", token.text
        value: tuple = ("name", self.name())
        while True:
            if self.accept("->") or self.accept("."):
                value = "member", value, self.name()
            elif self.accept("("):
                arguments = []
                while not self.accept(")"):
                    arguments.append(self.expression())
                    self.accept(",")
                value = "call", value[1], arguments
            else:
                return value


def body(function: Inline, model: Model) -> list:
    return Body(function, model).statements()


# ---------------------------------------------------------------- the value for arguments of 0


def zero_values(function: Inline, model: Model) -> dict:
    """Field -> ("number", text) or ("name", constant), where every argument is 0 and the field is
    not: the default initialisation of a language that has one."""
    values: dict = {}
    arguments = {p.name for p in function.params}
    constants = model.values()

    def is_zero(literal) -> bool:
        return number(literal) == 0

    def number(literal) -> float:
        if literal[0] == "name":
            return constants[literal[1]]
        return float(literal[1].rstrip("fFuUlL"))

    def literal(e):
        kind = e[0]
        if kind == "number" or kind == "name" and e[1] in constants:
            return e
        if kind == "name" and e[1] in arguments:
            return "number", "0"
        if kind == "member":
            return values.get(e[2], ("number", "0"))
        if kind == "cast":
            return literal(e[2])
        if kind == "binary" and e[1] == "==":
            return "number", str(int(number(literal(e[2])) == number(literal(e[3]))))
        if kind == "choose":
            return literal(e[3] if is_zero(literal(e[1])) else e[2])
        raise HeaderError(f"{function.name}: no value for {e}")

    def run(statements) -> bool:
        """Whether it returned."""
        for s in statements:
            if s[0] == "declare" and s[3]:
                call(s[3])
            elif s[0] == "assign":
                for target in s[1]:
                    if target[2] == "struct_size":
                        continue
                    values[target[2]] = literal(s[2])
            elif s[0] == "switch":
                chosen = number(literal(s[1]))
                for label, inner in s[2]:
                    if label is None or constants[label] == chosen:
                        if run(inner):
                            return True
                        break
            elif s[0] == "return":
                if s[1][0] == "call":
                    call(s[1])
                return True
        return False

    def call(e):
        inner = model.inline(e[1])
        inner_constants = [a for a in e[2] if a[0] == "name" and constants.get(a[1])]
        if inner_constants:
            raise HeaderError(f"{function.name}: {e[1]} with arguments that are not 0")
        values.update(zero_values(inner, model))

    run(body(function, model))
    return {name: value for name, value in values.items() if not is_zero(value)}
