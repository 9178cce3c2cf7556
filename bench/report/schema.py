"""Compares JSON with a schema, with the standard library alone.

The schema is JSON Schema with the keywords below; any other is refused, so that no schema can
promise what is not checked.  Unlike there, additionalProperties: false also knows the properties
that allOf and $ref bring in.
"""

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
_KEYWORDS = {"title", "description", "$defs", "$ref", "allOf", "oneOf", "type", "const", "enum",
             "required", "properties", "additionalProperties", "items", "minimum",
             "exclusiveMinimum"}


def _is(value, kind: str) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "number":
        return is_number
    if kind == "integer":
        return is_number and float(value).is_integer()
    return isinstance(value, _TYPES[kind])


class Schema:
    def __init__(self, root: dict):
        self.root = root

    def errors(self, value) -> list:
        """One sentence for each thing that is wrong, with where it stands."""
        return self._errors(value, self.root, "")

    def _parts(self, schema: dict):
        """The schema and all that it takes over whole."""
        unknown = set(schema) - _KEYWORDS
        if unknown:
            raise ValueError(f"the schema has keywords that are not checked: {sorted(unknown)}")
        yield schema
        if "$ref" in schema:
            yield from self._parts(self.root["$defs"][schema["$ref"].removeprefix("#/$defs/")])
        for part in schema.get("allOf", ()):
            yield from self._parts(part)

    def _errors(self, value, schema: dict, where: str) -> list:
        parts = list(self._parts(schema))
        found = [f"{where or 'the file'} {error}" for part in parts
                 for error in self._plain(value, part)]
        if isinstance(value, dict):
            found += self._object(value, parts, where)
        for part in parts:
            if isinstance(value, list) and "items" in part:
                for index, item in enumerate(value):
                    found += self._errors(item, part["items"], f"{where}[{index}]")
            if "oneOf" in part:
                # The alternative that fits best is the one that was meant.
                found += min((self._errors(value, one, where) for one in part["oneOf"]), key=len)
        return found

    @staticmethod
    def _plain(value, part: dict):
        kinds = part.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(_is(value, kind) for kind in kinds):
            yield f"is {value!r:.40}, not {' or '.join(kinds)}"
        if "const" in part and value != part["const"]:
            yield f"is {value!r:.40}, not {part['const']!r}"
        if "enum" in part and value not in part["enum"]:
            yield f"is {value!r:.40}, not one of {', '.join(map(str, part['enum']))}"
        if _is(value, "number"):
            if "minimum" in part and not value >= part["minimum"]:
                yield f"is {value}, below {part['minimum']}"
            if "exclusiveMinimum" in part and not value > part["exclusiveMinimum"]:
                yield f"is {value}, not above {part['exclusiveMinimum']}"

    def _object(self, value: dict, parts: list, where: str) -> list:
        known = {}
        for part in parts:
            known.update(part.get("properties", {}))
        found = [f"{where or 'the file'} has no \"{name}\""
                 for part in parts for name in part.get("required", ()) if name not in value]
        if any(part.get("additionalProperties") is False for part in parts):
            found += [f"{where or 'the file'} has an unknown \"{name}\""
                      for name in value if name not in known]
        for name, item in value.items():
            if name in known:
                found += self._errors(item, known[name], f"{where}.{name}".lstrip("."))
        return found
