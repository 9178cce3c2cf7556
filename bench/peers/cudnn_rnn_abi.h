// Declarations of cuDNN's recurrent layers, so that the bench builds without cuDNN. check_cudnn.cpp
// compares them with cuDNN's headers, if they are installed.
// Source of names and values: cuDNN API reference, "cudnn_adv" (version 9; version 8 has the same).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cudnn_abi.h"

namespace mpbench::cudnn {

using RnnDesc = struct cudnnRNNStruct *;
using RnnDataDesc = struct cudnnRNNDataStruct *;
using DropoutDesc = struct cudnnDropoutStruct *;

enum RnnAlgo : int { kStandard = 0, kPersistStatic = 1, kPersistDynamic = 2 };
enum RnnCell : int { kRnnRelu = 0, kLstm = 2, kGru = 3 };
enum RnnBias : int { kDoubleBias = 2 };
enum RnnDirection : int { kUnidirectional = 0 };
enum RnnInput : int { kSkipInput = 1 };
enum RnnLayout : int { kSeqMajorPacked = 1 };
enum ForwardMode : int { kInference = 0, kTraining = 1 };
enum WgradMode : int { kAdd = 0 };

#define MPBENCH_CUDNN_RNN_FUNCTIONS(X)                                                            \
  X(Status, set_tensor_nd, cudnnSetTensorNdDescriptor, TensorDesc, DataType, int dims,            \
    const int *extents, const int *strides)                                                       \
  X(Status, create_dropout, cudnnCreateDropoutDescriptor, DropoutDesc *)                          \
  X(Status, destroy_dropout, cudnnDestroyDropoutDescriptor, DropoutDesc)                          \
  X(Status, set_dropout, cudnnSetDropoutDescriptor, DropoutDesc, Handle, float dropout,           \
    void *states, size_t states_bytes, unsigned long long seed)                                   \
  X(Status, create, cudnnCreateRNNDescriptor, RnnDesc *)                                          \
  X(Status, destroy, cudnnDestroyRNNDescriptor, RnnDesc)                                          \
  X(Status, set, cudnnSetRNNDescriptor_v8, RnnDesc, RnnAlgo, RnnCell, RnnBias, RnnDirection,      \
    RnnInput, DataType, DataType compute, MathType, int32_t input, int32_t hidden,                \
    int32_t projected, int32_t layers, DropoutDesc, uint32_t flags)                               \
  X(Status, build_dynamic, cudnnBuildRNNDynamic, Handle, RnnDesc, int batch)                      \
  X(Status, create_data, cudnnCreateRNNDataDescriptor, RnnDataDesc *)                             \
  X(Status, destroy_data, cudnnDestroyRNNDataDescriptor, RnnDataDesc)                             \
  X(Status, set_data, cudnnSetRNNDataDescriptor, RnnDataDesc, DataType, RnnLayout, int timesteps, \
    int batch, int elems, const int *lengths, void *padding)                                      \
  X(Status, space_bytes, cudnnGetRNNTempSpaceSizes, Handle, RnnDesc, ForwardMode, RnnDataDesc x,  \
    size_t *workspace, size_t *reserve)                                                           \
  X(Status, weight_bytes, cudnnGetRNNWeightSpaceSize, Handle, RnnDesc, size_t *)                  \
  X(Status, weight_params, cudnnGetRNNWeightParams, Handle, RnnDesc, int32_t layer,               \
    size_t weight_bytes, const void *weights, int32_t matrix, TensorDesc matrix_desc,             \
    void **matrix_at, TensorDesc bias_desc, void **bias_at)                                       \
  X(Status, forward, cudnnRNNForward, Handle, RnnDesc, ForwardMode, const int32_t *lengths,       \
    RnnDataDesc x_desc, const void *x, RnnDataDesc y_desc, void *y, TensorDesc h_desc,            \
    const void *h0, void *hn, TensorDesc c_desc, const void *c0, void *cn, size_t weight_bytes,   \
    const void *weights, size_t workspace_bytes, void *workspace, size_t reserve_bytes,           \
    void *reserve)                                                                                \
  X(Status, backward_data, cudnnRNNBackwardData_v8, Handle, RnnDesc, const int32_t *lengths,      \
    RnnDataDesc y_desc, const void *y, const void *dy, RnnDataDesc x_desc, void *dx,              \
    TensorDesc h_desc, const void *h0, const void *dhn, void *dh0, TensorDesc c_desc,             \
    const void *c0, const void *dcn, void *dc0, size_t weight_bytes, const void *weights,         \
    size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)                 \
  X(Status, backward_weights, cudnnRNNBackwardWeights_v8, Handle, RnnDesc, WgradMode,             \
    const int32_t *lengths, RnnDataDesc x_desc, const void *x, TensorDesc h_desc, const void *h0, \
    RnnDataDesc y_desc, const void *y, size_t weight_bytes, void *dweights,                       \
    size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)
MPBENCH_TABLE(RnnFunctions, MPBENCH_CUDNN_RNN_FUNCTIONS)

}  // namespace mpbench::cudnn
