"""Sizes and offsets of structs on 64-bit targets: natural alignment, no packing.
tests/bindings/test_generate.py compares them with a C compiler and with each binding."""

from .header import Callback, Field, HeaderError, Model, Struct, Type

SIZES = {
    "char": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4,
    "int64_t": 8, "uint64_t": 8, "size_t": 8, "int": 4, "float": 4, "double": 8,
}


def size_align(kind, model: Model):
    if isinstance(kind, Callback) or kind.pointers:
        return 8, 8
    if kind.base in SIZES:
        return SIZES[kind.base], SIZES[kind.base]
    if model.enum(kind.base):
        return 4, 4
    if model.is_handle(kind.base) or model.callback(kind.base):
        return 8, 8
    if model.struct(kind.base):
        size, align, _ = struct_layout(model.struct(kind.base), model)
        return size, align
    raise HeaderError(f"unknown type {kind.base}")


def field_size(f: Field, model: Model) -> int:
    return size_align(f.type, model)[0] * (f.array or 1)


def struct_layout(struct: Struct, model: Model):
    """Returns size, alignment, {field: offset}."""
    at, largest, offsets = 0, 1, {}
    for f in struct.fields:
        _, align = size_align(f.type, model)
        at = (at + align - 1) // align * align
        offsets[f.name] = at
        at += field_size(f, model)
        largest = max(largest, align)
    return (at + largest - 1) // largest * largest, largest, offsets


def is_scalar(kind) -> bool:
    return isinstance(kind, Type) and not kind.pointers
