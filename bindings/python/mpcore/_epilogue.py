"""The epilogue that GEMM and convolution share, and their workspace."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Tuple

from . import _sys
from ._library import check, enumerator
from .arrays import View, point
from .context import Context


def make(context: Context, columns: int, *, bias: Any = None, activation: Any = "none", dbias: Any = None,
         amax: Any = None, found_inf: Any = None, scale: Any = None) -> Any:
    """mp_epilogue_t without aux, of which the caller knows the layout; bias and dbias have `columns`
    elements, amax, found_inf and scale 1 of float32.  It keeps these arrays alive."""
    epilogue = _sys.mp_epilogue_default()
    epilogue.activation = enumerator(_sys.mp_activation_t, activation, "activation")
    if bias is not None:
        got = context.check_array(bias, "bias", size=columns)
        point(epilogue, bias=got).bias_dtype = got.mp_dtype
    for name, array, size in (("dbias", dbias, columns), ("amax", amax, 1), ("found_inf", found_inf, 1),
                              ("scale", scale, 1)):
        if array is not None:
            got = context.check_array(array, name, dtype="float32", size=size, writable=name != "scale")
            point(epilogue, **{name: got})
    return epilogue


def writes_aux(epilogue: Any) -> bool:
    """True unless the activation is a derivative, which reads it."""
    return not enumerator(_sys.mp_activation_t, epilogue.activation, "activation").name.startswith("MP_ACT_D")


def workspace_of(context: Context, workspace: Any) -> Tuple[Optional[View], int]:
    """(view, bytes); nothing where there is none."""
    if workspace is None:
        return None, 0
    got: View = context.check_array(workspace, "workspace", writable=True)
    return got, got.nbytes


def bytes_of(query: Any, *arguments: Any) -> int:
    """What a mp_*_workspace_size function answers."""
    size = ctypes.c_size_t()
    check(query(*arguments, ctypes.byref(size)))
    return size.value


def kernels_of(query: Any, *arguments: Any) -> List[_sys.mp_kernel_info_t]:
    """All answers of a mp_*_kernel_info function, the best kernel first."""
    kernels: List[_sys.mp_kernel_info_t] = []
    while True:
        info = _sys.mp_kernel_info_t()
        status = query(*arguments, len(kernels), ctypes.byref(info))
        if status == _sys.MP_ERROR_NOT_FOUND:
            return kernels
        check(status)
        kernels.append(info)
