// Declarations of cuDNN's layers around a convolution, so that the bench builds without cuDNN.
// check_cudnn.cpp compares them with cuDNN's headers, if they are installed.
// Source of names and values: cuDNN API reference, "cudnn_ops" (versions 8 and 9).
#pragma once

#include <cstddef>

#include "cudnn_abi.h"

namespace mpbench::cudnn {

using PoolDesc = struct cudnnPoolingStruct *;
using ActivationDesc = struct cudnnActivationStruct *;

enum SoftmaxAlgo : int { kAccurate = 1 };
enum SoftmaxMode : int { kInstance = 0 };
enum PoolMode : int { kMax = 0, kAvgIncludePad = 1 };
enum NanPropagation : int { kPropagateNan = 1 };
enum BatchNormMode : int { kSpatialPersistent = 2 };
enum BatchNormOps : int { kBatchNormAlone = 0 };

#define MPBENCH_CUDNN_LAYER_FUNCTIONS(X)                                                           \
  X(Status, softmax_forward, cudnnSoftmaxForward, Handle, SoftmaxAlgo, SoftmaxMode,                \
    const void *alpha, TensorDesc x_desc, const void *x, const void *beta, TensorDesc y_desc,      \
    void *y)                                                                                       \
  X(Status, create_pool, cudnnCreatePoolingDescriptor, PoolDesc *)                                 \
  X(Status, destroy_pool, cudnnDestroyPoolingDescriptor, PoolDesc)                                 \
  X(Status, set_pool_2d, cudnnSetPooling2dDescriptor, PoolDesc, PoolMode, NanPropagation,          \
    int window_h, int window_w, int pad_h, int pad_w, int stride_h, int stride_w)                  \
  X(Status, pool_forward, cudnnPoolingForward, Handle, PoolDesc, const void *alpha,                \
    TensorDesc x_desc, const void *x, const void *beta, TensorDesc y_desc, void *y)                \
  X(Status, pool_backward, cudnnPoolingBackward, Handle, PoolDesc, const void *alpha,              \
    TensorDesc y_desc, const void *y, TensorDesc dy_desc, const void *dy, TensorDesc x_desc,       \
    const void *x, const void *beta, TensorDesc dx_desc, void *dx)                                 \
  X(Status, derive_batch_norm, cudnnDeriveBNTensorDescriptor, TensorDesc derived,                  \
    TensorDesc x_desc, BatchNormMode)                                                              \
  X(Status, batch_norm_forward_bytes, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,    \
    Handle, BatchNormMode, BatchNormOps, TensorDesc x_desc, TensorDesc z_desc, TensorDesc y_desc,  \
    TensorDesc channels, ActivationDesc, size_t *)                                                 \
  X(Status, batch_norm_backward_bytes, cudnnGetBatchNormalizationBackwardExWorkspaceSize, Handle,  \
    BatchNormMode, BatchNormOps, TensorDesc x_desc, TensorDesc y_desc, TensorDesc dy_desc,         \
    TensorDesc dz_desc, TensorDesc dx_desc, TensorDesc channels, ActivationDesc, size_t *)         \
  X(Status, batch_norm_reserve_bytes, cudnnGetBatchNormalizationTrainingExReserveSpaceSize,        \
    Handle, BatchNormMode, BatchNormOps, ActivationDesc, TensorDesc x_desc, size_t *)              \
  X(Status, batch_norm_forward, cudnnBatchNormalizationForwardTrainingEx, Handle, BatchNormMode,   \
    BatchNormOps, const void *alpha, const void *beta, TensorDesc x_desc, const void *x,           \
    TensorDesc z_desc, const void *z, TensorDesc y_desc, void *y, TensorDesc channels,             \
    const void *gamma, const void *shift, double momentum, void *running_mean, void *running_var,  \
    double epsilon, void *saved_mean, void *saved_inv_std, ActivationDesc, void *workspace,        \
    size_t workspace_bytes, void *reserve, size_t reserve_bytes)                                   \
  X(Status, batch_norm_backward, cudnnBatchNormalizationBackwardEx, Handle, BatchNormMode,         \
    BatchNormOps, const void *alpha_data, const void *beta_data, const void *alpha_channels,       \
    const void *beta_channels, TensorDesc x_desc, const void *x, TensorDesc y_desc, const void *y, \
    TensorDesc dy_desc, const void *dy, TensorDesc dz_desc, void *dz, TensorDesc dx_desc,          \
    void *dx, TensorDesc channels, const void *gamma, const void *shift, void *dgamma,             \
    void *dshift, double epsilon, const void *saved_mean, const void *saved_inv_std,               \
    ActivationDesc, void *workspace, size_t workspace_bytes, void *reserve, size_t reserve_bytes)
MPBENCH_TABLE(LayerFunctions, MPBENCH_CUDNN_LAYER_FUNCTIONS)

}  // namespace mpbench::cudnn
