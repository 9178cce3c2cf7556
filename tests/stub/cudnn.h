// Declarations of cuDNN that bench/peers uses, so that its code is tested without cuDNN's header.
// Source of names and values: cuDNN API reference, version 9.19.
#pragma once

#include <cstddef>
#include <cstdint>

#define CUDNN_VERSION 91900

// clang-format off

enum cudnnStatus_t { CUDNN_STATUS_SUCCESS };
enum cudnnDataType_t { CUDNN_DATA_FLOAT = 0, CUDNN_DATA_HALF = 2, CUDNN_DATA_BFLOAT16 = 9 };
enum cudnnMathType_t { CUDNN_DEFAULT_MATH = 0, CUDNN_TENSOR_OP_MATH = 1, CUDNN_FMA_MATH = 3 };
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC };
enum cudnnNanPropagation_t { CUDNN_PROPAGATE_NAN = 1 };
enum cudnnDeterminism_t {};

enum cudnnConvolutionMode_t { CUDNN_CROSS_CORRELATION = 1 };
enum cudnnConvolutionFwdAlgo_t {};
enum cudnnConvolutionBwdDataAlgo_t {};
enum cudnnConvolutionBwdFilterAlgo_t {};

enum cudnnSoftmaxAlgorithm_t { CUDNN_SOFTMAX_ACCURATE = 1 };
enum cudnnSoftmaxMode_t { CUDNN_SOFTMAX_MODE_INSTANCE };
enum cudnnPoolingMode_t { CUDNN_POOLING_MAX, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING };
enum cudnnBatchNormMode_t { CUDNN_BATCHNORM_SPATIAL_PERSISTENT = 2 };
enum cudnnBatchNormOps_t { CUDNN_BATCHNORM_OPS_BN };

enum cudnnRNNAlgo_t {};
enum cudnnRNNMode_t { CUDNN_RNN_RELU = 0, CUDNN_LSTM = 2, CUDNN_GRU = 3 };
enum cudnnRNNBiasMode_t { CUDNN_RNN_DOUBLE_BIAS = 2 };
enum cudnnDirectionMode_t { CUDNN_UNIDIRECTIONAL };
enum cudnnRNNInputMode_t { CUDNN_SKIP_INPUT = 1 };
enum cudnnRNNDataLayout_t { CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1 };
enum cudnnForwardMode_t { CUDNN_FWD_MODE_INFERENCE, CUDNN_FWD_MODE_TRAINING };
enum cudnnWgradMode_t { CUDNN_WGRAD_MODE_ADD };

enum cudnnBackendHeurMode_t { CUDNN_HEUR_MODE_A = 3 };
enum cudnnBackendNumericalNote_t {
  CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4, CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10
};
enum cudnnBackendDescriptorType_t {
  CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1, CUDNN_BACKEND_ENGINE_DESCRIPTOR,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR = 41,
  CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR = 43
};
enum cudnnBackendAttributeType_t {
  CUDNN_TYPE_HANDLE, CUDNN_TYPE_DATA_TYPE, CUDNN_TYPE_BOOLEAN, CUDNN_TYPE_INT64, CUDNN_TYPE_FLOAT,
  CUDNN_TYPE_VOID_PTR = 6, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_TYPE_HEUR_MODE,
  CUDNN_TYPE_NUMERICAL_NOTE = 11, CUDNN_TYPE_BACKEND_DESCRIPTOR = 15
};
enum cudnnBackendAttributeName_t {
  CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
  CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
  CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
  CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
  CUDNN_ATTR_ENGINEHEUR_RESULTS,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800, CUDNN_ATTR_OPERATIONGRAPH_OPS,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900, CUDNN_ATTR_TENSOR_DATA_TYPE,
  CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
  CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC = 2800, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
  CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
  CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC,
  CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC = 2851, CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC,
  CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC,
  CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC,
  CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC = 2859, CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC,
  CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC
};

// clang-format on

typedef struct CUstream_st *cudaStream_t;
typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t;
typedef void *cudnnBackendDescriptor_t;
#define STUB_DESCRIPTOR(kind)                                                          \
  typedef struct cudnn##kind##Struct *cudnn##kind##Descriptor_t;                       \
  extern "C" cudnnStatus_t cudnnCreate##kind##Descriptor(cudnn##kind##Descriptor_t *); \
  extern "C" cudnnStatus_t cudnnDestroy##kind##Descriptor(cudnn##kind##Descriptor_t);
STUB_DESCRIPTOR(Tensor)
STUB_DESCRIPTOR(Filter)
STUB_DESCRIPTOR(Convolution)
STUB_DESCRIPTOR(Pooling)
STUB_DESCRIPTOR(Dropout)
STUB_DESCRIPTOR(RNN)
STUB_DESCRIPTOR(RNNData)

template <typename Algo>
struct CudnnAlgoPerf {
  Algo algo;
  cudnnStatus_t status;
  float time;
  size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t mathType;
  int reserved[3];
};
using cudnnConvolutionFwdAlgoPerf_t = CudnnAlgoPerf<cudnnConvolutionFwdAlgo_t>;
using cudnnConvolutionBwdDataAlgoPerf_t = CudnnAlgoPerf<cudnnConvolutionBwdDataAlgo_t>;
using cudnnConvolutionBwdFilterAlgoPerf_t = CudnnAlgoPerf<cudnnConvolutionBwdFilterAlgo_t>;

extern "C" {
size_t cudnnGetVersion();
const char *cudnnGetErrorString(cudnnStatus_t);
cudnnStatus_t cudnnCreate(cudnnHandle_t *);
cudnnStatus_t cudnnDestroy(cudnnHandle_t);
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t, cudnnTensorFormat_t,
                                         cudnnDataType_t, int, int, int, int);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t, cudnnDataType_t,
                                         cudnnTensorFormat_t, int, int, int, int);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t, int, int, int, int, int,
                                              int, cudnnConvolutionMode_t, cudnnDataType_t);
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t, int);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t);
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                     const void *, cudnnFilterDescriptor_t,
                                                     const void *, cudnnConvolutionDescriptor_t,
                                                     cudnnTensorDescriptor_t, void *, int, int *,
                                                     cudnnConvolutionFwdAlgoPerf_t *, void *,
                                                     size_t);
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t, cudnnFilterDescriptor_t, const void *, cudnnTensorDescriptor_t, const void *,
    cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, void *, int, int *,
    cudnnConvolutionBwdDataAlgoPerf_t *, void *, size_t);
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t, cudnnTensorDescriptor_t, const void *, cudnnTensorDescriptor_t, const void *,
    cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t, void *, int, int *,
    cudnnConvolutionBwdFilterAlgoPerf_t *, void *, size_t);
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void *, cudnnTensorDescriptor_t,
                                      const void *, cudnnFilterDescriptor_t, const void *,
                                      cudnnConvolutionDescriptor_t, cudnnConvolutionFwdAlgo_t,
                                      void *, size_t, const void *, cudnnTensorDescriptor_t,
                                      void *);
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t, const void *, cudnnFilterDescriptor_t,
                                           const void *, cudnnTensorDescriptor_t, const void *,
                                           cudnnConvolutionDescriptor_t,
                                           cudnnConvolutionBwdDataAlgo_t, void *, size_t,
                                           const void *, cudnnTensorDescriptor_t, void *);
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t, const void *, cudnnTensorDescriptor_t,
                                             const void *, cudnnTensorDescriptor_t, const void *,
                                             cudnnConvolutionDescriptor_t,
                                             cudnnConvolutionBwdFilterAlgo_t, void *, size_t,
                                             const void *, cudnnFilterDescriptor_t, void *);
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t, cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t,
                                  const void *, cudnnTensorDescriptor_t, const void *, const void *,
                                  cudnnTensorDescriptor_t, void *);
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t, cudnnPoolingMode_t,
                                          cudnnNanPropagation_t, int, int, int, int, int, int);
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t, cudnnPoolingDescriptor_t, const void *,
                                  cudnnTensorDescriptor_t, const void *, const void *,
                                  cudnnTensorDescriptor_t, void *);
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t, cudnnPoolingDescriptor_t, const void *,
                                   cudnnTensorDescriptor_t, const void *, cudnnTensorDescriptor_t,
                                   const void *, cudnnTensorDescriptor_t, const void *,
                                   const void *, cudnnTensorDescriptor_t, void *);
cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
                                            cudnnBatchNormMode_t);
cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnActivationDescriptor_t, size_t *);
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
    cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnActivationDescriptor_t, size_t *);
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, cudnnActivationDescriptor_t,
    cudnnTensorDescriptor_t, size_t *);
cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void *, const void *,
    cudnnTensorDescriptor_t, const void *, cudnnTensorDescriptor_t, const void *,
    cudnnTensorDescriptor_t, void *, cudnnTensorDescriptor_t, const void *, const void *, double,
    void *, void *, double, void *, void *, cudnnActivationDescriptor_t, void *, size_t, void *,
    size_t);
cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const void *, const void *,
    const void *, const void *, cudnnTensorDescriptor_t, const void *, cudnnTensorDescriptor_t,
    const void *, cudnnTensorDescriptor_t, const void *, cudnnTensorDescriptor_t, void *,
    cudnnTensorDescriptor_t, void *, cudnnTensorDescriptor_t, const void *, const void *, void *,
    void *, double, const void *, const void *, cudnnActivationDescriptor_t, void *, size_t, void *,
    size_t);
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t, cudnnDataType_t, int, const int *,
                                         const int *);
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t, cudnnHandle_t, float, void *,
                                        size_t, unsigned long long);
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t, cudnnRNNAlgo_t, cudnnRNNMode_t,
                                       cudnnRNNBiasMode_t, cudnnDirectionMode_t,
                                       cudnnRNNInputMode_t, cudnnDataType_t, cudnnDataType_t,
                                       cudnnMathType_t, int32_t, int32_t, int32_t, int32_t,
                                       cudnnDropoutDescriptor_t, uint32_t);
cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t, cudnnRNNDescriptor_t, int);
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t, cudnnDataType_t,
                                        cudnnRNNDataLayout_t, int, int, int, const int *, void *);
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t,
                                        cudnnRNNDataDescriptor_t, size_t *, size_t *);
cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t, cudnnRNNDescriptor_t, size_t *);
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t, int32_t, size_t,
                                      const void *, int32_t, cudnnTensorDescriptor_t, void **,
                                      cudnnTensorDescriptor_t, void **);
cudnnStatus_t cudnnRNNForward(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnForwardMode_t,
                              const int32_t *, cudnnRNNDataDescriptor_t, const void *,
                              cudnnRNNDataDescriptor_t, void *, cudnnTensorDescriptor_t,
                              const void *, void *, cudnnTensorDescriptor_t, const void *, void *,
                              size_t, const void *, size_t, void *, size_t, void *);
cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t, cudnnRNNDescriptor_t, const int32_t *,
                                      cudnnRNNDataDescriptor_t, const void *, const void *,
                                      cudnnRNNDataDescriptor_t, void *, cudnnTensorDescriptor_t,
                                      const void *, const void *, void *, cudnnTensorDescriptor_t,
                                      const void *, const void *, void *, size_t, const void *,
                                      size_t, void *, size_t, void *);
cudnnStatus_t cudnnRNNBackwardWeights_v8(cudnnHandle_t, cudnnRNNDescriptor_t, cudnnWgradMode_t,
                                         const int32_t *, cudnnRNNDataDescriptor_t, const void *,
                                         cudnnTensorDescriptor_t, const void *,
                                         cudnnRNNDataDescriptor_t, const void *, size_t, void *,
                                         size_t, void *, size_t, void *);
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t,
                                           cudnnBackendDescriptor_t *);
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t);
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t);
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, int64_t, const void *);
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, int64_t, int64_t *, void *);
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t);
}
