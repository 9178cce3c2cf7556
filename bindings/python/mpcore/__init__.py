"""mpcore: mixed-precision training kernels for Python, with or without a framework.

    context = mpcore.Context("host")
    y = mpcore.gemm(context, x, w, bias=bias, activation="relu")
    ...
    mpcore.scale_step(optimizer, scaler, max_grad_norm=1.0)

Functions accept arrays of this package (context.zeros, context.array), numpy arrays on the host
target, and on CUDA all arrays with __cuda_array_interface__ or DLPack, such as torch and cupy
tensors.  mpcore._sys contains all other declarations of mpcore.h; mpcore.lib is the loaded library.

Arguments are never converted or copied implicitly: int64 labels and indices, big-endian arrays and
strided arrays raise an exception that names the remedy.  close() releases an object; otherwise the
garbage collector does.  Objects keep the objects that they use alive.  Only AutocastGraph can be
copied or pickled.
"""

from typing import Tuple

from ._gemm import gemm, gemm_explain, gemm_kernels, gemm_plan, gemm_workspace_size, tuning_text
from ._library import Error, check, lib
from .arrays import View, view
from .attention import Attention
from .autocast import Autocast, AutocastCast, AutocastGraph, AutocastResult, AutocastTensor
from .context import Context, DeviceArray
from .convolution import Conv2d
from .copies import nchw_to_nhwc, nhwc_to_nchw, strided_copy
from .graph import Graph, GraphTensor
from .groups import (Matrices, gemm_batched, gemm_batched_plan, gemm_batched_workspace_size, gemm_grouped,
                     gemm_grouped_workspace_size, gemm_ragged, gemm_ragged_workspace_size)
from .layers import (BatchNorm, ColumnSum, Pool2d, element_loss, glu_backward, glu_forward, linear_xent,
                     pointwise, softmax_xent, sum_rows, xent_count)
from .norm import Norm
from .rnn import Rnn, RnnStep
from .sequences import Embedding, dropout, rope, softmax_backward, softmax_forward
from .tensors import Reports, TensorList, nccl_comm
from .training import Optimizer, Scaler, clip_factor, masters_to_model, scale_step

__all__ = ["Attention", "Autocast", "AutocastCast", "AutocastGraph", "AutocastResult", "AutocastTensor", "BatchNorm",
           "Context", "ColumnSum", "Conv2d", "DeviceArray", "Embedding", "Error", "Graph", "GraphTensor", "Matrices",
           "Norm", "Optimizer", "Pool2d", "Reports", "Rnn", "RnnStep", "Scaler", "TensorList", "View", "build_info",
           "check", "clip_factor", "dropout", "element_loss", "gemm", "gemm_batched", "gemm_batched_plan",
           "gemm_batched_workspace_size", "gemm_explain", "gemm_grouped", "gemm_grouped_workspace_size",
           "gemm_kernels", "gemm_plan", "gemm_ragged", "gemm_ragged_workspace_size", "gemm_workspace_size",
           "glu_backward", "glu_forward", "lib", "linear_xent", "masters_to_model", "nccl_comm", "nchw_to_nhwc",
           "nhwc_to_nchw", "pointwise", "rope", "scale_step", "softmax_backward", "softmax_forward", "softmax_xent",
           "strided_copy", "sum_rows", "tuning_text", "version", "view", "xent_count"]


def build_info() -> str:
    """Returns one line for bug reports: version, git hash, CUDA version, compiled targets."""
    return lib.mp_build_info().decode()


def version() -> Tuple[int, int, int]:
    """Returns (major, minor, patch) of the loaded library."""
    number = lib.mp_version()
    return number // 10000, number // 100 % 100, number % 100


__version__ = ".".join(str(part) for part in version())
