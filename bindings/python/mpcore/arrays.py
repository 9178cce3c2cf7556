"""Address, type, shape and strides of any array.

Accepts arrays of this package and all arrays with __cuda_array_interface__ (cupy, numba, torch on
CUDA), __array_interface__ (numpy) or __dlpack__ (torch, jax, tensorflow, numpy).  Copies no data
and imports none of these packages.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple

from . import _sys
from ._library import Addressed, lib

HOST = "host"

# name: (bytes per element, mp_dtype_t or None, type of the array interface, type code of DLPack)
DTYPES = {
    "float16": (2, _sys.MP_FP16, "<f2", 2),
    "bfloat16": (2, _sys.MP_BF16, "<u2", 4),  # as bits, because numpy has no bfloat16
    "float32": (4, _sys.MP_FP32, "<f4", 2),
    "float64": (8, None, "<f8", 2),
    "int32": (4, None, "<i4", 0),  # labels and indices: see INTEGERS
    "int64": (8, None, "<i8", 0),
    "uint8": (1, None, "|u1", 1),
}
FLOATS = [name for name, row in DTYPES.items() if row[1] is not None]
INTEGERS = {"int32": _sys.MP_INT32, "int64": _sys.MP_INT64}
NAMES: Dict[Any, str] = {key: name for name, (_, number, _, _) in DTYPES.items() if number is not None
                         for key in (int(number), lib.mp_dtype_name(number).decode())}


def dtype_name(dtype: Any) -> str:
    """Returns the name of a type: "float16" for "fp16", "float16", MP_FP16, numpy.float16,
    torch.float16."""
    if isinstance(dtype, int):
        name: str = NAMES.get(int(dtype), str(dtype))
    elif isinstance(dtype, str):
        name = NAMES.get(dtype, dtype)
    elif getattr(dtype, "byteorder", None) == ">":  # the name of a numpy type omits the byte order
        name = dtype.str
    else:
        name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        name = name.replace("torch.", "")
    if name not in DTYPES:
        raise TypeError(f"dtype {name} is not supported; use one of: {', '.join(DTYPES)}")
    return name


def mp_dtype_of(name: str) -> int:
    """Returns the mp_dtype_t; raises TypeError if no kernel supports the type."""
    number = DTYPES[name][1]
    if number is None:
        raise TypeError(f"{name} is not supported; use one of: {', '.join(FLOATS)}")
    return number


@dataclass(frozen=True)
class View(Addressed):
    """Memory layout of an array.  `owner` keeps the memory alive; strides are in elements."""

    _instead = "copy the array and call view()"

    address: int
    dtype: str
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    device: Any  # HOST, the ordinal of a CUDA device, or None: an unknown CUDA device
    writable: bool
    owner: Any

    @property
    def _as_parameter_(self) -> int:
        """The address, for ctypes.  Passing the view itself keeps its memory alive until the call
        returns."""
        return self.address

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
        return self.size * DTYPES[self.dtype][0]

    @property
    def mp_dtype(self) -> int:
        """Type as mp_dtype_t; raises TypeError if no kernel supports it."""
        return mp_dtype_of(self.dtype)

    def require_writable(self, name: str) -> None:
        """Raises ValueError if the memory is read-only."""
        if not self.writable:
            raise ValueError(f"{name} is read-only")

    def is_dense(self) -> bool:
        """Returns whether the elements are contiguous in row-major order."""
        return self.size == 0 or all(extent == 1 or stride == dense for extent, stride, dense
                                     in zip(self.shape, self.strides, dense_strides(self.shape)))


def point(struct: Any, **views: Any) -> Any:
    """Sets pointer fields to arrays or NULL, and struct fields to structs of point().  Keeps the
    arrays alive as long as the struct."""
    for name, got in views.items():
        setattr(struct, name, got.address if isinstance(got, View) else got)
    struct.views = {**getattr(struct, "views", {}), **views}
    return struct


def dense_strides(shape: Sequence[int]) -> Tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def outer_strides(got: View, name: str, count: int) -> Tuple[int, ...]:
    """Returns the strides of all but the last dimension, after merging the leading dimensions so
    that `count` remain."""
    if len(got.shape) < count:
        raise ValueError(f"{name} has {len(got.shape)} dimensions, but must have at least {count}")
    # The stride of a single item has no meaning.
    levels = [(extent, dense if extent == 1 or got.size == 0 else stride)
              for extent, stride, dense in zip(got.shape, got.strides, dense_strides(got.shape))]
    leading, inner = levels[:1 - count], levels[1 - count:]
    merged = [level for level in leading if level[0] != 1] or leading[-1:]
    strides = [stride for _, stride in merged[-1:] + inner]
    is_regular = strides[-1] == 1 and min(strides) > 0 and all(
        outer[1] == middle[0] * middle[1] for outer, middle in zip(merged, merged[1:]))
    if got.size > 0 and not is_regular:
        raise ValueError(f"rows of {name} must be contiguous, and equally spaced: shape {got.shape}, "
                         f"strides {got.strides}")
    return tuple(strides[:-1])


def view(array: Any) -> View:
    """Returns the View of an array; raises TypeError for other objects and unsupported element
    types."""
    if hasattr(array, "_mpcore_view"):
        own: View = array._mpcore_view()
        return own
    cuda = _interface(array, "__cuda_array_interface__")
    if cuda is not None:
        return _from_interface(array, cuda, _cuda_device(array))
    numpy = _interface(array, "__array_interface__")
    if numpy is not None:
        return _from_interface(array, numpy, HOST)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array)
    raise TypeError(f"{type(array).__name__} is not an array: it must have __cuda_array_interface__, "
                    "__array_interface__ or __dlpack__")


def _interface(array: Any, name: str) -> Optional[Dict[str, Any]]:
    """Returns the interface, or None.  torch raises TypeError for types that the interface cannot
    express."""
    try:
        return getattr(array, name, None)
    except TypeError:
        return None


def _cuda_device(array: Any) -> Optional[int]:
    device = getattr(array, "device", None)
    for attribute in ("index", "id"):  # torch, cupy
        index = getattr(device, attribute, None)
        if isinstance(index, int):
            return index
    return None


def _from_interface(array: Any, interface: Dict[str, Any], device: Any) -> View:
    typestr, data = interface["typestr"], interface.get("data")
    if typestr.startswith(">"):
        raise TypeError(f"elements of {typestr!r} are big-endian, which is not supported; "
                        f"convert with x.astype({'<' + typestr[1:]!r})")
    # "<u2" can be integers: types that are stored as bits are found by the name of the dtype.
    kinds = {row[2]: name for name, row in DTYPES.items() if row[2] != "<u2"}
    name = kinds.get(typestr)
    if name is None:
        name = dtype_name(getattr(array, "dtype", typestr))  # bfloat16 of ml_dtypes
    if not isinstance(data, (tuple, list)):  # the interface also allows a buffer, which PIL uses
        raise TypeError(f"{type(array).__name__} has no address: its data is of type {type(data).__name__}; "
                        "pass numpy.asarray(x)")
    address, read_only = data
    if not 0 <= (address or 0) < 2**64:
        raise ValueError(f"data = {address} is not a valid address")
    shape, size = tuple(interface["shape"]), DTYPES[name][0]
    strides = interface.get("strides")
    if strides is None:
        strides = dense_strides(shape)
    else:
        if any(stride % size for stride in strides):
            raise ValueError(f"strides = {strides} must be multiples of the element size, {size} bytes")
        strides = tuple(stride // size for stride in strides)
    return View(address or 0, name, shape, tuple(strides), device, not read_only, array)


# ---------------------------------------------------------------- DLPack


class _Tensor(ctypes.Structure):
    """DLTensor of DLPack; the following fields of DLManagedTensor are not used."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_CODES = {(code, 8 * size): name for name, (size, _, _, code) in DTYPES.items()}


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned of DLPack 1.0."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor)]


_READ_ONLY = 1  # in flags


def _from_dlpack(array: Any) -> View:
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:  # an older exporter, without a flag for read-only
        capsule = array.__dlpack__()
    pointer, valid = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_IsValid
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    valid.argtypes = pointer.argtypes
    writable = True
    if valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(pointer(capsule, b"dltensor_versioned") or 0)
        tensor, writable = versioned.tensor, not versioned.flags & _READ_ONLY
    else:
        tensor = _Tensor.from_address(pointer(capsule, b"dltensor") or 0)
    name = _CODES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise TypeError(f"DLPack type code {tensor.code} of {tensor.bits} bits, {tensor.lanes} lanes is not "
                        "supported")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else dense_strides(shape)
    if tensor.device_type in (_CPU, _CUDA_HOST):
        device: Any = HOST
    elif tensor.device_type in (_CUDA, _CUDA_MANAGED):
        device = tensor.device_id
    else:
        raise TypeError(f"DLPack device type {tensor.device_type} is not supported; use CUDA or CPU")
    # The capsule is not consumed, so its destructor releases the tensor.
    return View((tensor.data or 0) + tensor.byte_offset, name, shape, strides, device, writable, (array, capsule))
