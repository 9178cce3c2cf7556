"""Copies of arrays: N C H W to N H W C and back, and strided copies (mpcore/layers.h)."""

from __future__ import annotations

from typing import Any, Tuple

from . import _epilogue, _sys
from ._library import check, fill, lib
from .context import Context, DeviceArray, output_of, stream_pointer
from .convolution import images


def nchw_to_nhwc(context: Context, src: Any, dst: Any = None, *, dtype: Any = None, stream: Any = None) -> Any:
    """Copies N C H W images to N H W C, converted to `dtype` (default: that of src); returns
    dst."""
    n, c, h, w = images(context.check_array(src, "src").shape, "src")
    return _turn(context, lib.mp_nchw_to_nhwc, src, dst, (n, h, w, c), (n, c, h, w), dtype, stream)


def nhwc_to_nchw(context: Context, src: Any, dst: Any = None, *, dtype: Any = None, stream: Any = None) -> Any:
    """Copies N H W C images to N C H W, converted to `dtype` (default: that of src); returns
    dst."""
    n, h, w, c = images(context.check_array(src, "src").shape, "src")
    return _turn(context, lib.mp_nhwc_to_nchw, src, dst, (n, c, h, w), (n, c, h, w), dtype, stream)


def _turn(context: Context, function: Any, src: Any, dst: Any, shape: Tuple[int, ...], nchw: Tuple[int, ...],
          dtype: Any, stream: Any) -> Any:
    read = context.check_array(src, "src")
    if dst is None:
        dst = DeviceArray(context, shape, dtype or read.dtype)
    got = context.check_array(dst, "dst", dtype=dtype, shape=shape, writable=True)
    check(function(context.handle, *nchw, read, read.mp_dtype, got, got.mp_dtype, stream_pointer(stream)))
    return dst


def strided_copy(context: Context, x: Any, y: Any = None, *, alpha: float = 1.0, beta: float = 0.0,
                 found_inf: Any = None, amax: Any = None, stream: Any = None) -> Any:
    """Computes y = alpha x + beta y; returns y.  See mp_strided_copy.

    x      any strides except negative ones, such as a slice, a transposed or a broadcast array
    y      the shape and type of x, also strided, such as a part of a concatenation
    alpha  factor of x
    beta   factor of the previous y
    """
    if y is None and beta != 0:
        raise ValueError(f"beta = {beta} requires y")
    read = context.check_array(x, "x", dense=False)
    y, got = output_of(context, y, "y", read.shape, read.dtype, dense=False)
    desc = _sys.mp_strided_copy_desc_default(read.mp_dtype)
    extents = read.shape[:_sys.MP_STRIDED_COPY_MAX_RANK]  # the library rejects a higher rank
    # The stride of a single item has no meaning.
    x_stride, y_stride = (tuple(stride if extent > 1 and read.size > 0 else 0
                                for extent, stride in zip(extents, each.strides)) for each in (read, got))
    fill(desc, {"rank": len(read.shape), "extent": extents, "x_stride": x_stride, "y_stride": y_stride,
                "alpha": alpha, "beta": beta})
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_strided_copy(context.handle, desc, read, got, stats, stream_pointer(stream)))
    return y
