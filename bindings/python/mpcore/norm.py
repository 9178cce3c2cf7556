"""Layer and RMS normalization (mpcore/norm.h)."""

from __future__ import annotations

from typing import Any

from . import _epilogue, _sys
from ._library import check, enumerator, fill, lib
from .arrays import DTYPES, View, dtype_name, outer_strides, point, view
from .context import Context, DeviceArray, stream_pointer
from .tensors import views_of


class Norm:
    """Normalization of arrays with `rows` x `groups` x `columns` elements.

    kind             "layer" or "rms" (mp_norm_kind_t)
    groups           vectors of a row that are normalized separately, such as heads
    dtype            type of x, y and their gradients
    dtype_residual   type of residual, sum and their gradients: "fp32", or None for dtype
    zero_centered    multiply by 1 + gamma
    dropout          probability that an element of x becomes 0
    dropout_seed     64-bit number; use a different one for each layer
    mean, rstd       float32, one per vector: statistics of the last forward(), read by backward();
                     mean is None for "rms"

    The object owns these arrays and its workspace, so use it in one stream at a time, and call
    forward once before each backward.  x, y, dx and dy can be strided arrays of shape (..., groups,
    columns), or (..., columns) for one group.  gamma, beta and their gradients are float32, one per
    column; gamma = None means 1, beta = None means 0; gradients that are None are not computed.
    """

    def __init__(self, context: Context, kind: Any, rows: int, columns: int, dtype: Any = "fp16", *, groups: int = 1,
                 dtype_residual: Any = None, epsilon: float = 1e-5, zero_centered: bool = False, dropout: float = 0.0,
                 dropout_seed: int = 0):
        self.context, self.dtype = context, dtype_name(dtype)
        self.dtype_residual = dtype_name(dtype_residual or dtype)
        self.groups, self.columns, self.size = groups, columns, rows * groups * columns
        self.desc = _sys.mp_norm_desc_default(enumerator(_sys.mp_norm_kind_t, kind, "kind"), 0, 0,
                                              DTYPES[self.dtype][1] or 0)
        fill(self.desc, {"rows": rows, "columns": columns, "groups": groups, "epsilon": epsilon,
                         "dtype_residual": DTYPES[self.dtype_residual][1] or 0, "dropout": dropout,
                         "dropout_seed": dropout_seed,
                         "flags": _sys.MP_NORM_FLAG_ZERO_CENTERED if zero_centered else 0})
        size = _epilogue.bytes_of(lib.mp_norm_backward_workspace_size, context.handle, self.desc)
        self.workspace = context.empty(size, "uint8")
        self.rstd = context.zeros(rows * groups)
        self.mean = context.zeros(rows * groups) if self.desc.kind == _sys.MP_NORM_LAYER else None

    def forward(self, x: Any, gamma: Any = None, beta: Any = None, y: Any = None, *, residual: Any = None,
                sum: Any = None, dropout_offset: Any = None, stream: Any = None) -> Any:
        """Computes y = (r - mean) rstd gamma + beta of r = residual + dropout(x); returns y.

        y               can be x
        sum             as many elements as x, written: r, for backward; can be residual
        dropout_offset  int64, 1 element, as in dropout()
        """
        desc = type(self.desc).from_buffer_copy(self.desc)
        read = self._rows(desc, "x", x, "x")
        y = DeviceArray(self.context, read.shape, self.dtype) if y is None else y
        tensors = self._tensors(
            x=read, y=self._rows(desc, "y", y, "y", True), **self._views(residual=residual), **self._views(True, sum=sum),
            **views_of(self.context, self.columns, False, gamma=gamma, beta=beta),
            **views_of(self.context, 1, False, "int64", dropout_offset=dropout_offset))
        check(lib.mp_norm_forward(self.context.handle, desc, tensors, stream_pointer(stream)))
        return y

    def backward(self, x: Any, dy: Any, gamma: Any = None, dgamma: Any = None, dbeta: Any = None, dx: Any = None, *,
                 sum: Any = None, dsum: Any = None, dresidual: Any = None, accumulate: bool = False,
                 dropout_offset: Any = None, found_inf: Any = None, amax: Any = None, stream: Any = None) -> Any:
        """Computes the gradients of forward; returns dx.

        x           not read if sum is given
        dx          has the strides of x; can be dy.  None: a new dense array, which requires a
                    dense x
        sum         as written by forward; required if it had a residual
        dsum        gradient of sum from its other uses
        dresidual   gradient of residual, written; can be dsum
        accumulate  add to dgamma and dbeta
        """
        desc = type(self.desc).from_buffer_copy(self.desc)
        grads = self._rows(desc, "y", dy, "dy")
        dx = DeviceArray(self.context, grads.shape, self.dtype) if dx is None else dx
        got = self._rows(desc, "x", dx, "dx", True)
        strides = desc.x_row, desc.x_group
        read = None if sum is not None else self._rows(desc, "x", x, "x")
        if read is not None and (desc.x_row, desc.x_group) != strides:
            raise ValueError(f"dx has strides {got.strides}, not {read.strides} like x")
        if accumulate:
            desc.flags |= _sys.MP_NORM_FLAG_ACCUMULATE
        tensors = self._tensors(
            x=read, dy=grads, dx=got, **self._views(sum=sum, dsum=dsum), **self._views(True, dresidual=dresidual),
            **views_of(self.context, self.columns, False, gamma=gamma),
            **views_of(self.context, self.columns, dgamma=dgamma, dbeta=dbeta),
            **views_of(self.context, 1, False, "int64", dropout_offset=dropout_offset),
            stats=_epilogue.stats_of(self.context, found_inf, amax))
        check(lib.mp_norm_backward(self.context.handle, desc, tensors, self.workspace.pointer, self.workspace.nbytes,
                                   stream_pointer(stream)))
        return dx

    def _rows(self, desc: Any, like: str, array: Any, name: str, writable: bool = False) -> View:
        """Returns the view of x, y or a gradient, and sets the strides of x or y in `desc`."""
        got: View = self.context.check_array(array, name, dtype=self.dtype, size=self.size, writable=writable,
                                             dense=False)
        row, group = self.groups * self.columns, self.columns
        if not got.is_dense():
            vector = (self.columns,) if self.groups == 1 else (self.groups, self.columns)
            if got.shape[-len(vector):] != vector:
                raise ValueError(f"{name} has shape {got.shape}, which must end with {vector}")
            row, group = (*outer_strides(got, name, len(vector) + 1), group)[:2]
        fill(desc, {f"{like}_row": row, f"{like}_group": group})
        return got

    def _views(self, writable: bool = False, **arrays: Any) -> Any:
        """Returns the views of the residual and of arrays with its size and type."""
        return views_of(self.context, self.size, writable, self.dtype_residual, **arrays)

    def _tensors(self, **views: Any) -> Any:
        return point(_sys.mp_norm_tensors_t(), mean=None if self.mean is None else view(self.mean),
                     rstd=view(self.rstd), **views)
