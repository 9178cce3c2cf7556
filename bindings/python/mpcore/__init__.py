"""mpcore: mixed-precision training kernels for whoever has arrays and no framework, or another one.

    context = mpcore.Context("host")
    y = mpcore.gemm(context, x, w, bias=bias, activation="relu")
    ...
    mpcore.scale_step(optimizer, scaler, max_grad_norm=1.0)

Arrays are those of this package (context.zeros, context.array), numpy's on the host target, and on
CUDA whatever has __cuda_array_interface__ or DLPack: torch and cupy tensors.  Everything that
mpcore.h declares and this layer has no word for is in mpcore._sys; mpcore.lib is the library.

Nothing is converted or copied behind the caller's back: labels and indices of int64, big-endian and
strided arrays are refused with a sentence that says what to do.  Objects can be closed, which otherwise
happens when they go; objects that they use stay until then.  None can be copied or pickled but AutocastGraph.
"""

from typing import Tuple

from ._gemm import gemm, gemm_kernels, gemm_workspace_size
from ._library import Error, check, lib
from .arrays import View, view
from .autocast import Autocast, AutocastCast, AutocastGraph, AutocastResult, AutocastTensor
from .context import Context, DeviceArray
from .convolution import Conv2d
from .graph import Graph, GraphTensor
from .groups import (Matrices, gemm_batched, gemm_grouped, gemm_grouped_workspace_size, gemm_ragged,
                     gemm_ragged_workspace_size)
from .layers import (BatchNorm, ColumnSum, Pool2d, element_loss, nchw_to_nhwc, nhwc_to_nchw, pointwise,
                     softmax_xent)
from .rnn import Rnn, RnnStep
from .sequences import Embedding, dropout
from .tensors import Reports, TensorList, nccl_comm
from .training import Optimizer, Scaler, clip_factor, masters_to_model, scale_step

__all__ = ["Autocast", "AutocastCast", "AutocastGraph", "AutocastResult", "AutocastTensor", "BatchNorm", "Context",
           "ColumnSum", "Conv2d", "DeviceArray", "Embedding", "Error", "Graph", "GraphTensor", "Matrices",
           "Optimizer", "Pool2d", "Reports", "Rnn", "RnnStep", "Scaler", "TensorList", "View", "build_info", "check",
           "clip_factor", "dropout", "element_loss", "gemm", "gemm_batched", "gemm_grouped",
           "gemm_grouped_workspace_size", "gemm_kernels", "gemm_ragged", "gemm_ragged_workspace_size",
           "gemm_workspace_size", "lib", "masters_to_model", "nccl_comm", "nchw_to_nhwc", "nhwc_to_nchw", "pointwise",
           "scale_step", "softmax_xent", "version", "view"]


def build_info() -> str:
    """One line for a bug report."""
    return lib.mp_build_info().decode()


def version() -> Tuple[int, int, int]:
    """(major, minor, patch) of the library that is loaded."""
    number = lib.mp_version()
    return number // 10000, number // 100 % 100, number % 100


__version__ = ".".join(str(part) for part in version())
