"""Convolution (mpcore/conv.h)."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, List, Sequence, Tuple, Union

from . import _epilogue, _sys
from ._library import check, enumerator, fill, integers, is_integer, lib, read_text
from .arrays import DTYPES, dtype_name, point
from .context import Context, DeviceArray, stream_pointer

Pair = Union[int, Sequence[int]]


def numbers(value: Pair, count: int, name: str) -> Tuple[int, ...]:
    """Expands a number, `count` numbers, or a padding (height, width) to `count` numbers."""
    got = integers(value, name)
    if is_integer(value):
        return got * count
    if count == 4 and len(got) == 2:
        return got[0], got[0], got[1], got[1]
    if len(got) != count:
        raise ValueError(f"{name} has {len(got)} numbers, not {count}")
    return got


def images(shape: Sequence[int], name: str) -> Tuple[int, ...]:
    """Returns a shape of four dimensions."""
    extents = integers(shape, name)
    if len(extents) != 4:
        raise ValueError(f"{name} has {len(extents)} dimensions, not 4")
    return extents


class Conv2d:
    """A convolutional layer with its three passes.

    x_shape          N H W C; `y_shape` is N P Q K
    filter_shape     K R S C/groups
    dtype            type of the inputs; outputs can have any type
    stride, dilation a number, or (height, width)
    padding          a number, (height, width), or (top, bottom, left, right)
    plan             a plan of get_plan, or the name of a kernel

    Each pass returns its output, which it allocates with the type `dtype` (default: that of the
    inputs) if it is None.  beta scales the previous contents of the output.  Options of the
    epilogue (mp_epilogue_t) are passed by name: bias=, activation=, aux= (the shape of the output),
    dbias=, amax=, found_inf=, scale=.
    """

    def __init__(self, context: Context, x_shape: Sequence[int], filter_shape: Sequence[int],
                 dtype: Any = "fp16", *, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1,
                 groups: int = 1, plan: _epilogue.Plan = None):
        self.context, self.dtype = context, dtype_name(dtype)
        self.x_shape, self.filter_shape = images(x_shape, "x_shape"), images(filter_shape, "filter_shape")
        n, h, w, c = self.x_shape
        k, r, s, depth = self.filter_shape
        if depth * groups != c:
            raise ValueError(f"filter_shape has {depth} channels in each of {groups} groups, but x_shape has {c}")
        self.desc = _sys.mp_conv2d_desc_default(1, 1, 1, 1, 1, 1, 1, DTYPES[self.dtype][1] or 0)
        names = ("pad_top", "pad_bottom", "pad_left", "pad_right", "stride_h", "stride_w", "dilation_h",
                 "dilation_w")
        values = (numbers(padding, 4, "padding") + numbers(stride, 2, "stride") +
                  numbers(dilation, 2, "dilation"))
        fill(self.desc, dict(zip(names, values), n=n, h=h, w=w, c=c, k=k, r=r, s=s, groups=groups))
        _epilogue.set_plan(self.desc, plan)
        p, q = ctypes.c_int32(), ctypes.c_int32()
        check(lib.mp_conv2d_get_output_size(self.desc, ctypes.byref(p), ctypes.byref(q)))
        self.y_shape = (n, p.value, q.value, k)

    def fprop(self, x: Any, filter: Any, y: Any = None, **options: Any) -> Any:
        """Computes y = epilogue(alpha conv(x, filter) + beta y); bias has K elements."""
        return self._run(lib.mp_conv2d_fprop, ("x", x, self.x_shape), ("filter", filter, self.filter_shape),
                         ("y", y, self.y_shape), **options)

    def dgrad(self, dy: Any, filter: Any, dx: Any = None, **options: Any) -> Any:
        """Computes dx = epilogue(alpha conv_transpose(dy, filter) + beta dx); bias and dbias have C
        elements."""
        return self._run(lib.mp_conv2d_dgrad, ("dy", dy, self.y_shape),
                         ("filter", filter, self.filter_shape), ("dx", dx, self.x_shape), **options)

    def wgrad(self, x: Any, dy: Any, dfilter: Any = None, **options: Any) -> Any:
        """Computes dfilter = alpha conv(x, dy) + beta dfilter, summed over images and pixels."""
        return self._run(lib.mp_conv2d_wgrad, ("x", x, self.x_shape), ("dy", dy, self.y_shape),
                         ("dfilter", dfilter, self.filter_shape), **options)

    def workspace_size(self, op: Any, dtype: Any = None, *, dbias: bool = False) -> int:
        """Returns the workspace size in bytes with which "fprop", "dgrad" or "wgrad" is fastest;
        often 0."""
        return _epilogue.bytes_of(lib.mp_conv2d_workspace_size, self.context.handle, self._writing(dtype),
                                  enumerator(_sys.mp_conv_op_t, op, "op"), _epilogue.for_query(dbias))

    def get_plan(self, op: Any, dtype: Any = None, *, dbias: bool = False,
                 max_workspace_bytes: int = sys.maxsize) -> _sys.mp_plan_t:
        """Returns the fastest plan of "fprop", "dgrad" or "wgrad"."""
        return _epilogue.plan_of(lib.mp_conv2d_get_plan, self.context.handle, self._writing(dtype),
                                 enumerator(_sys.mp_conv_op_t, op, "op"), _epilogue.for_query(dbias),
                                 max_workspace_bytes)

    def explain(self, op: Any, dtype: Any = None, *, dbias: bool = False) -> str:
        """Describes the plan of "fprop", "dgrad" or "wgrad", for people."""
        return read_text(lambda text, size: lib.mp_conv2d_explain(
            self.context.handle, self._writing(dtype), enumerator(_sys.mp_conv_op_t, op, "op"),
            _epilogue.for_query(dbias), text, size))

    def kernels(self, op: Any, dtype: Any = None) -> List[_sys.mp_kernel_info_t]:
        """Returns an mp_kernel_info_t for every kernel, first the one that is selected."""
        return _epilogue.kernels_of(lib.mp_conv2d_kernel_info, self.context.handle, self._writing(dtype),
                                    enumerator(_sys.mp_conv_op_t, op, "op"))

    def _writing(self, dtype: Any, alpha: float = 1.0, beta: float = 0.0) -> Any:
        desc = type(self.desc).from_buffer_copy(self.desc)
        desc.dtype_out = DTYPES[dtype_name(dtype or self.dtype)][1] or 0
        desc.alpha, desc.beta = alpha, beta
        return desc

    def _run(self, function: Any, first: Tuple[Any, ...], second: Tuple[Any, ...], out: Tuple[Any, ...], *,
             alpha: float = 1.0, beta: float = 0.0, dtype: Any = None, aux: Any = None, workspace: Any = None,
             stream: Any = None, **epilogue: Any) -> Any:
        context = self.context
        read = [context.check_array(array, name, dtype=self.dtype, shape=shape)
                for name, array, shape in (first, second)]
        name, array, shape = out
        if array is None:
            if beta != 0:
                raise ValueError(f"beta = {beta} requires {name}")
            array = DeviceArray(context, shape, dtype or self.dtype)
        got = context.check_array(array, name, dtype=dtype, shape=shape, writable=True)
        made = _epilogue.make(context, shape[-1], **epilogue)
        if aux is not None:
            point(made, aux=context.check_array(aux, "aux", dtype=got.dtype, shape=shape,
                                                writable=_epilogue.writes_aux(made)))
        check(function(context.handle, self._writing(got.dtype, alpha, beta), *read, got, made,
                       *_epilogue.workspace_of(context, workspace), stream_pointer(stream)))
        return array
