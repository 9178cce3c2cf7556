"""Scaled dot-product attention (mpcore/attention.h)."""

from __future__ import annotations

import ctypes
from typing import Any, Dict, List, Optional, Tuple

from . import _epilogue, _sys
from ._library import check, fill, lib, read_text
from .arrays import DTYPES, View, dtype_name, outer_strides, point, view
from .context import Context, DeviceArray, output_like, stream_pointer
from .tensors import view_of


class Attention:
    """Attention of `heads` query heads, of which groups share `kv_heads` heads of k and v.

    kv_heads         None: heads
    head_dim_v       elements of a head of v and o; None: head_dim
    q_len, kv_len    rows of a sequence; packed: the largest number
    q_rows, kv_rows  rows of all sequences in the packed form; 0: padded form
    causal           hide the keys after the diagonal
    window           visible keys (before, after) the diagonal, -1: all; None: no window
    scale            factor of the scores; 0: 1 / sqrt(head_dim)
    dropout          probability that a score is dropped, rounded to a multiple of 1/256
    dropout_seed     64-bit number; use a different one for each layer
    lse              float32, (batch, heads, q_len) or (heads, q_rows): written by forward(), read
                     by backward()

    q_shape is (batch, q_len, heads, head_dim), packed (q_rows, heads, head_dim), and k_shape,
    v_shape and o_shape are similar.  Arrays can be strided, such as parts of a packed QKV, if the
    elements of a head are contiguous.  Gradients have the strides of their arrays.

    Options of both passes:

    q_lengths, kv_lengths   int32, one per sequence: valid rows; only in the padded form, None: all
    q_ends, kv_ends         int32, one per sequence: rows after its last row; packed form
    sinks                   float32, one per head: logits without a value
    dropout_offset          int64, 1 element, as in dropout()

    The object owns lse and its workspace, so use it in one stream at a time, and call forward once
    before each backward.
    """

    def __init__(self, context: Context, batch: int, heads: int, q_len: int, kv_len: int, head_dim: int,
                 dtype: Any = "fp16", *, kv_heads: Optional[int] = None, head_dim_v: Optional[int] = None,
                 q_rows: int = 0, kv_rows: int = 0, causal: bool = False, window: Optional[Tuple[int, int]] = None,
                 scale: float = 0.0, dropout: float = 0.0, dropout_seed: int = 0):
        self.context, self.dtype, self.batch, self.heads = context, dtype_name(dtype), batch, heads
        kv_heads, head_dim_v = heads if kv_heads is None else kv_heads, head_dim_v or head_dim
        self.desc = _sys.mp_attention_desc_default(0, 0, 0, 0, 0, DTYPES[self.dtype][1] or 0)
        if causal:
            self.desc.flags |= _sys.MP_ATTENTION_FLAG_CAUSAL
        if window is not None:
            self.desc.flags |= _sys.MP_ATTENTION_FLAG_WINDOW
            left, right = window
            fill(self.desc, {"window_left": left, "window_right": right})
        fill(self.desc, {"batch": batch, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim,
                         "head_dim_v": head_dim_v, "q_len": q_len, "kv_len": kv_len, "q_rows": q_rows,
                         "kv_rows": kv_rows, "scale": scale, "dropout": dropout, "dropout_seed": dropout_seed})
        self.is_packed = q_rows > 0
        of_q, of_kv = ((q_rows,), (kv_rows,)) if self.is_packed else ((batch, q_len), (batch, kv_len))
        self.q_shape, self.k_shape = (*of_q, heads, head_dim), (*of_kv, kv_heads, head_dim)
        self.v_shape, self.o_shape = (*of_kv, kv_heads, head_dim_v), (*of_q, heads, head_dim_v)
        size = _epilogue.bytes_of(lib.mp_attention_backward_workspace_size, context.handle, self.desc)
        self.workspace = context.empty(size, "uint8")
        self.lse = context.zeros((heads, q_rows) if self.is_packed else (batch, heads, q_len))

    def explain(self) -> str:
        """Describes the kernels of both passes for aligned arrays, for people."""
        return read_text(lambda text, size: lib.mp_attention_explain(
            self.context.handle, ctypes.byref(self.desc), text, size))

    def kernels(self) -> List[_sys.mp_kernel_info_t]:
        """Returns an mp_kernel_info_t for every kernel, first the one for aligned arrays."""
        return _epilogue.kernels_of(lib.mp_attention_kernel_info, self.context.handle, ctypes.byref(self.desc))

    def forward(self, q: Any, k: Any, v: Any, o: Any = None, *, stream: Any = None, **options: Any) -> Any:
        """Computes o, the mean of v weighted by the softmax of scale q k; returns o."""
        o = DeviceArray(self.context, self.o_shape, self.dtype) if o is None else o
        desc, tensors = self._tensors(q, k, v, o, True, **options)
        check(lib.mp_attention_forward(self.context.handle, desc, tensors, stream_pointer(stream)))
        return o

    def backward(self, q: Any, k: Any, v: Any, o: Any, d_o: Any, dq: Any = None, dk: Any = None, dv: Any = None, *,
                 dsinks: Any = None, found_inf: Any = None, amax: Any = None, stream: Any = None,
                 **options: Any) -> Tuple[Any, Any, Any]:
        """Computes the gradients of forward from its o and with its options; returns (dq, dk, dv).

        dq, dk, dv  None: a new dense array, which requires a dense q, k or v
        dsinks      float32, one per head, written: the gradient of sinks
        """
        desc, tensors = self._tensors(q, k, v, o, False, **options)
        given = tensors.views
        grads = self._heads(d_o, "d_o", self.o_shape)
        if self._strides(grads, "d_o") != self._strides(given["o"], "o"):
            raise ValueError(f"d_o has strides {grads.strides}, not {given['o'].strides} like o")
        dimensions = len(self.q_shape)
        (dq, to_q), (dk, to_k), (dv, to_v) = (
            output_like(self.context, out, f"d{name}", given[name], name, dimensions)
            for out, name in ((dq, "q"), (dk, "k"), (dv, "v")))
        point(tensors, d_o=grads, dq=to_q, dk=to_k, dv=to_v,
              dsinks=view_of(self.context, dsinks, "dsinks", self.heads),
              stats=_epilogue.stats_of(self.context, found_inf, amax))
        check(lib.mp_attention_backward(self.context.handle, desc, tensors, self.workspace.pointer,
                                        self.workspace.nbytes, stream_pointer(stream)))
        return dq, dk, dv

    def _tensors(self, q: Any, k: Any, v: Any, o: Any, writes_o: bool, *, q_lengths: Any = None,
                 kv_lengths: Any = None, q_ends: Any = None, kv_ends: Any = None, sinks: Any = None,
                 dropout_offset: Any = None) -> Tuple[Any, Any]:
        """Returns the descriptor with the strides of all arrays, and the tensors of both passes."""
        desc, context = type(self.desc).from_buffer_copy(self.desc), self.context
        views: Dict[str, Optional[View]] = {}
        for name, array, shape in (("q", q, self.q_shape), ("k", k, self.k_shape), ("v", v, self.v_shape),
                                   ("o", o, self.o_shape)):
            got = self._heads(array, name, shape, writes_o and name == "o")
            layout, strides = getattr(desc, name), self._strides(got, name)
            fill(layout, dict(zip(("head", "row", "batch"), reversed(strides))))
            views[name] = got
        for name, array in (("q_lengths", q_lengths), ("kv_lengths", kv_lengths), ("q_ends", q_ends),
                            ("kv_ends", kv_ends)):
            views[name] = view_of(context, array, name, self.batch, False, "int32")
        views["sinks"] = view_of(context, sinks, "sinks", self.heads, False)
        views["dropout_offset"] = view_of(context, dropout_offset, "dropout_offset", 1, False, "int64")
        return desc, point(_sys.mp_attention_tensors_t(), lse=view(self.lse), **views)

    def _heads(self, array: Any, name: str, shape: Tuple[int, ...], writable: bool = False) -> View:
        got: View = self.context.check_array(array, name, dtype=self.dtype, shape=shape, writable=writable,
                                             dense=False)
        return got

    def _strides(self, got: View, name: str) -> Tuple[int, ...]:
        return outer_strides(got, name, len(got.shape))
