"""Pooling, batch normalization, pointwise operations, gated linear units and losses, in N H W C
(mpcore/layers.h, mpcore/loss.h).

Calls that compute gradients accept found_inf (float32, 1 element: Scaler.found_inf), which is set
to 1 if a gradient is infinite or NaN, and amax (float32, 1 element), which is updated to
max(amax, |gradient|).
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, Dict, Optional, Sequence, Tuple

from . import _epilogue, _sys
from ._gemm import leading, matrix
from ._library import check, enumerator, fill, lib
from .arrays import DTYPES, INTEGERS, View, dtype_name, outer_strides, point, view
from .context import Context, DeviceArray, output_like, output_of, stream_pointer
from .convolution import Pair, images, numbers
from .tensors import view_of, views_of


class Pool2d:
    """A pooling layer.

    mode        "max", "avg_include_pad" or "avg_exclude_pad" (mp_pool_mode_t)
    x_shape     N H W C; `y_shape` is N P Q C
    window      a number, or (height, width)
    stride      a number, or (height, width); None: that of the window
    padding     a number, (height, width), or (top, bottom, left, right)
    dilation    a number, or (height, width): distance between pixels of a window
    ceil_mode   round the size of y up, like torch
    """

    def __init__(self, context: Context, mode: Any, x_shape: Sequence[int], window: Pair, dtype: Any = "fp16",
                 *, stride: Optional[Pair] = None, padding: Pair = 0, dilation: Pair = 1, ceil_mode: bool = False):
        self.context, self.dtype, self.x_shape = context, dtype_name(dtype), images(x_shape, "x_shape")
        n, h, w, c = self.x_shape
        self.desc = _sys.mp_pool2d_desc_default(enumerator(_sys.mp_pool_mode_t, mode, "mode"), 1, 1, 1, 1, 1, 1,
                                                DTYPES[self.dtype][1] or 0)
        names = ("pad_top", "pad_bottom", "pad_left", "pad_right", "window_h", "window_w", "stride_h",
                 "stride_w", "dilation_h", "dilation_w")
        values = (numbers(padding, 4, "padding") + numbers(window, 2, "window") +
                  numbers(window if stride is None else stride, 2, "stride") + numbers(dilation, 2, "dilation"))
        fill(self.desc, dict(zip(names, values), n=n, h=h, w=w, c=c, flags=_sys.MP_POOL_FLAG_CEIL if ceil_mode else 0))
        p, q = ctypes.c_int32(), ctypes.c_int32()
        check(lib.mp_pool2d_get_output_size(self.desc, ctypes.byref(p), ctypes.byref(q)))
        self.y_shape = (n, p.value, q.value, c)

    def forward(self, x: Any, y: Any = None, stream: Any = None, *, index: Any = None) -> Any:
        """Computes the maximum or the mean of each window; returns y.

        index   uint8 array of y_shape, for mode "max": receives the positions of the
                maxima, for backward()
        """
        read = self.context.check_array(x, "x", dtype=self.dtype, shape=self.x_shape)
        y, got = output_of(self.context, y, "y", self.y_shape, self.dtype)
        check(lib.mp_pool2d_forward(self.context.handle, self.desc, read, got, self._index(index), stream_pointer(stream)))
        return y

    def backward(self, x: Any, dy: Any, dx: Any = None, stream: Any = None, *, index: Any = None,
                 found_inf: Any = None, amax: Any = None) -> Any:
        """Computes dx, the gradient of x; returns dx.  x can be None with index, and for the
        average modes."""
        vx = None if x is None else self.context.check_array(x, "x", dtype=self.dtype, shape=self.x_shape)
        read = self.context.check_array(dy, "dy", dtype=self.dtype, shape=self.y_shape)
        dx, got = output_of(self.context, dx, "dx", self.x_shape, self.dtype)
        stats = _epilogue.stats_of(self.context, found_inf, amax)
        check(lib.mp_pool2d_backward(self.context.handle, self.desc, vx, self._index(index), read, got, stats,
                                     stream_pointer(stream)))
        return dx

    def _index(self, index: Any) -> Any:
        return None if index is None else self.context.check_array(index, "index", dtype="uint8", shape=self.y_shape)


class BatchNorm:
    """Batch normalization of arrays with `rows` x `channels` elements; for images, rows is N H W.

    activation     "none" or "relu"
    mean, inv_std  float32, one per channel: statistics of the last forward(), read by backward()

    The object owns these two arrays and its workspace, so use it in one stream at a time, and call
    forward once before each backward.  All per-channel arrays are float32.  gamma = None means 1,
    beta = None means 0; gradients that are None are not computed.
    """

    def __init__(self, context: Context, rows: int, channels: int, dtype: Any = "fp16", *,
                 activation: Any = "none", epsilon: float = 1e-5, momentum: float = 0.1):
        self.context, self.dtype, self.size, self.channels = context, dtype_name(dtype), rows * channels, channels
        self.desc = _sys.mp_batchnorm_desc_default(0, 0, DTYPES[self.dtype][1] or 0)
        fill(self.desc, {"rows": rows, "channels": channels, "epsilon": epsilon, "momentum": momentum,
                         "activation": enumerator(_sys.mp_activation_t, activation, "activation")})
        size = _epilogue.bytes_of(lib.mp_batchnorm_workspace_size, context.handle, self.desc)
        self.workspace = context.empty(size, "uint8")
        self.mean, self.inv_std = context.zeros(channels), context.zeros(channels)

    def forward(self, x: Any, gamma: Any = None, beta: Any = None, y: Any = None, *, running_mean: Any = None,
                running_var: Any = None, stream: Any = None) -> Any:
        """Computes y = activation((x - mean) gamma inv_std + beta) with the statistics of x;
        returns y.

        Updates running_mean and running_var if they are given.
        """
        y, read, got = self._pair("x", x, "y", y)
        tensors = self._tensors(x=read, y=got, **self._channels(gamma=gamma, beta=beta),
                                **self._channels(True, running_mean=running_mean, running_var=running_var))
        check(lib.mp_batchnorm_forward_training(self.context.handle, self.desc, tensors, self.workspace.pointer,
                                                self.workspace.nbytes, stream_pointer(stream)))
        return y

    def inference(self, x: Any, gamma: Any, beta: Any, mean: Any, var: Any, y: Any = None,
                  stream: Any = None) -> Any:
        """Computes y like forward, but with given statistics; y can be x.  Returns y."""
        y, read, got = self._pair("x", x, "y", y)
        given = self._channels(gamma=gamma, beta=beta, mean=mean, var=var)
        tensors = self._tensors(x=read, y=got, running_mean=given.pop("mean"), running_var=given.pop("var"), **given)
        check(lib.mp_batchnorm_forward_inference(self.context.handle, self.desc, tensors, stream_pointer(stream)))
        return y

    def backward(self, x: Any, dy: Any, gamma: Any = None, beta: Any = None, dgamma: Any = None, dbeta: Any = None,
                 dx: Any = None, stream: Any = None, *, found_inf: Any = None, amax: Any = None) -> Any:
        """Computes the gradients of forward; dx can be dy.  Returns dx."""
        vx = self.context.check_array(x, "x", dtype=self.dtype, size=self.size)
        dx, read, got = self._pair("dy", dy, "dx", dx)
        tensors = self._tensors(x=vx, dy=read, dx=got, **self._channels(gamma=gamma, beta=beta),
                                **self._channels(True, dgamma=dgamma, dbeta=dbeta),
                                stats=_epilogue.stats_of(self.context, found_inf, amax))
        check(lib.mp_batchnorm_backward(self.context.handle, self.desc, tensors, self.workspace.pointer,
                                        self.workspace.nbytes, stream_pointer(stream)))
        return dx

    def _pair(self, name: str, array: Any, out_name: str, out: Any) -> Tuple[Any, View, View]:
        """Returns (out, view of array, view of out); allocates out if it is None."""
        read = self.context.check_array(array, name, dtype=self.dtype, size=self.size)
        out = DeviceArray(self.context, read.shape, self.dtype) if out is None else out
        got = self.context.check_array(out, out_name, dtype=self.dtype, size=self.size, writable=True)
        return out, read, got

    def _channels(self, writable: bool = False, **arrays: Any) -> Dict[str, Optional[View]]:
        return views_of(self.context, self.channels, writable, **arrays)

    def _tensors(self, **views: Any) -> Any:
        return point(_sys.mp_batchnorm_tensors_t(), saved_mean=view(self.mean), saved_inv_std=view(self.inv_std),
                     **views)


class ColumnSum:
    """Column sums of arrays with `rows` x `columns` elements, such as the gradient of a bias.

    dtype      type of x
    sum_dtype  type of sum

    The object owns its workspace, so use it in one stream at a time.
    """

    def __init__(self, context: Context, rows: int, columns: int, dtype: Any = "fp16", *, sum_dtype: Any = "fp32"):
        self.context, self.dtype, self.sum_dtype = context, dtype_name(dtype), dtype_name(sum_dtype)
        self.size, self.columns = rows * columns, columns
        self.desc = _sys.mp_column_sum_desc_default(0, 0, DTYPES[self.dtype][1] or 0)
        fill(self.desc, {"rows": rows, "columns": columns, "ld": columns,
                         "dtype_sum": DTYPES[self.sum_dtype][1] or 0})
        size = _epilogue.bytes_of(lib.mp_column_sum_workspace_size, context.handle, self.desc)
        self.workspace = context.empty(size, "uint8")

    def run(self, x: Any, sum: Any = None, *, beta: float = 0.0, scale: Any = None, amax: Any = None,
            found_inf: Any = None, stream: Any = None) -> Any:
        """Computes sum = scale (column sums of x) + beta sum; returns sum.  See mp_column_sum."""
        if sum is None:
            if beta != 0:
                raise ValueError(f"beta = {beta} requires sum")
            sum = DeviceArray(self.context, (self.columns,), self.sum_dtype)
        read = self.context.check_array(x, "x", dtype=self.dtype, size=self.size)
        got = self.context.check_array(sum, "sum", dtype=self.sum_dtype, size=self.columns, writable=True)
        desc = type(self.desc).from_buffer_copy(self.desc)
        fill(desc, {"beta": beta})
        epilogue = _epilogue.make(self.context, self.columns, scale=scale, amax=amax, found_inf=found_inf)
        check(lib.mp_column_sum(self.context.handle, desc, read, got, epilogue,
                                self.workspace.pointer, self.workspace.nbytes, stream_pointer(stream)))
        return sum


def pointwise(context: Context, op: Any, a: Any, b: Any = None, y: Any = None, *, activation: Any = "none",
              slope: float = 0.01, low: float = -math.inf, high: float = math.inf, found_inf: Any = None,
              amax: Any = None, stream: Any = None) -> Any:
    """Computes y = activation(z) for each element; returns y.

    op          "copy": z = a; "add", "sub", "mul", "div": z = a + b and so on; "leaky_relu" or
                "clip" of a; "dleaky_relu", "dclip": a times their derivative at b
                (mp_pointwise_op_t)
    slope       of leaky ReLU
    low, high   bounds of clip
    activation  with "copy" also a derivative such as "drelu": y = a activation'(b)
    b           the shape of a, with contiguous rows if it has two dimensions; or the last
                dimensions of a, such as a bias or a table of positions, which is repeated
    y           can be a, or a contiguous b of equal shape and type
    """
    read = context.check_array(a, "a")
    y, got = output_of(context, y, "y", read.shape, read.dtype)
    columns = read.shape[-1] if read.shape else 1
    desc = _sys.mp_pointwise_desc_default(enumerator(_sys.mp_pointwise_op_t, op, "op"), 0, 0, read.mp_dtype)
    fill(desc, {"rows": read.size // columns if columns else 0, "columns": columns, "ld_b": columns,
                "activation": enumerator(_sys.mp_activation_t, activation, "activation"),
                "slope": slope, "low": low, "high": high})
    other = None
    if b is not None:
        other = context.check_array(b, "b", dense=False)
        ld, repeated = _rows_of_b(other, read.shape, columns)
        fill(desc, {"dtype_b": other.mp_dtype, "ld_b": ld, "rows_b": repeated})
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_pointwise(context.handle, desc, read, other, got, stats, stream_pointer(stream)))
    return y


def _rows_of_b(b: View, shape: Tuple[int, ...], columns: int) -> Tuple[int, int]:
    """Returns ld_b and rows_b."""
    if b.shape not in (shape, (columns,)) and (not b.shape or b.shape != shape[-len(b.shape):]):
        raise ValueError(f"b has shape {b.shape}, not {shape} or its last dimensions")
    if b.is_dense():
        if b.shape == (columns,):
            return (columns if b.shape == shape else 0), 0
        return columns, 0 if b.shape == shape or columns == 0 else b.size // columns
    ld = leading(b, _sys.MP_OP_N) if b.shape == shape and len(shape) == 2 else None
    if ld is None:
        raise ValueError(f"rows of b must be contiguous: shape {b.shape}, strides {b.strides}")
    return ld, 0


def sum_rows(context: Context, x: Any, period: int, sum: Any = None, *, dtype: Any = "fp32", beta: float = 0.0,
             found_inf: Any = None, amax: Any = None, stream: Any = None) -> Any:
    """Sums the rows of x that are `period` rows apart; returns sum.  See mp_sum_rows.

    This is the gradient of a b that pointwise repeats.

    x      at least 2 dimensions; its rows have the last dimension, and can be strided
    sum    shape (period, columns), also strided; default: a new array of type `dtype`
    beta   factor of the previous sum
    """
    if sum is None and beta != 0:
        raise ValueError(f"beta = {beta} requires sum")
    read = context.check_array(x, "x", dense=False)
    (ld_x,), columns = outer_strides(read, "x", 2), read.shape[-1]
    sum = DeviceArray(context, (period, columns), dtype) if sum is None else sum
    got = context.check_array(sum, "sum", shape=(period, columns), writable=True, dense=False)
    desc = _sys.mp_sum_rows_desc_default(0, 0, 0, read.mp_dtype)
    fill(desc, {"rows": math.prod(read.shape[:-1]), "period": period, "columns": columns, "beta": beta,
                "dtype_sum": got.mp_dtype, "ld_x": ld_x, "ld_sum": outer_strides(got, "sum", 2)[0]})
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_sum_rows(context.handle, desc, read, got, stats, stream_pointer(stream)))
    return sum


def glu_forward(context: Context, activation: Any, x: Any, y: Any = None, stream: Any = None) -> Any:
    """Computes y = activation(gate) up; returns y.

    activation  "silu" gives SwiGLU, "gelu" GeGLU, "sigmoid" GLU (mp_activation_t)
    x           the last dimension has gate in its first half and up in its second half
    y           the shape of x with half of the last dimension; rows of x and y can be strided
    """
    read = context.check_array(x, "x", dense=False)
    desc, shape = _glu(activation, read)
    y, got = output_of(context, y, "y", shape, read.dtype, dense=False)
    fill(desc, {"ld_y": outer_strides(got, "y", 2)[0]})
    check(lib.mp_glu_forward(context.handle, desc, read, got, stream_pointer(stream)))
    return y


def glu_backward(context: Context, activation: Any, x: Any, dy: Any, dx: Any = None, *, found_inf: Any = None,
                 amax: Any = None, stream: Any = None) -> Any:
    """Computes the gradient of glu_forward; returns dx.

    dx  has the strides of x; can be x.  None: a new dense array, which requires a dense x
    """
    read = context.check_array(x, "x", dense=False)
    desc, shape = _glu(activation, read)
    grads = context.check_array(dy, "dy", dtype=read.dtype, shape=shape, dense=False)
    dx, got = output_like(context, dx, "dx", read, "x", 2)
    fill(desc, {"ld_y": outer_strides(grads, "dy", 2)[0]})
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_glu_backward(context.handle, desc, read, grads, got, stats, stream_pointer(stream)))
    return dx


def _glu(activation: Any, x: View) -> Tuple[Any, Tuple[int, ...]]:
    """Returns the descriptor, without ld_y, and the shape of y."""
    (ld_x,), width = outer_strides(x, "x", 2), x.shape[-1]
    if width % 2:
        raise ValueError(f"x has {width} columns, but must have an even number")
    desc = _sys.mp_glu_desc_default(enumerator(_sys.mp_activation_t, activation, "activation"), 0, 0, x.mp_dtype)
    fill(desc, {"rows": math.prod(x.shape[:-1]), "columns": width // 2, "ld_x": ld_x})
    return desc, (*x.shape[:-1], width // 2)


def softmax_xent(context: Context, logits: Any, labels: Any, *, row_loss: Any, loss: Any = None,
                 correct: Any = None, dlogits: Any = None, loss_scale: Any = None, weight: float = 1.0,
                 ignore_label: Optional[int] = -100, label_smoothing: float = 0.0, z_loss: float = 0.0,
                 count: Any = None, lse: Any = None, class_weights: Any = None, log_probabilities: bool = False,
                 found_inf: Any = None, amax: Any = None, stream: Any = None) -> None:
    """Computes softmax cross-entropy and its gradient; see mp_softmax_xent.

    logits, dlogits   rows x classes; dlogits can be logits
    labels            int32 or int64, one per row; or soft targets, rows x classes of floating-point
                      numbers
    row_loss          float32, one per row
    loss              float32, 1 element
    correct           int64, 1 element, increased by the number of correct predictions
    loss_scale        float32, 1 element: Scaler.scale
    ignore_label      rows with this label are ignored; None: no row is
    label_smoothing   in [0, 1)
    z_loss            weight of the squares of lse
    count             float32, 1 element: the divisor; None: the number of rows that are not ignored
    lse               float32, one per row, written: log(sum(exp(logits)))
    class_weights     float32, one per class
    log_probabilities logits are log-probabilities: negative log-likelihood
    """
    vl = context.check_array(logits, "logits", dense=False)
    if len(vl.shape) != 2:
        raise ValueError(f"logits has {len(vl.shape)} dimensions, not 2")
    rows, classes = vl.shape
    desc = _sys.mp_xent_desc_default(rows, classes, vl.mp_dtype)
    _fill_xent(desc, weight, ignore_label, label_smoothing, z_loss)
    if log_probabilities:
        desc.flags |= _sys.MP_XENT_FLAG_LOG_PROBABILITIES
    views = {"x": vl}
    desc.ld_logits = _leading_of_rows(vl, "logits")
    targets = context.check_array(labels, "labels", dense=False)
    if len(targets.shape) == 2 and targets.dtype not in INTEGERS:
        views["labels"] = context.check_array(labels, "labels", shape=vl.shape, dense=False)
        desc.dtype_labels, desc.ld_labels = targets.mp_dtype, _leading_of_rows(targets, "labels")
    else:
        views["labels"], desc.dtype_labels = context.check_integers(labels, "labels", rows)
    if dlogits is not None:
        views["dx"] = context.check_array(dlogits, "dlogits", dtype=vl.dtype, shape=vl.shape, writable=True,
                                          dense=False)
        desc.ld_dlogits = _leading_of_rows(views["dx"], "dlogits")
    tensors = point(_xent_vectors(context, rows, classes, row_loss, lse, loss, correct, loss_scale, count,
                                  class_weights, found_inf, amax), **views)
    check(lib.mp_softmax_xent(context.handle, desc, tensors, stream_pointer(stream)))


def _leading_of_rows(array: View, name: str) -> int:
    op, ld = matrix(array, name)
    if op != _sys.MP_OP_N:
        raise ValueError(f"rows of {name} must be contiguous")
    return ld


def _fill_xent(desc: Any, weight: float, ignore_label: Optional[int], label_smoothing: float, z_loss: float) -> None:
    fill(desc, {"weight": weight, "label_smoothing": label_smoothing, "z_loss": z_loss})
    if ignore_label is None:
        desc.flags &= ~_sys.mp_xent_flags_t.MP_XENT_FLAG_IGNORE_LABEL
    else:
        fill(desc, {"ignore_label": ignore_label})


def _xent_vectors(context: Context, rows: int, classes: int, row_loss: Any, lse: Any, loss: Any, correct: Any,
                  loss_scale: Any, count: Any, class_weights: Any, found_inf: Any, amax: Any) -> Any:
    """Returns the tensors that softmax_xent and linear_xent have in common."""
    return point(_sys.mp_xent_tensors_t(), **views_of(context, rows, row_loss=row_loss, lse=lse),
                 **views_of(context, 1, loss=loss), **views_of(context, 1, dtype="int64", correct=correct),
                 **views_of(context, 1, False, loss_scale=loss_scale, count=count),
                 **views_of(context, classes, False, class_weights=class_weights),
                 stats=_epilogue.stats_of(context, found_inf, amax))


def _workspace(context: Context, workspace: Any, query: Any, desc: Any) -> View:
    """Returns a workspace of the caller, or a new one."""
    space = context.empty(_epilogue.bytes_of(query, context.handle, desc), "uint8") if workspace is None else workspace
    return context.check_array(space, "workspace", dtype="uint8", writable=True)


def xent_count(context: Context, labels: Any, count: Any, *, ignore_label: int = -100, stream: Any = None) -> None:
    """Adds the number of labels that are not ignored to count; see mp_xent_count.

    count   float32, 1 element
    """
    read, dtype = context.check_integers(labels, "labels", context.check_array(labels, "labels").size)
    got = context.check_array(count, "count", dtype="float32", size=1, writable=True)
    check(lib.mp_xent_count(context.handle, read.size, dtype, read, ignore_label, got, stream_pointer(stream)))


def linear_xent(context: Context, x: Any, w: Any, labels: Any, *, row_loss: Any, bias: Any = None, loss: Any = None,
                correct: Any = None, dx: Any = None, dw: Any = None, dbias: Any = None, accumulate: bool = False,
                loss_scale: Any = None, weight: float = 1.0, ignore_label: Optional[int] = -100,
                label_smoothing: float = 0.0, z_loss: float = 0.0, count: Any = None, lse: Any = None,
                class_weights: Any = None, workspace: Any = None, found_inf: Any = None, amax: Any = None,
                stream: Any = None) -> None:
    """Computes the softmax cross-entropy of a linear layer and all gradients, without storing all
    logits; see mp_linear_xent.

    x, dx       rows x width; dx can be x
    w           classes x width, of x's type
    bias        classes elements of x's type
    dw, dbias   float32, as w and bias
    accumulate  add to dw and dbias instead of overwriting them
    workspace   uint8, 256 MiB are enough; None: allocate it for this call and wait for the stream

    The other arguments are those of softmax_xent.
    """
    vx = context.check_array(x, "x", dense=False)
    vw = context.check_array(w, "w", dtype=vx.dtype, dense=False)
    if len(vx.shape) != 2 or len(vw.shape) != 2 or vx.shape[1] != vw.shape[1]:
        raise ValueError(f"x has shape {vx.shape} and w {vw.shape}, not (rows, width) and (classes, width)")
    (rows, width), classes = vx.shape, vw.shape[0]
    desc = _sys.mp_linear_xent_desc_default(rows, width, classes, vx.mp_dtype)
    _fill_xent(desc, weight, ignore_label, label_smoothing, z_loss)
    if accumulate:
        desc.flags |= _sys.MP_XENT_FLAG_ACCUMULATE
    views = {"x": vx, "w": vw}
    for name, array, kind, shape in (("dx", dx, vx.dtype, vx.shape), ("dw", dw, "float32", vw.shape)):
        if array is not None:
            views[name] = context.check_array(array, name, dtype=kind, shape=shape, writable=True, dense=False)
    for name, got in views.items():
        fill(desc, {"ld_" + name: _leading_of_rows(got, name)})
    views["labels"], desc.dtype_labels = context.check_integers(labels, "labels", rows)
    tensors = point(_xent_vectors(context, rows, classes, row_loss, lse, loss, correct, loss_scale, count,
                                  class_weights, found_inf, amax),
                    bias=view_of(context, bias, "bias", classes, False, vx.dtype),
                    dbias=view_of(context, dbias, "dbias", classes), **views)
    block = _workspace(context, workspace, lib.mp_linear_xent_workspace_size, desc)
    check(lib.mp_linear_xent(context.handle, desc, tensors, block, block.nbytes, stream_pointer(stream)))
    if workspace is None:
        context.sync(stream)  # before the workspace is freed


def element_loss(context: Context, kind: Any, prediction: Any, target: Any, *, weights: Any = None,
                 element_loss: Any = None, loss: Any = None, dprediction: Any = None, loss_scale: Any = None,
                 weight: float = 1.0, reduction: Any = None, ignore_target: Optional[float] = None, delta: float = 1.0,
                 workspace: Any = None, found_inf: Any = None, amax: Any = None, stream: Any = None) -> None:
    """Computes an element-wise loss and its gradient; see mp_loss.

    kind           "mse", "l1", "bce_with_logits", "huber", "smooth_l1", or "linear", which scales a
                   gradient of the caller, the target (mp_loss_kind_t)
    target         as many elements as prediction, of any floating-point type
    dprediction    as many elements as prediction, of equal type, written
    weights        float32, one per element
    element_loss   float32, one per element, written
    loss           float32, 1 element, written
    loss_scale     float32, 1 element: Scaler.scale
    reduction      "mean" or "sum" (mp_loss_reduction_t); None: "mean", of kind "linear" "sum"
    delta          of kinds "huber" and "smooth_l1"
    ignore_target  elements with this target, which can be NaN, are ignored; None: no element is
    workspace      uint8, 16 KiB are enough; None: allocate it for this call and wait for the stream
    """
    read = context.check_array(prediction, "prediction")
    wanted = context.check_array(target, "target", size=read.size)
    desc = _sys.mp_loss_desc_default(enumerator(_sys.mp_loss_kind_t, kind, "kind"), read.size, read.mp_dtype)
    fill(desc, {"dtype_target": wanted.mp_dtype, "weight": weight, "delta": delta})
    if reduction is not None:
        desc.reduction = enumerator(_sys.mp_loss_reduction_t, reduction, "reduction")
    if ignore_target is not None:
        fill(desc, {"flags": _sys.MP_LOSS_FLAG_IGNORE_TARGET, "ignore_target": ignore_target})
    tensors = point(_sys.mp_loss_tensors_t(), prediction=read, target=wanted,
                    **views_of(context, read.size, False, weights=weights),
                    **views_of(context, read.size, element_loss=element_loss), **views_of(context, 1, loss=loss),
                    **views_of(context, read.size, dtype=read.dtype, dprediction=dprediction),
                    **views_of(context, 1, False, loss_scale=loss_scale),
                    stats=_epilogue.stats_of(context, found_inf, amax))
    block = _workspace(context, workspace, lib.mp_loss_workspace_size, desc)
    check(lib.mp_loss(context.handle, desc, tensors, block, block.nbytes, stream_pointer(stream)))
    if workspace is None:
        context.sync(stream)  # before the workspace is freed
