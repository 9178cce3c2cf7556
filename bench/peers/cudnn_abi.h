// Declarations of the cuDNN functions for one convolution, so that the bench builds without cuDNN.
// check_cudnn.cpp compares them with cuDNN's headers, if they are installed.
// Source of names and values: cuDNN API reference, "cudnn_ops" and "cudnn_cnn" (versions 8 and 9).
#pragma once

#include <cstddef>

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

/// Descriptors and pointers of the two inputs in the order of the pass's own functions.
struct Functions {
  size_t (*get_version)();
  const char *(*get_error_string)(Status);
  Status (*create)(Handle *);
  Status (*destroy)(Handle);
  Status (*set_stream)(Handle, mp_stream_t);

  Status (*create_tensor)(TensorDesc *);
  Status (*destroy_tensor)(TensorDesc);
  Status (*set_tensor_4d)(TensorDesc, Format, DataType, int n, int c, int h, int w);
  Status (*create_filter)(FilterDesc *);
  Status (*destroy_filter)(FilterDesc);
  Status (*set_filter_4d)(FilterDesc, DataType, Format, int k, int c, int r, int s);
  Status (*create_convolution)(ConvDesc *);
  Status (*destroy_convolution)(ConvDesc);
  Status (*set_convolution_2d)(ConvDesc, int pad_h, int pad_w, int stride_h, int stride_w,
                               int dilation_h, int dilation_w, Mode, DataType compute);
  Status (*set_group_count)(ConvDesc, int);
  Status (*set_math_type)(ConvDesc, MathType);

  Status (*find_forward)(Handle, TensorDesc x_desc, const void *x, FilterDesc, const void *filter,
                         ConvDesc, TensorDesc y_desc, void *y, int requested, int *returned,
                         AlgoPerf *, void *workspace, size_t workspace_bytes);
  Status (*find_backward_data)(Handle, FilterDesc, const void *filter, TensorDesc dy_desc,
                               const void *dy, ConvDesc, TensorDesc dx_desc, void *dx,
                               int requested, int *returned, AlgoPerf *, void *workspace,
                               size_t workspace_bytes);
  Status (*find_backward_filter)(Handle, TensorDesc x_desc, const void *x, TensorDesc dy_desc,
                                 const void *dy, ConvDesc, FilterDesc, void *dfilter, int requested,
                                 int *returned, AlgoPerf *, void *workspace,
                                 size_t workspace_bytes);
  Status (*forward)(Handle, const void *alpha, TensorDesc x_desc, const void *x, FilterDesc,
                    const void *filter, ConvDesc, Algo, void *workspace, size_t workspace_bytes,
                    const void *beta, TensorDesc y_desc, void *y);
  Status (*backward_data)(Handle, const void *alpha, FilterDesc, const void *filter,
                          TensorDesc dy_desc, const void *dy, ConvDesc, Algo, void *workspace,
                          size_t workspace_bytes, const void *beta, TensorDesc dx_desc, void *dx);
  Status (*backward_filter)(Handle, const void *alpha, TensorDesc x_desc, const void *x,
                            TensorDesc dy_desc, const void *dy, ConvDesc, Algo, void *workspace,
                            size_t workspace_bytes, const void *beta, FilterDesc, void *dfilter);
};

// Each function with its symbol name, for dlsym and for the comparison with the headers.
#define MPBENCH_CUDNN_FUNCTIONS(X)                                       \
  X(get_version, cudnnGetVersion)                                        \
  X(get_error_string, cudnnGetErrorString)                               \
  X(create, cudnnCreate)                                                 \
  X(destroy, cudnnDestroy)                                               \
  X(set_stream, cudnnSetStream)                                          \
  X(create_tensor, cudnnCreateTensorDescriptor)                          \
  X(destroy_tensor, cudnnDestroyTensorDescriptor)                        \
  X(set_tensor_4d, cudnnSetTensor4dDescriptor)                           \
  X(create_filter, cudnnCreateFilterDescriptor)                          \
  X(destroy_filter, cudnnDestroyFilterDescriptor)                        \
  X(set_filter_4d, cudnnSetFilter4dDescriptor)                           \
  X(create_convolution, cudnnCreateConvolutionDescriptor)                \
  X(destroy_convolution, cudnnDestroyConvolutionDescriptor)              \
  X(set_convolution_2d, cudnnSetConvolution2dDescriptor)                 \
  X(set_group_count, cudnnSetConvolutionGroupCount)                      \
  X(set_math_type, cudnnSetConvolutionMathType)                          \
  X(find_forward, cudnnFindConvolutionForwardAlgorithmEx)                \
  X(find_backward_data, cudnnFindConvolutionBackwardDataAlgorithmEx)     \
  X(find_backward_filter, cudnnFindConvolutionBackwardFilterAlgorithmEx) \
  X(forward, cudnnConvolutionForward)                                    \
  X(backward_data, cudnnConvolutionBackwardData)                         \
  X(backward_filter, cudnnConvolutionBackwardFilter)

}  // namespace mpbench::cudnn
