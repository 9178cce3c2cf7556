"""Embeddings, dropout, rotary embeddings and softmax (mpcore/sequences.h)."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

from . import _epilogue, _sys
from ._library import check, fill, lib
from .arrays import DTYPES, View, dtype_name, outer_strides
from .context import Context, output_like, output_of, stream_pointer
from .tensors import view_of


class Embedding:
    """An embedding: looks up `num_indices` vectors of `embedding_dim` elements in a table of
    `num_embeddings` vectors.

    dtype          type of table, out and dout
    dtype_dtable   type of the gradient of the table; None: dtype
    padding_index  table row whose gradient is 0; None: no such row

    Indices are an int32 or int64 array of any shape with `num_indices` elements.  out and dout have
    this shape with `embedding_dim` appended.  `table_shape` is (num_embeddings, embedding_dim).

    The object owns its workspace, so use it in one stream at a time.
    """

    def __init__(self, context: Context, num_indices: int, num_embeddings: int, embedding_dim: int,
                 dtype: Any = "fp16", *, padding_index: Optional[int] = None, dtype_dtable: Any = None):
        self.context, self.dtype = context, dtype_name(dtype)
        self.dtype_dtable = dtype_name(dtype_dtable or dtype)
        self.num_indices, self.embedding_dim = num_indices, embedding_dim
        self.table_shape = num_embeddings, embedding_dim
        self.desc = _sys.mp_embedding_desc_default(0, 1, 1, DTYPES[self.dtype][1] or 0)
        fill(self.desc, {"dtype_dtable": DTYPES[self.dtype_dtable][1] or 0, "num_indices": num_indices,
                         "num_embeddings": num_embeddings, "embedding_dim": embedding_dim,
                         "ld_table": embedding_dim, "ld_out": embedding_dim, "ld_dtable": embedding_dim})
        if padding_index is not None:
            fill(self.desc, {"flags": _sys.MP_EMBEDDING_FLAG_PADDING, "padding_index": padding_index})
        size = _epilogue.bytes_of(lib.mp_embedding_workspace_size, context.handle, self.desc)
        self.workspace = context.empty(size, "uint8")

    def forward(self, table: Any, indices: Any, out: Any = None, stream: Any = None) -> Any:
        """Computes out[i] = table[indices[i]], or NaN for an index out of range; returns out."""
        rows = self.context.check_array(table, "table", dtype=self.dtype, shape=self.table_shape)
        read, desc = self._indices(indices)
        shape = (*read.shape, self.embedding_dim)
        out, got = output_of(self.context, out, "out", shape, self.dtype)
        check(lib.mp_embedding_forward(self.context.handle, desc, rows, read, got, stream_pointer(stream)))
        return out

    def backward(self, indices: Any, dout: Any, dtable: Any = None, *, accumulate: bool = False,
                 found_inf: Any = None, amax: Any = None, stream: Any = None) -> Any:
        """Computes dtable[v] = sum of dout[i] over all i with indices[i] = v; returns dtable.

        accumulate  add to the contents of dtable
        found_inf   float32, 1 element: Scaler.found_inf
        amax        float32, 1 element, updated to max(amax, |dtable|)
        """
        if dtable is None and accumulate:
            raise ValueError("accumulate requires dtable")
        read, desc = self._indices(indices)
        grads = self.context.check_array(dout, "dout", dtype=self.dtype, shape=(*read.shape, self.embedding_dim))
        dtable, got = output_of(self.context, dtable, "dtable", self.table_shape, self.dtype_dtable)
        stats = _epilogue.stats_of(self.context, found_inf, amax)
        if accumulate:
            desc.flags |= _sys.MP_EMBEDDING_FLAG_ACCUMULATE
        check(lib.mp_embedding_backward(self.context.handle, desc, read, grads, got, stats,
                                        self.workspace.pointer, self.workspace.nbytes, stream_pointer(stream)))
        return dtable

    def _indices(self, indices: Any) -> Tuple[View, _sys.mp_embedding_desc_t]:
        """Returns the indices, and the descriptor with their type."""
        read, dtype = self.context.check_integers(indices, "indices", self.num_indices)
        desc = type(self.desc).from_buffer_copy(self.desc)
        desc.dtype_indices = dtype
        return read, desc


def dropout(context: Context, x: Any, p: float, seed: int, y: Any = None, *, offset: Any = None,
            found_inf: Any = None, amax: Any = None, stream: Any = None) -> Any:
    """Sets elements to 0 with probability p and scales the others by 1 / (1 - p).  Returns y.

    For the gradient, pass dy as x with the same seed and offset.  y can be x.

    seed    64-bit number; use a different one for each tensor
    offset  int64, 1 element; each value selects a different mask.  In training use a counter, such
            as Optimizer.step_counter; None: the same mask in all calls
    found_inf, amax  of y, as in Embedding.backward
    """
    read = context.check_array(x, "x")
    y, got = output_of(context, y, "y", read.shape, read.dtype)
    counter = view_of(context, offset, "offset", 1, False, "int64")
    desc = _sys.mp_dropout_desc_default(0, 0.0, read.mp_dtype)
    fill(desc, {"count": read.size, "seed": seed, "p": p})
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_dropout(context.handle, desc, counter, read, got, stats, stream_pointer(stream)))
    return y


def rope(context: Context, x: Any, y: Any = None, *, positions: Any = None, inv_freq: Any = None,
         rotary_dim: Optional[int] = None, base: float = 10000.0, period: int = 0, interleaved: bool = False,
         inverse: bool = False, found_inf: Any = None, amax: Any = None, stream: Any = None) -> Any:
    """Rotates pairs of elements by angles that are proportional to their position; returns y.

    x               shape (..., heads, head_dim), such as the queries and keys of a packed QKV
    y               the shape and strides of x; can be x.  None: a new dense array, which requires
                    a dense x
    positions       int32, one per row; None: the row number modulo `period`
    inv_freq        float32, rotary_dim / 2 elements; None: base**(-2 i / rotary_dim)
    rotary_dim      leading elements of a head that are rotated; None: all
    period          tokens of a sequence; 0: the number of rows
    interleaved     rotate (2 i, 2 i + 1) instead of (i, i + rotary_dim / 2)
    inverse         rotate back: the gradient, with dy as x
    """
    read = context.check_array(x, "x", dense=False)
    x_row, x_head = outer_strides(read, "x", 3)
    heads, head_dim = read.shape[-2:]
    y, got = output_like(context, y, "y", read, "x", 3)
    desc = _sys.mp_rope_desc_default(0, 0, 0, read.mp_dtype)
    rows, rotary_dim = math.prod(read.shape[:-2]), head_dim if rotary_dim is None else rotary_dim
    fill(desc, {"rows": rows, "heads": heads, "head_dim": head_dim, "rotary_dim": rotary_dim, "x_row": x_row,
                "x_head": x_head, "base": base, "period": period})
    if interleaved:
        desc.flags |= _sys.MP_ROPE_FLAG_INTERLEAVED
    if inverse:
        desc.flags |= _sys.MP_ROPE_FLAG_INVERSE
    at = view_of(context, positions, "positions", rows, False, "int32")
    rates = view_of(context, inv_freq, "inv_freq", rotary_dim // 2, False)
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_rope(context.handle, desc, at, rates, read, got, stats, stream_pointer(stream)))
    return y


def softmax_forward(context: Context, x: Any, y: Any = None, *, scale: float = 1.0, causal: bool = False,
                    lengths: Any = None, mask: Any = None, log: bool = False, stream: Any = None) -> Any:
    """Computes the softmax of scale x over the last dimension; returns y.  See mp_softmax_forward.

    x          at least 2 dimensions; rows of x and y can be strided
    y          can be x
    causal     x is (..., queries, keys), and query i sees the keys up to i + keys - queries
    lengths    int32, visible keys of each sequence; x is split into as many parts of equal size
    mask       is added to scale x; has the last dimensions of x and is repeated
    log        compute the logarithm of the softmax

    causal, lengths and mask are mutually exclusive.
    """
    read = context.check_array(x, "x", dense=False)
    desc, given = _softmax(context, read, "x", scale, causal, lengths, mask, log)
    y, got = output_of(context, y, "y", read.shape, read.dtype, dense=False)
    fill(desc, {"ld_x": outer_strides(read, "x", 2)[0], "ld_y": outer_strides(got, "y", 2)[0]})
    check(lib.mp_softmax_forward(context.handle, desc, read, given, got, stream_pointer(stream)))
    return y


def softmax_backward(context: Context, y: Any, dy: Any, dx: Any = None, *, scale: float = 1.0,
                     causal: bool = False, lengths: Any = None, log: bool = False, found_inf: Any = None,
                     amax: Any = None, stream: Any = None) -> Any:
    """Computes the gradient of softmax_forward from its result; returns dx.

    dy has the strides of y; dx can be y or dy.  An additive mask is not needed: for scale = 1, its
    gradient is sum_rows of dx.
    """
    read = context.check_array(y, "y", dense=False)
    desc, given = _softmax(context, read, "y", scale, causal, lengths, None, log)
    grads = context.check_array(dy, "dy", dtype=read.dtype, shape=read.shape, dense=False)
    (ld_y,) = outer_strides(read, "y", 2)
    if outer_strides(grads, "dy", 2) != (ld_y,):
        raise ValueError(f"dy has strides {grads.strides}, not {read.strides} like y")
    dx, got = output_of(context, dx, "dx", read.shape, read.dtype, dense=False)
    fill(desc, {"ld_x": outer_strides(got, "dx", 2)[0], "ld_y": ld_y})
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_softmax_backward(context.handle, desc, read, grads, given, got, stats, stream_pointer(stream)))
    return dx


def _softmax(context: Context, x: View, name: str, scale: float, causal: bool, lengths: Any, mask: Any,
             log: bool) -> Tuple[Any, Optional[View]]:
    """Returns the descriptor, without strides, and the mask."""
    if causal + (lengths is not None) + (mask is not None) > 1:
        raise ValueError("causal, lengths and mask are mutually exclusive")
    outer_strides(x, name, 2)  # requires a row
    rows, columns, given = math.prod(x.shape[:-1]), x.shape[-1], None
    desc = _sys.mp_softmax_desc_default(rows, columns, x.mp_dtype)
    fill(desc, {"scale": scale, "flags": _sys.MP_SOFTMAX_FLAG_LOG if log else 0})
    if causal:
        fill(desc, {"mask": _sys.MP_SOFTMAX_MASK_CAUSAL, "mask_rows": x.shape[-2]})
    elif lengths is not None:
        given = context.check_array(lengths, "lengths", dtype="int32")
        if rows % max(given.size, 1) or rows and not given.size:
            raise ValueError(f"lengths has {given.size} elements, which must divide the {rows} rows of {name}")
        fill(desc, {"mask": _sys.MP_SOFTMAX_MASK_LENGTHS, "mask_rows": rows // max(given.size, 1)})
    elif mask is not None:
        given = context.check_array(mask, "mask", dense=False)
        if given.shape != x.shape[-len(given.shape):]:
            raise ValueError(f"mask has shape {given.shape}, not {x.shape} or its last dimensions")
        ld_mask = columns if given.is_dense() else outer_strides(given, "mask", 2)[0]
        fill(desc, {"mask": _sys.MP_SOFTMAX_MASK_ADDITIVE, "dtype_mask": given.mp_dtype, "ld_mask": ld_mask,
                    "mask_rows": math.prod(given.shape[:-1])})
    return desc, given
