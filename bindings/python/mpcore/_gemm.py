"""Single and strided-batched GEMM (mpcore/gemm.h)."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Tuple

from . import _epilogue, _sys
from ._library import check, lib, read_text
from .arrays import View, dtype_name, mp_dtype_of, point
from .context import Context, DeviceArray, stream_pointer


def leading(got: View, op: int) -> Optional[int]:
    """Returns the leading dimension of a matrix or batch that is stored by rows (MP_OP_N) or by
    columns (MP_OP_T); None if it is stored otherwise."""
    (rows, columns), (by_row, by_column) = got.shape[-2:], got.strides[-2:]
    if op == _sys.MP_OP_T:
        rows, columns, by_row, by_column = columns, rows, by_column, by_row
    if (by_column == 1 or columns <= 1) and (by_row >= columns or rows <= 1):
        return by_row if rows > 1 else max(columns, 1)
    return None


def matrix(got: View, name: str) -> Tuple[int, int]:
    """Returns (op, ld) of a matrix or batch with contiguous rows or columns (a transposed view)."""
    for op in (_sys.MP_OP_N, _sys.MP_OP_T):
        ld = leading(got, op)
        if ld is not None:
            return op, ld
    raise ValueError(f"{name} has neither contiguous rows nor contiguous columns: shape {got.shape}, "
                     f"strides {got.strides}")


def _batch(got: View, batch: int, name: str) -> int:
    """Returns the number of elements between matrices; 0 for one matrix that all items share."""
    if len(got.shape) == 2:
        return 0
    if got.shape[0] != batch:
        raise ValueError(f"{name} has {got.shape[0]} matrices, not {batch}")
    return got.strides[0]


def gemm(context: Context, a: Any, b: Any, out: Any = None, *, c: Any = None, alpha: float = 1.0,
         beta: float = 0.0, dtype: Any = None, bias: Any = None, activation: Any = "none", aux: Any = None,
         dbias: Any = None, amax: Any = None, found_inf: Any = None, scale: Any = None,
         workspace: Any = None, plan: _epilogue.Plan = None, stream: Any = None) -> Any:
    """Computes out = activation(alpha scale a b + beta c + bias), accumulated in FP32; returns out.

    a, b       m x k and k x n matrices, or three-dimensional batches; a batch shares a
               two-dimensional operand.  Transposed views (x.T) are not copied
    out        m x n; allocated with the type `dtype` (default: that of a) if None
    c          default: out
    workspace  array of bytes, optional; see gemm_workspace_size for the useful size
    plan       a plan of gemm_plan, or the name of a kernel

    Epilogue (mp_epilogue_t): bias and dbias have n elements, aux is m x n; amax, found_inf and
    scale are float32, 1 element.
    """
    va = context.check_array(a, "a", dense=False)
    vb = context.check_array(b, "b", dense=False)
    for name, got in (("a", va), ("b", vb)):
        if len(got.shape) not in (2, 3):
            raise ValueError(f"{name} has {len(got.shape)} dimensions, not 2 or 3")
    m, k = va.shape[-2:]
    n = vb.shape[-1]
    if vb.shape[-2] != k:
        raise ValueError(f"b has {vb.shape[-2]} rows, but a has {k} columns")
    if va.dtype != vb.dtype:
        raise TypeError(f"a has dtype {va.dtype}, but b has {vb.dtype}")
    batched = len(va.shape) == 3 or len(vb.shape) == 3
    batch = va.shape[0] if len(va.shape) == 3 else vb.shape[0] if batched else 1
    shape = (batch, m, n) if batched else (m, n)
    if out is None:
        if beta != 0 and c is None:
            raise ValueError(f"beta = {beta} requires out or c")
        out = DeviceArray(context, shape, dtype or va.dtype)
    vd = context.check_array(out, "out", dtype=dtype, shape=shape, writable=True, dense=False)
    vc = vd if c is None else context.check_array(c, "c", dtype=vd.dtype, shape=shape, dense=False)

    desc = _sys.mp_gemm_desc_default(m, n, k, va.mp_dtype, vd.mp_dtype)
    desc.alpha, desc.beta = alpha, beta
    desc.op_a, desc.ld_a = matrix(va, "a")
    desc.op_b, desc.ld_b = matrix(vb, "b")
    for name, got in (("out", vd), ("c", vc)):
        op, ld = matrix(got, name)
        if op != _sys.MP_OP_N:
            raise ValueError(f"rows of {name} must be contiguous: shape {got.shape}, strides {got.strides}")
        setattr(desc, "ld_c" if name == "c" else "ld_d", ld)
    if batched:
        desc.batch_count = batch
        desc.stride_a, desc.stride_b = _batch(va, batch, "a"), _batch(vb, batch, "b")
        desc.stride_c, desc.stride_d = _batch(vc, batch, "c"), _batch(vd, batch, "out")
    _epilogue.set_plan(desc, plan)

    epilogue = _epilogue.make(context, n, bias=bias, activation=activation, dbias=dbias, amax=amax,
                              found_inf=found_inf, scale=scale)
    if aux is not None:
        vaux = context.check_array(aux, "aux", dtype=vd.dtype, shape=shape, dense=False,
                                   writable=_epilogue.writes_aux(epilogue))
        op, epilogue.ld_aux = matrix(vaux, "aux")
        if op != _sys.MP_OP_N or batched and vaux.strides[0] != desc.stride_d:
            raise ValueError("aux must have contiguous rows and the batch stride of out")
        point(epilogue, aux=vaux)

    check(lib.mp_gemm(context.handle, desc, va, vb, vc if beta != 0 else None, vd, epilogue,
                      *_epilogue.workspace_of(context, workspace), stream_pointer(stream)))
    return out


def _dense(m: int, n: int, k: int, dtype: Any, dtype_out: Any, batch_count: int) -> Any:
    kind = mp_dtype_of(dtype_name(dtype))
    out = kind if dtype_out is None else mp_dtype_of(dtype_name(dtype_out))
    desc = _sys.mp_gemm_desc_default(m, n, k, kind, out)
    desc.batch_count = batch_count
    if batch_count != 1:
        desc.stride_a, desc.stride_b, desc.stride_c, desc.stride_d = m * k, k * n, m * n, m * n
    return desc


def gemm_workspace_size(context: Context, m: int, n: int, k: int, dtype: Any = "fp16",
                        dtype_out: Any = None, batch_count: int = 1, *, dbias: bool = False) -> int:
    """Returns the workspace size in bytes with which gemm is fastest; often 0."""
    desc = _dense(m, n, k, dtype, dtype_out, batch_count)
    return _epilogue.bytes_of(lib.mp_gemm_workspace_size, context.handle, desc, _epilogue.for_query(dbias))


def gemm_plan(context: Context, m: int, n: int, k: int, dtype: Any = "fp16", dtype_out: Any = None,
              batch_count: int = 1, *, dbias: bool = False,
              max_workspace_bytes: int = sys.maxsize) -> _sys.mp_plan_t:
    """Returns the fastest plan of gemm.  bytes(plan) can be stored; mp_plan_t.from_buffer_copy
    reads it."""
    desc = _dense(m, n, k, dtype, dtype_out, batch_count)
    return _epilogue.plan_of(lib.mp_gemm_get_plan, context.handle, desc,
                             _epilogue.for_query(dbias), max_workspace_bytes)


def gemm_explain(context: Context, m: int, n: int, k: int, dtype: Any = "fp16", dtype_out: Any = None,
                 batch_count: int = 1, *, dbias: bool = False, plan: _epilogue.Plan = None) -> str:
    """Describes a plan, by default the one that gemm selects, for people."""
    desc = _dense(m, n, k, dtype, dtype_out, batch_count)
    _epilogue.set_plan(desc, plan)
    return read_text(lambda text, size: lib.mp_gemm_explain(context.handle, desc,
                                                            _epilogue.for_query(dbias), text, size))


def gemm_kernels(context: Context, m: int, n: int, k: int, dtype: Any = "fp16", dtype_out: Any = None,
                 batch_count: int = 1) -> List[_sys.mp_kernel_info_t]:
    """Returns an mp_kernel_info_t for every kernel, first the one that gemm selects.

    `reason` is set if a kernel does not support the product.  For tests and tuning; the argument
    plan= of gemm accepts a name.
    """
    desc = _dense(m, n, k, dtype, dtype_out, batch_count)
    return _epilogue.kernels_of(lib.mp_gemm_kernel_info, context.handle, desc)


def tuning_text() -> str:
    """Returns the kernels that this process has measured, as lines for a file MP_GEMM_TUNING."""
    return read_text(lib.mp_tuning_get_text)
