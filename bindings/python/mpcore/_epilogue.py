"""Epilogue, plan and workspace arguments, shared by GEMM and convolution."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Tuple, Union

from . import _sys
from ._library import check, enumerator
from .arrays import View, point
from .context import Context


def make(context: Context, columns: int, *, bias: Any = None, activation: Any = "none", dbias: Any = None,
         amax: Any = None, found_inf: Any = None, scale: Any = None) -> Any:
    """Returns an mp_epilogue_t without aux, whose layout depends on the caller.  It keeps its
    arrays alive.

    bias, dbias              `columns` elements
    amax, found_inf, scale   float32, 1 element
    """
    epilogue = _sys.mp_epilogue_default()
    epilogue.activation = enumerator(_sys.mp_activation_t, activation, "activation")
    if bias is not None:
        got = context.check_array(bias, "bias", size=columns)
        point(epilogue, bias=got).dtype_bias = got.mp_dtype
    for struct, name, array, size in ((epilogue, "dbias", dbias, columns), (epilogue.stats, "amax", amax, 1),
                                      (epilogue.stats, "found_inf", found_inf, 1), (epilogue, "scale", scale, 1)):
        if array is not None:
            got = context.check_array(array, name, dtype="float32", size=size, writable=name != "scale")
            setattr(struct, name, got.address)
            epilogue.views = {**getattr(epilogue, "views", {}), name: got}
    return epilogue


def stats_of(context: Context, found_inf: Any, amax: Any) -> Any:
    """Returns an mp_grad_stats_t that keeps its arrays, float32 with 1 element or None, alive."""
    return point(_sys.mp_grad_stats_t(), **{
        name: None if array is None else context.check_array(array, name, dtype="float32", size=1, writable=True)
        for name, array in (("found_inf", found_inf), ("amax", amax))})


def writes_aux(epilogue: Any) -> bool:
    """Returns whether the activation writes aux; derivatives read it."""
    return not enumerator(_sys.mp_activation_t, epilogue.activation, "activation").name.startswith("MP_ACT_D")


Plan = Union[None, str, _sys.mp_plan_t]


def set_plan(desc: Any, plan: Plan) -> None:
    """Sets desc.plan to a plan, or to one that names a kernel.  The descriptor keeps it alive."""
    if isinstance(plan, str):
        plan = _sys.mp_plan_default(plan.encode())
    desc.plan = None if plan is None else ctypes.pointer(plan)


def for_query(dbias: bool) -> Any:
    """Returns an mp_epilogue_t for a query, whose pointers are not read."""
    epilogue = _sys.mp_epilogue_default()
    epilogue.dbias = 256 if dbias else None
    return epilogue


def plan_of(query: Any, *arguments: Any) -> _sys.mp_plan_t:
    """Returns the result of an mp_*_get_plan function."""
    plan = _sys.mp_plan_t()
    check(query(*arguments, plan))
    return plan


def workspace_of(context: Context, workspace: Any) -> Tuple[Optional[View], int]:
    """Returns (view, bytes) of a workspace, or (None, 0)."""
    if workspace is None:
        return None, 0
    got: View = context.check_array(workspace, "workspace", writable=True)
    return got, got.nbytes


def bytes_of(query: Any, *arguments: Any) -> int:
    """Returns the result of an mp_*_workspace_size function."""
    size = ctypes.c_size_t()
    check(query(*arguments, ctypes.byref(size)))
    return size.value


def kernels_of(query: Any, *arguments: Any) -> List[_sys.mp_kernel_info_t]:
    """Returns all results of an mp_*_kernel_info function, fastest kernel first."""
    kernels: List[_sys.mp_kernel_info_t] = []
    while True:
        info = _sys.mp_kernel_info_t()
        status = query(*arguments, len(kernels), info)
        if status == _sys.MP_ERROR_NOT_FOUND:
            return kernels
        check(status)
        kernels.append(info)
