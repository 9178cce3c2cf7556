// Declarations of the cuDNN functions for one convolution, so that the bench builds without cuDNN.
// check_cudnn.cpp compares them with cuDNN's headers, if they are installed.
// Source of names and values: cuDNN API reference, "cudnn_ops" and "cudnn_cnn" (versions 8 and 9).
#pragma once

#include <cstddef>

#include "dynamic_library.h"
#include "mpcore.h"

namespace mpbench::cudnn {

using Status = int;  // cudnnStatus_t; 0 is success
using Handle = struct cudnnContext *;
using TensorDesc = struct cudnnTensorStruct *;
using FilterDesc = struct cudnnFilterStruct *;
using ConvDesc = struct cudnnConvolutionStruct *;

enum DataType : int { kFloat = 0, kHalf = 2, kBfloat16 = 9 };
inline DataType data_type(mp_dtype_t dtype) {
  return dtype == MP_FP16 ? kHalf : dtype == MP_BF16 ? kBfloat16 : kFloat;
}
enum Format : int { kNchw = 0, kNhwc = 1 };
enum Mode : int { kCrossCorrelation = 1 };
/// Math types; for fp32, kDefault allows tf32 and kFma does not.
enum MathType : int { kDefault = 0, kTensorOp = 1, kFma = 3 };

/// Algorithm of one of the three passes; each pass has its own numbering.
using Algo = int;

/// Result of a search; equal for all passes.
struct AlgoPerf {
  Algo algo;
  Status status;
  float time_ms;
  size_t memory_bytes;
  int determinism;
  MathType math;
  int reserved[3];
};

// Descriptors and pointers of the two inputs in the order of the pass's own functions.
#define MPBENCH_CUDNN_FUNCTIONS(X)                                                                 \
  X(size_t, get_version, cudnnGetVersion)                                                          \
  X(const char *, get_error_string, cudnnGetErrorString, Status)                                   \
  X(Status, create, cudnnCreate, Handle *)                                                         \
  X(Status, destroy, cudnnDestroy, Handle)                                                         \
  X(Status, set_stream, cudnnSetStream, Handle, mp_stream_t)                                       \
  X(Status, create_tensor, cudnnCreateTensorDescriptor, TensorDesc *)                              \
  X(Status, destroy_tensor, cudnnDestroyTensorDescriptor, TensorDesc)                              \
  X(Status, set_tensor_4d, cudnnSetTensor4dDescriptor, TensorDesc, Format, DataType, int n, int c, \
    int h, int w)                                                                                  \
  X(Status, create_filter, cudnnCreateFilterDescriptor, FilterDesc *)                              \
  X(Status, destroy_filter, cudnnDestroyFilterDescriptor, FilterDesc)                              \
  X(Status, set_filter_4d, cudnnSetFilter4dDescriptor, FilterDesc, DataType, Format, int k, int c, \
    int r, int s)                                                                                  \
  X(Status, create_convolution, cudnnCreateConvolutionDescriptor, ConvDesc *)                      \
  X(Status, destroy_convolution, cudnnDestroyConvolutionDescriptor, ConvDesc)                      \
  X(Status, set_convolution_2d, cudnnSetConvolution2dDescriptor, ConvDesc, int pad_h, int pad_w,   \
    int stride_h, int stride_w, int dilation_h, int dilation_w, Mode, DataType compute)            \
  X(Status, set_group_count, cudnnSetConvolutionGroupCount, ConvDesc, int)                         \
  X(Status, set_math_type, cudnnSetConvolutionMathType, ConvDesc, MathType)                        \
  X(Status, find_forward, cudnnFindConvolutionForwardAlgorithmEx, Handle, TensorDesc x_desc,       \
    const void *x, FilterDesc, const void *filter, ConvDesc, TensorDesc y_desc, void *y,           \
    int requested, int *returned, AlgoPerf *, void *workspace, size_t workspace_bytes)             \
  X(Status, find_backward_data, cudnnFindConvolutionBackwardDataAlgorithmEx, Handle, FilterDesc,   \
    const void *filter, TensorDesc dy_desc, const void *dy, ConvDesc, TensorDesc dx_desc,          \
    void *dx, int requested, int *returned, AlgoPerf *, void *workspace, size_t workspace_bytes)   \
  X(Status, find_backward_filter, cudnnFindConvolutionBackwardFilterAlgorithmEx, Handle,           \
    TensorDesc x_desc, const void *x, TensorDesc dy_desc, const void *dy, ConvDesc, FilterDesc,    \
    void *dfilter, int requested, int *returned, AlgoPerf *, void *workspace,                      \
    size_t workspace_bytes)                                                                        \
  X(Status, forward, cudnnConvolutionForward, Handle, const void *alpha, TensorDesc x_desc,        \
    const void *x, FilterDesc, const void *filter, ConvDesc, Algo, void *workspace,                \
    size_t workspace_bytes, const void *beta, TensorDesc y_desc, void *y)                          \
  X(Status, backward_data, cudnnConvolutionBackwardData, Handle, const void *alpha, FilterDesc,    \
    const void *filter, TensorDesc dy_desc, const void *dy, ConvDesc, Algo, void *workspace,       \
    size_t workspace_bytes, const void *beta, TensorDesc dx_desc, void *dx)                        \
  X(Status, backward_filter, cudnnConvolutionBackwardFilter, Handle, const void *alpha,            \
    TensorDesc x_desc, const void *x, TensorDesc dy_desc, const void *dy, ConvDesc, Algo,          \
    void *workspace, size_t workspace_bytes, const void *beta, FilterDesc, void *dfilter)
MPBENCH_TABLE(Functions, MPBENCH_CUDNN_FUNCTIONS)

}  // namespace mpbench::cudnn
