"""Helpers of the tests."""

import array
import unittest

try:
    import numpy
except ImportError:
    numpy = None

needs_numpy = unittest.skipIf(numpy is None, "no numpy for this Python")


class Floats:
    """Python's own array with a shape and an array interface, read-only."""

    def __init__(self, numbers, shape, typestr="<f4"):
        self.values = array.array("f" if typestr == "<f4" else "i", numbers)
        self.__array_interface__ = {"shape": shape, "typestr": typestr, "version": 3,
                                    "data": (self.values.buffer_info()[0], True)}


def integers(count, seed):
    """Small integers, of which sums of products are exact in fp32."""
    return [(i * 7 + seed * 5) % 9 - 4 for i in range(count)]
