"""Devices (Context) and their memory (DeviceArray)."""

from __future__ import annotations

import ctypes
import math
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from . import _sys
from ._library import Handle, Native, Owner, check, fill, integers, is_integer, lib
from .arrays import DTYPES, HOST, INTEGERS, View, dense_strides, dtype_name, outer_strides, view


def stream_pointer(stream: Any) -> Optional[int]:
    """Returns the cudaStream_t of None, an integer, a torch.cuda.Stream or a cupy.cuda.Stream."""
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            stream = getattr(stream, attribute)
            break
    pointer: Optional[int] = stream
    if pointer is not None and not 0 <= pointer < 2**64:
        raise ValueError(f"stream = {pointer} must be from 0 to 2**64 - 1")
    return pointer


class Context(Handle):
    """A device and limits on its use.  Objects created from a context keep it alive.

    device     "auto" (the current CUDA device, otherwise the CPU), "host" (the CPU), "cuda" (the
               current CUDA device), or the ordinal of a CUDA device
    sm_limit   maximum number of SMs; 0: all

    Threads can share a context.
    """

    _destroy = "mp_context_destroy"

    def __init__(self, device: Union[str, int] = "auto", *, sm_limit: int = 0):
        config = _sys.mp_context_config_default()
        names: Dict[Any, int] = {"auto": _sys.MP_DEVICE_AUTO, "host": _sys.MP_DEVICE_HOST,
                                 "cuda": _sys.MP_DEVICE_CURRENT}
        if isinstance(device, str) and device not in names:
            raise ValueError(f"device = {device!r} must be a number or one of: {', '.join(names)}")
        fill(config, {"device": names.get(device, device), "sm_limit": sm_limit})
        handle = ctypes.c_void_p()
        check(lib.mp_context_create(ctypes.byref(handle), config))
        self._own(handle)
        self.info = _sys.mp_device_info_t()
        check(lib.mp_context_get_info(self.handle, self.info))
        self.on_host = self.info.target == _sys.MP_TARGET_HOST
        # The ordinal of the GPU, if the caller specified it.
        self.device = HOST if self.on_host else (int(device) if is_integer(device) else None)

    @property
    def name(self) -> str:
        """Name of the device, from its driver."""
        name: bytes = self.info.name
        return name.decode()

    def measure_kernels(self, max_kernels: int) -> None:
        """Measures up to `max_kernels` kernels for each new product or convolution and uses the
        fastest; 0 stops measuring.  See mp_tuning_measure."""
        check(lib.mp_tuning_measure(self.handle, max_kernels))

    def __repr__(self) -> str:
        return f"<mpcore.Context on {self.name}>"

    # ---- memory

    def empty(self, shape: Union[int, Sequence[int]], dtype: Any = "float32") -> "DeviceArray":
        """Returns an uninitialized array."""
        return DeviceArray(self, shape, dtype)

    def zeros(self, shape: Union[int, Sequence[int]], dtype: Any = "float32",
              stream: Any = None) -> "DeviceArray":
        """Returns an array of zeros, written in stream order."""
        array = DeviceArray(self, shape, dtype)
        array.clear(stream)
        return array

    def array(self, source: Any, dtype: Any = None, stream: Any = None) -> "DeviceArray":
        """Returns a copy of a dense array on the device, converted to `dtype` if given."""
        got = self.check_array(source, "source", from_host=True)
        out = DeviceArray(self, got.shape, dtype or got.dtype)
        out.copy_from(source, stream)
        return out

    def sync(self, stream: Any = None) -> None:
        """Waits for all work in the stream."""
        check(lib.mp_stream_sync(self.handle, stream_pointer(stream)))

    def cast(self, src: Any, dst: Any, stream: Any = None) -> Any:
        """Converts src to the type of dst; returns dst."""
        read = self.check_array(src, "src")
        got = self.check_array(dst, "dst", shape=read.shape, writable=True)
        check(lib.mp_cast(self.handle, read, read.mp_dtype, got, got.mp_dtype, got.size, stream_pointer(stream)))
        return dst

    def check_array(self, array: Any, name: str, *, dtype: Any = None, shape: Optional[Tuple[int, ...]] = None,
                    size: Optional[int] = None, writable: bool = False, dense: bool = True,
                    from_host: bool = False) -> View:
        """Returns the View of an array, or raises an exception that names the argument.

        from_host: also accept host memory, for mp_memcpy.
        """
        try:
            got = view(array)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None
        if (got.device == HOST) != self.on_host and not (from_host and got.device == HOST):
            where = "the CPU" if got.device == HOST else "a CUDA device"
            here = "the CPU" if self.on_host else "a CUDA device"
            raise ValueError(f"{name} is on {where}, but the context is on {here}")
        if HOST != got.device != self.device and None not in (got.device, self.device):
            raise ValueError(f"{name} is on CUDA device {got.device}, but the context is on {self.device}")
        if dtype is not None and got.dtype != dtype_name(dtype):
            how = ""
            if (got.dtype, dtype) == ("int64", "int32"):  # labels and indices of torch
                how = f"; convert with {name}.astype('int32') or {name}.int()"
            raise TypeError(f"{name} has dtype {got.dtype}, not {dtype_name(dtype)}{how}")
        if shape is not None and got.shape != tuple(shape):
            raise ValueError(f"{name} has shape {got.shape}, not {tuple(shape)}")
        if size is not None and got.size != size:
            raise ValueError(f"{name} has {got.size} elements, not {size}")
        if dense and not got.is_dense():
            raise ValueError(f"{name} is not contiguous: shape {got.shape}, strides {got.strides}")
        if writable:
            got.require_writable(name)
        return got

    def check_integers(self, array: Any, name: str, size: int) -> Tuple[View, int]:
        """Returns labels or indices and their mp_dtype_t."""
        got = self.check_array(array, name, size=size)
        if got.dtype not in INTEGERS:
            raise TypeError(f"{name} has dtype {got.dtype}, not int32 or int64")
        return got, INTEGERS[got.dtype]


class DeviceArray(Owner):
    """A dense array in device memory.

    numpy.asarray(x) on the host target, and torch.as_tensor(x) and cupy.asarray(x) on CUDA, share
    its memory without a copy.  Their arrays keep the memory alive even if this array is closed; the
    context must outlive them.
    """

    _instead = "use context.array(x) to copy its elements or x.numpy() to pickle them"
    _pointer: Optional[Native] = None

    def __init__(self, context: Context, shape: Union[int, Sequence[int]], dtype: Any = "float32"):
        self.context = context
        self.shape = integers(shape, "shape")
        if any(extent < 0 for extent in self.shape):
            raise ValueError(f"shape = {self.shape} must not be negative")
        self.dtype = dtype_name(dtype)
        pointer = ctypes.c_void_p()
        check(lib.mp_malloc(context.handle, ctypes.byref(pointer), max(1, self.nbytes)))
        owner = context.handle
        self._pointer = Native.own(pointer.value or 0, lambda address: lib.mp_free(owner, address), [owner])

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of all elements in bytes."""
        return self.size * DTYPES[self.dtype][0]

    @property
    def pointer(self) -> Native:
        """Device address."""
        if self._pointer is None or self._is_closed:
            raise ValueError("this array is closed")
        return self._pointer

    def _mpcore_view(self) -> View:
        return View(self.pointer, self.dtype, self.shape, dense_strides(self.shape), self.context.device,
                    True, self.pointer)

    @property
    def T(self) -> "TransposedView":
        """Transposed view of the same memory, for gemm."""
        return TransposedView(self)

    def copy_from(self, source: Any, stream: Any = None) -> None:
        """Copies a dense array of equal shape from the host or this device, converting like
        mp_cast.

        Waits for the stream.
        """
        got = self.context.check_array(source, "source", shape=self.shape, from_host=True)
        target = self
        if got.dtype != self.dtype:
            target = DeviceArray(self.context, self.shape, got.dtype)
        where = stream_pointer(stream)
        check(lib.mp_memcpy(self.context.handle, target.pointer, got, got.nbytes, where))
        if target is not self:
            check(lib.mp_cast(self.context.handle, target.pointer, got.mp_dtype, self.pointer,
                              self._mpcore_view().mp_dtype, self.size, where))
        self.context.sync(stream)

    def copy_to(self, out: Any, stream: Any = None) -> None:
        """Copies to a dense, writable array of equal shape and type.  Waits for the stream."""
        got = self.context.check_array(out, "out", dtype=self.dtype, shape=self.shape, writable=True, from_host=True)
        check(lib.mp_memcpy(self.context.handle, got, self.pointer, self.nbytes, stream_pointer(stream)))
        self.context.sync(stream)

    def tobytes(self, stream: Any = None) -> bytes:
        """Returns a copy of the memory.  Waits for the stream."""
        buffer = ctypes.create_string_buffer(self.nbytes)
        check(lib.mp_memcpy(self.context.handle, ctypes.addressof(buffer), self.pointer, self.nbytes,
                            stream_pointer(stream)))
        self.context.sync(stream)
        return buffer.raw

    def numpy(self, stream: Any = None) -> Any:
        """Returns a copy as a numpy array; bfloat16 as bits in uint16."""
        import numpy

        out = numpy.frombuffer(self.tobytes(stream), dtype=DTYPES[self.dtype][2])
        return out.reshape(self.shape).copy()

    def clear(self, stream: Any = None) -> None:
        """Fills the array with zeros, in stream order."""
        check(lib.mp_memset(self.context.handle, self.pointer, 0, self.nbytes, stream_pointer(stream)))

    def _give_back(self) -> None:
        self._pointer = None

    def _interface(self) -> Dict[str, Any]:
        self._is_lent = True
        return {"shape": self.shape, "typestr": DTYPES[self.dtype][2], "data": (self.pointer, False),
                "strides": None, "version": 3}

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        if not self.context.on_host:
            raise AttributeError("this array is on a CUDA device; copy it with numpy()")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        if self.context.on_host:
            raise AttributeError("this array is on the CPU")
        return self._interface()

    def __repr__(self) -> str:
        return f"<mpcore.DeviceArray {self.dtype} {self.shape} on {self.context.name}>"


def output_of(context: Context, out: Any, name: str, shape: Tuple[int, ...], dtype: Any,
              dense: bool = True) -> Tuple[Any, View]:
    """Returns an output, a new one if it is None, and its view."""
    out = DeviceArray(context, shape, dtype) if out is None else out
    return out, context.check_array(out, name, dtype=dtype, shape=shape, writable=True, dense=dense)


def output_like(context: Context, out: Any, name: str, model: View, model_name: str, count: int) -> Tuple[Any, View]:
    """Returns an output, a new one if it is None, and its view.  It must have the type, shape and
    strides of `model`, compared as `count` dimensions."""
    out, got = output_of(context, out, name, model.shape, model.dtype, dense=False)
    if outer_strides(got, name, count) != outer_strides(model, model_name, count):
        raise ValueError(f"{name} has strides {got.strides}, not {model.strides} like {model_name}")
    return out, got


class TransposedView:
    """A matrix or a batch of matrices with the last two dimensions exchanged."""

    def __init__(self, array: DeviceArray):
        if len(array.shape) < 2:
            raise ValueError(f"array has shape {array.shape}, but must have at least 2 dimensions")
        self._array = array

    def _mpcore_view(self) -> View:
        got = self._array._mpcore_view()
        shape, strides = got.shape, got.strides
        return View(got.address, got.dtype, (*shape[:-2], shape[-1], shape[-2]),
                    (*strides[:-2], strides[-1], strides[-2]), got.device, got.writable, got.owner)
