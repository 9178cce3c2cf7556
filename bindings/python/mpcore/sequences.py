"""Embeddings and dropout (mpcore/sequences.h)."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Tuple

from . import _epilogue, _sys
from ._library import check, fill, lib
from .arrays import DTYPES, View, dtype_name
from .context import Context, DeviceArray, stream_pointer


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
        size = _epilogue.bytes_of(lib.mp_embedding_workspace_size, context.handle, ctypes.byref(self.desc))
        self.workspace = context.empty(size, "uint8")

    def forward(self, table: Any, indices: Any, out: Any = None, stream: Any = None) -> Any:
        """Computes out[i] = table[indices[i]], or NaN for an index out of range; returns out."""
        rows = self.context.check_array(table, "table", dtype=self.dtype, shape=self.table_shape)
        read, desc = self._indices(indices)
        shape = (*read.shape, self.embedding_dim)
        out = DeviceArray(self.context, shape, self.dtype) if out is None else out
        got = self.context.check_array(out, "out", dtype=self.dtype, shape=shape, writable=True)
        check(lib.mp_embedding_forward(self.context.handle, ctypes.byref(desc), rows, read, got,
                                       stream_pointer(stream)))
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
        dtable = DeviceArray(self.context, self.table_shape, self.dtype_dtable) if dtable is None else dtable
        got = self.context.check_array(dtable, "dtable", dtype=self.dtype_dtable, shape=self.table_shape,
                                       writable=True)
        stats = _epilogue.stats_of(self.context, found_inf, amax)
        if accumulate:
            desc.flags |= _sys.MP_EMBEDDING_FLAG_ACCUMULATE
        check(lib.mp_embedding_backward(self.context.handle, ctypes.byref(desc), read, grads, got, stats,
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
    y = DeviceArray(context, read.shape, read.dtype) if y is None else y
    got = context.check_array(y, "y", dtype=read.dtype, shape=read.shape, writable=True)
    counter = None if offset is None else context.check_array(offset, "offset", dtype="int64", size=1)
    desc = _sys.mp_dropout_desc_default(0, 0.0, read.mp_dtype)
    fill(desc, {"count": read.size, "seed": seed, "p": p})
    stats = _epilogue.stats_of(context, found_inf, amax)
    check(lib.mp_dropout(context.handle, ctypes.byref(desc), counter, read, got, stats, stream_pointer(stream)))
    return y
