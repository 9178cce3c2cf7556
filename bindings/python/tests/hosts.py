"""Helpers of the tests."""

import array
import ctypes
import os
import struct
import unittest

import mpcore
from mpcore.arrays import _Tensor

try:
    import numpy
except ImportError:
    numpy = None

TARGET = os.environ.get("MP_TEST_DEVICE", "host")  # or cuda

needs_numpy = unittest.skipIf(numpy is None, "no numpy for this Python")
needs_host = unittest.skipIf(TARGET != "host", "passes host arrays, which only the host target supports")


def context() -> mpcore.Context:
    return mpcore.Context(TARGET)


def capsule(struct, name, destructor=None):
    """Returns a capsule of DLPack, which does not keep the struct alive."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(struct), name, ctypes.cast(destructor, ctypes.c_void_p))


class OnlyDlpack:
    """An array that supports only DLPack."""

    def __init__(self, owner):
        self.owner = owner

    def __dlpack__(self, **options):
        return self.owner.__dlpack__(**options)


class Floats:
    """Python's own array with a shape and an array interface, read-only."""

    def __init__(self, numbers, shape, typestr="<f4"):
        # f2: bits
        kinds = {"<f2": "H", "<f4": "f", "<i4": "i", "<i8": "q", "|u1": "B"}
        self.values = array.array(kinds[typestr], numbers)
        self.__array_interface__ = {"shape": shape, "typestr": typestr, "version": 3,
                                    "data": (self.values.buffer_info()[0], True)}


class Fleeting(Floats):
    """Floats that become NaN when the last reference is dropped, as if the memory were reused."""

    _memory: list = []  # never freed, so that a use after free reads NaN and not arbitrary data

    def __del__(self):
        self._memory.append(self.values)
        for i in range(len(self.values)):
            self.values[i] = float("nan")


class FleetingCopy:
    """Numbers that DLPack exports as a copy, whose bits are set when its capsule is freed."""

    _memory: list = []  # never freed, so that a use after free reads NaN and not arbitrary data
    KINDS = {"fp16": (2, ctypes.c_uint16), "fp32": (2, ctypes.c_float),
             "int32": (0, ctypes.c_int32), "int64": (0, ctypes.c_int64)}

    def __init__(self, numbers, shape, dtype="fp32"):
        self._numbers, self._shape = list(numbers), shape
        self._code, self._kind = self.KINDS[dtype]
        if dtype == "fp16":
            self._numbers = struct.unpack(f"={len(self._numbers)}H",
                                          struct.pack(f"={len(self._numbers)}e", *self._numbers))

    def __dlpack__(self, stream=None):
        data = (self._kind * len(self._numbers))(*self._numbers)
        shape, bits = (ctypes.c_int64 * len(self._shape))(*self._shape), 8 * ctypes.sizeof(self._kind)
        tensor = _Tensor(ctypes.addressof(data), 1, 0, len(shape), self._code, bits, 1, shape, None, 0)

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def release(capsule):
            ctypes.memset(data, 0xFF, ctypes.sizeof(data))

        self._memory.append((data, shape, tensor, release))
        return capsule(tensor, b"dltensor", release)


def integers(count, seed):
    """Small integers, whose sums of products are exact in fp32."""
    return [(i * 7 + seed * 5) % 9 - 4 for i in range(count)]


def values(got):
    return list(array.array("f", got.tobytes()))


def product(a, b, m, n, k):
    return [sum(a[i * k + p] * b[p * n + j] for p in range(k)) for i in range(m) for j in range(n)]


class Case(unittest.TestCase):
    def setUp(self):
        self.context = context()

    def array(self, numbers, shape, dtype="fp32"):
        return self.context.array(Floats(numbers, shape), dtype)

    def list_of(self, *tensors):
        return mpcore.TensorList(self.context, [self.array(t, (len(t),)) for t in tensors])

    def refused(self, kind, sentence, call, *arguments, **options):
        with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
            call(*arguments, **options)

    def all_refused(self, *table):
        """Expects that each call raises: rows of an exception, a pattern of its message, a call."""
        for kind, sentence, call in table:
            self.refused(kind, sentence, call)
