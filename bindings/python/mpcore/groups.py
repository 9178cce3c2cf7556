"""Batched, grouped and ragged GEMM (mpcore/gemm.h)."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, List, Optional, Sequence, Tuple

from . import _epilogue, _sys
from ._gemm import leading, matrix
from ._library import check, lib
from .arrays import View
from .context import Context, stream_pointer


class Matrices:
    """Matrices of equal shape, type and layout at arbitrary addresses, for gemm_batched.

    Stores the addresses on the device and keeps the matrices alive.
    """

    def __init__(self, context: Context, arrays: Sequence[Any]):
        self.context, self.arrays = context, list(arrays)
        views = [context.check_array(a, f"arrays[{i}]", dense=False) for i, a in enumerate(self.arrays)]
        if not views:
            raise ValueError("arrays must not be empty")
        self.first, self._views = views[0], views  # views keep DLPack memory alive; arrays do not
        for i, got in enumerate(views):
            if len(got.shape) != 2:
                raise ValueError(f"arrays[{i}] has {len(got.shape)} dimensions, not 2")
            if (got.dtype, got.shape, got.strides) != (self.first.dtype, self.first.shape, self.first.strides):
                raise ValueError(f"arrays[{i}] differs from arrays[0]: {got.dtype} {got.shape}, strides {got.strides}")
        addresses = (ctypes.c_uint64 * len(views))(*[got.address for got in views])
        self.table = context.empty(len(views), "int64")
        check(lib.mp_memcpy(context.handle, self.table.pointer, ctypes.addressof(addresses), self.table.nbytes, None))
        context.sync()

    def __len__(self) -> int:
        return len(self.arrays)


def gemm_batched(context: Context, a: Matrices, b: Matrices, out: Matrices, *, c: Optional[Matrices] = None,
                 alpha: float = 1.0, beta: float = 0.0, workspace: Any = None, plan: _epilogue.Plan = None,
                 stream: Any = None, **epilogue: Any) -> None:
    """Computes out[i] = epilogue(alpha a[i] b[i] + beta c[i]), like gemm.

    c defaults to out.  All items share bias=, activation=, scale= and found_inf=.
    """
    c = out if c is None else c
    desc = _batched(context, a, b, out, c)
    desc.alpha, desc.beta = alpha, beta
    for i, view in enumerate(out._views):
        view.require_writable(f"out.arrays[{i}]")
    _epilogue.set_plan(desc, plan)
    made = _epilogue.make(context, desc.n, **epilogue)
    check(lib.mp_gemm_batched(context.handle, desc, a.table.pointer, b.table.pointer,
                              c.table.pointer if beta != 0 else None, out.table.pointer, made,
                              *_epilogue.workspace_of(context, workspace), stream_pointer(stream)))


def gemm_batched_workspace_size(context: Context, a: Matrices, b: Matrices, out: Matrices) -> int:
    """Returns the workspace size in bytes with which gemm_batched is fastest."""
    return _epilogue.bytes_of(lib.mp_gemm_batched_workspace_size, context.handle,
                              _batched(context, a, b, out, out), None)


def gemm_batched_plan(context: Context, a: Matrices, b: Matrices, out: Matrices, *,
                      max_workspace_bytes: int = sys.maxsize) -> _sys.mp_plan_t:
    """Returns the fastest plan of gemm_batched, like gemm_plan."""
    return _epilogue.plan_of(lib.mp_gemm_batched_get_plan, context.handle,
                             _batched(context, a, b, out, out), None, max_workspace_bytes)


def _batched(context: Context, a: Matrices, b: Matrices, out: Matrices, c: Matrices) -> _sys.mp_gemm_desc_t:
    for name, got in (("a", a), ("b", b), ("out", out), ("c", c)):
        if len(got) != len(a):
            raise ValueError(f"{name} has {len(got)} matrices, but a has {len(a)}")
        if got.context is not context:
            raise ValueError(f"{name} belongs to another context")
    desc = _sys.mp_gemm_desc_default(*_sizes(a.first, b.first, out.first, c.first, ""), a.first.mp_dtype,
                                     out.first.mp_dtype)
    desc.batch_count = len(a)
    desc.op_a, (desc.ld_a,) = _op([a.first], "a")
    desc.op_b, (desc.ld_b,) = _op([b.first], "b")
    desc.ld_d, desc.ld_c = _rows(out.first, "out"), _rows(c.first, "c")
    return desc


def gemm_grouped(context: Context, products: Sequence[Sequence[Any]], *, alpha: float = 1.0,
                 beta: float = 0.0, scale: Any = None, found_inf: Any = None, workspace: Any = None,
                 plan: _epilogue.Plan = None, stream: Any = None) -> None:
    """Computes products of different shapes in one call.

    products  (a, b, out) or (a, b, out, c) per product; c defaults to out.  All products have equal
              types; all matrices a are stored by rows or all by columns, and likewise all matrices
              b
    """
    desc, items, count = _group(context, products, alpha, beta, plan)
    epilogue = _epilogue.make(context, 0, scale=scale, found_inf=found_inf)
    check(lib.mp_gemm_grouped(context.handle, desc, count, items, epilogue,
                              *_epilogue.workspace_of(context, workspace), stream_pointer(stream)))


def gemm_grouped_workspace_size(context: Context, products: Sequence[Sequence[Any]]) -> int:
    """Returns the workspace size in bytes with which gemm_grouped is fastest."""
    desc, items, count = _group(context, products, 1.0, 0.0, None)
    return _epilogue.bytes_of(lib.mp_gemm_grouped_workspace_size, context.handle, desc, count, items, None)


def gemm_ragged(context: Context, a: Any, b: Any, ends: Any, out: Any, *, c: Any = None, alpha: float = 1.0,
                beta: float = 0.0, amax: Any = None, found_inf: Any = None, scale: Any = None, workspace: Any = None,
                plan: _epilogue.Plan = None, stream: Any = None) -> None:
    """Computes one product per group, with group sizes that are on the device.

    `ends` is an int32 array with the end of each group.  If b is a batch of one matrix per group,
    groups divide the rows of a and out; if out is a batch, they divide the k dimension of a and b.
    c defaults to out.  Elements past the last end are neither read nor written.
    """
    desc, ragged, views = _ragged(context, a, b, out, c)
    desc.alpha, desc.beta = alpha, beta
    _epilogue.set_plan(desc, plan)
    last = context.check_array(ends, "ends", dtype="int32", size=desc.batch_count)
    epilogue = _epilogue.make(context, 0, amax=amax, found_inf=found_inf, scale=scale)
    va, vb, vc, vd = views
    check(lib.mp_gemm_ragged(context.handle, desc, ragged, last.address, va.address, vb.address, vc.address, vd.address,
                             epilogue, *_epilogue.workspace_of(context, workspace), stream_pointer(stream)))


def gemm_ragged_workspace_size(context: Context, a: Any, b: Any, out: Any) -> int:
    """Returns the workspace size in bytes with which gemm_ragged is fastest, for any `ends`."""
    desc, ragged, _ = _ragged(context, a, b, out, None)
    return _epilogue.bytes_of(lib.mp_gemm_ragged_workspace_size, context.handle, desc, ragged, None)


def _ragged(context: Context, a: Any, b: Any, out: Any, c: Any) -> Tuple[_sys.mp_gemm_desc_t, int, Tuple[View, ...]]:
    va, vb = context.check_array(a, "a", dense=False), context.check_array(b, "b", dense=False)
    vd = context.check_array(out, "out", writable=True, dense=False)
    vc = vd if c is None else context.check_array(c, "c", dense=False)
    dimensions = tuple(len(got.shape) for got in (va, vb, vd))
    if dimensions not in ((2, 3, 2), (2, 2, 3)):
        raise ValueError("a, b and out have {}, {} and {} dimensions, but must have 2, 3 and 2 or 2, 2 and 3"
                         .format(*dimensions))
    ragged, groups = (_sys.MP_RAGGED_M, vb.shape[0]) if dimensions[1] == 3 else (_sys.MP_RAGGED_K, vd.shape[0])
    m, n, k = _sizes(va, vb, vd, vc, "")
    desc = _sys.mp_gemm_desc_default(m, n, k, va.mp_dtype, vd.mp_dtype)
    desc.batch_count = groups
    desc.op_a, desc.ld_a = matrix(va, "a")
    desc.op_b, desc.ld_b = matrix(vb, "b")
    desc.ld_d, desc.ld_c = _rows(vd, "out"), _rows(vc, "c")
    if ragged == _sys.MP_RAGGED_M:
        desc.stride_b = vb.strides[0]
    else:
        desc.stride_d, desc.stride_c = vd.strides[0], vc.strides[0]
    return desc, ragged, (va, vb, vc, vd)


def _group(context: Context, products: Sequence[Sequence[Any]], alpha: float, beta: float,
           plan: _epilogue.Plan) -> Tuple[_sys.mp_gemm_desc_t, Any, int]:
    names = ("a", "b", "out", "c")
    views = []
    for i, product in enumerate(products):
        if len(product) not in (3, 4):
            raise ValueError(f"products[{i}] has {len(product)} arrays, not (a, b, out) or (a, b, out, c)")
        got = [context.check_array(array, f"products[{i}].{name}", writable=name == "out", dense=False)
               for name, array in zip(names, product)]
        for name, view in zip(names, got):
            if len(view.shape) != 2:
                raise ValueError(f"products[{i}].{name} has {len(view.shape)} dimensions, not 2")
        views.append(got + got[2:3] if len(got) == 3 else got)
        for name, view, first in zip(names, got, views[0]):
            if view.dtype != first.dtype:
                raise TypeError(f"products[{i}].{name} has dtype {view.dtype}, not {first.dtype}")
    a_type, out_type = (views[0][0].mp_dtype, views[0][2].mp_dtype) if views else (_sys.MP_FP16, _sys.MP_FP16)
    desc = _sys.mp_gemm_desc_default(0, 0, 0, a_type, out_type)
    desc.alpha, desc.beta = alpha, beta
    _epilogue.set_plan(desc, plan)
    desc.op_a, ld_a = _op([v[0] for v in views], "a")
    desc.op_b, ld_b = _op([v[1] for v in views], "b")
    items: Any = (_sys.mp_gemm_group_item_t * max(1, len(views)))()
    for i, (a, b, d, c) in enumerate(views):
        item = _sys.mp_gemm_group_item_default(*_sizes(a, b, d, c, f"products[{i}]."))
        item.ld_a, item.ld_b = ld_a[i], ld_b[i]
        item.ld_d, item.ld_c = _rows(d, f"products[{i}].out"), _rows(c, f"products[{i}].c")
        item.A, item.B, item.C, item.D = a.address, b.address, c.address, d.address
        items[i] = item
    items.views = views  # keep the arrays alive as long as their addresses
    return desc, items, len(views)


def _sizes(a: View, b: View, out: View, c: View, where: str) -> Tuple[int, int, int]:
    (m, k), n = a.shape, b.shape[-1]
    if b.shape[-2] != k:
        raise ValueError(f"{where}b has {b.shape[-2]} rows, but {where}a has {k} columns")
    if a.dtype != b.dtype:
        raise TypeError(f"{where}a has dtype {a.dtype}, but {where}b has {b.dtype}")
    shape = out.shape[:-2] + (m, n)
    for name, got in (("out", out), ("c", c)):
        if got.shape != shape:
            raise ValueError(f"{where}{name} has shape {got.shape}, not {shape}")
        if got.dtype != out.dtype:
            raise TypeError(f"{where}{name} has dtype {got.dtype}, not {out.dtype}")
    return m, n, k


def _op(views: Sequence[View], name: str) -> Tuple[int, List[Any]]:
    """Returns the op that all views have in common, and the leading dimension of each."""
    for op in (_sys.MP_OP_N, _sys.MP_OP_T):
        found = [leading(got, op) for got in views]
        if None not in found:
            return op, found
    raise ValueError(f"matrices {name} must all have contiguous rows or all contiguous columns")


def _rows(got: View, name: str) -> int:
    ld = leading(got, _sys.MP_OP_N)
    if ld is None:
        raise ValueError(f"rows of {name} must be contiguous: shape {got.shape}, strides {got.strides}")
    return ld
