// Declarations of cuDNN's graph API for one convolution, so that the bench builds without cuDNN.
// check_cudnn.cpp compares them with cuDNN's headers, if they are installed.
// Source of names and values: cuDNN API reference, "cudnn_graph" (versions 8 and 9).
#pragma once

#include <cstdint>

#include "cudnn_abi.h"

namespace mpbench::cudnn {

using GraphDesc = void *;  // cudnnBackendDescriptor_t

// Each enumerator with its value and its name in cuDNN's headers, for the comparison.
#define MPBENCH_ENUMERATOR(ours, value, theirs) ours = value,

#define MPBENCH_CUDNN_GRAPH_DESC_TYPES(X)                                                \
  X(kConvolution, 1, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)                               \
  X(kEngine, 2, CUDNN_BACKEND_ENGINE_DESCRIPTOR)                                         \
  X(kEngineConfig, 3, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)                                \
  X(kHeuristic, 4, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)                                  \
  X(kPlan, 5, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)                                   \
  X(kForward, 10, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)                \
  X(kBackwardFilter, 11, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) \
  X(kBackwardData, 12, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)     \
  X(kGraph, 15, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)                                 \
  X(kVariantPack, 16, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)                             \
  X(kTensor, 17, CUDNN_BACKEND_TENSOR_DESCRIPTOR)
enum GraphDescType : int { MPBENCH_CUDNN_GRAPH_DESC_TYPES(MPBENCH_ENUMERATOR) };

#define MPBENCH_CUDNN_GRAPH_TYPES(X)             \
  X(kHandleType, 0, CUDNN_TYPE_HANDLE)           \
  X(kDataTypeType, 1, CUDNN_TYPE_DATA_TYPE)      \
  X(kInt64Type, 3, CUDNN_TYPE_INT64)             \
  X(kFloatType, 4, CUDNN_TYPE_FLOAT)             \
  X(kPointerType, 6, CUDNN_TYPE_VOID_PTR)        \
  X(kModeType, 7, CUDNN_TYPE_CONVOLUTION_MODE)   \
  X(kHeuristicModeType, 8, CUDNN_TYPE_HEUR_MODE) \
  X(kNoteType, 11, CUDNN_TYPE_NUMERICAL_NOTE)    \
  X(kDescType, 15, CUDNN_TYPE_BACKEND_DESCRIPTOR)
enum GraphType : int { MPBENCH_CUDNN_GRAPH_TYPES(MPBENCH_ENUMERATOR) };

#define MPBENCH_CUDNN_GRAPH_ATTRIBUTES(X)                                    \
  X(kConvComputeType, 100, CUDNN_ATTR_CONVOLUTION_COMP_TYPE)                 \
  X(kConvMode, 101, CUDNN_ATTR_CONVOLUTION_CONV_MODE)                        \
  X(kConvDilations, 102, CUDNN_ATTR_CONVOLUTION_DILATIONS)                   \
  X(kConvStrides, 103, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)                \
  X(kConvPostPaddings, 104, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)            \
  X(kConvPrePaddings, 105, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)              \
  X(kConvSpatialDims, 106, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)              \
  X(kHeuristicMode, 200, CUDNN_ATTR_ENGINEHEUR_MODE)                         \
  X(kHeuristicGraph, 201, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)             \
  X(kHeuristicResults, 202, CUDNN_ATTR_ENGINEHEUR_RESULTS)                   \
  X(kConfigEngine, 300, CUDNN_ATTR_ENGINECFG_ENGINE)                         \
  X(kPlanHandle, 400, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)                      \
  X(kPlanConfig, 401, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)               \
  X(kPlanWorkspaceBytes, 402, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)      \
  X(kForwardAlpha, 700, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA)      \
  X(kForwardBeta, 701, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA)        \
  X(kForwardConv, 702, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC)   \
  X(kForwardFilter, 703, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)         \
  X(kForwardX, 704, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)              \
  X(kForwardY, 705, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y)              \
  X(kDataAlpha, 706, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA)        \
  X(kDataBeta, 707, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA)          \
  X(kDataConv, 708, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC)     \
  X(kDataFilter, 709, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W)           \
  X(kDataDx, 710, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX)              \
  X(kDataDy, 711, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)              \
  X(kFilterAlpha, 712, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA)    \
  X(kFilterBeta, 713, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA)      \
  X(kFilterConv, 714, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC) \
  X(kFilterDfilter, 715, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW)     \
  X(kFilterX, 716, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)            \
  X(kFilterDy, 717, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)          \
  X(kGraphHandle, 800, CUDNN_ATTR_OPERATIONGRAPH_HANDLE)                     \
  X(kGraphOperations, 801, CUDNN_ATTR_OPERATIONGRAPH_OPS)                    \
  X(kTensorAlignment, 900, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)                 \
  X(kTensorDataType, 901, CUDNN_ATTR_TENSOR_DATA_TYPE)                       \
  X(kTensorExtents, 902, CUDNN_ATTR_TENSOR_DIMENSIONS)                       \
  X(kTensorStrides, 903, CUDNN_ATTR_TENSOR_STRIDES)                          \
  X(kTensorId, 906, CUDNN_ATTR_TENSOR_UNIQUE_ID)                             \
  X(kPackIds, 1000, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)                      \
  X(kPackPointers, 1001, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)              \
  X(kPackWorkspace, 1003, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)                 \
  X(kEngineNotes, 1303, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
enum GraphAttribute : int { MPBENCH_CUDNN_GRAPH_ATTRIBUTES(MPBENCH_ENUMERATOR) };

#define MPBENCH_CUDNN_HEURISTIC_MODES(X) X(kModeA, 3, CUDNN_HEUR_MODE_A)
enum HeuristicMode : int { MPBENCH_CUDNN_HEURISTIC_MODES(MPBENCH_ENUMERATOR) };

/// Numerical properties of an engine.
#define MPBENCH_CUDNN_NUMERICAL_NOTES(X)                             \
  X(kDownConvertInputs, 1, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) \
  X(kReducedPrecisionReduction, 2, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
enum NumericalNote : int { MPBENCH_CUDNN_NUMERICAL_NOTES(MPBENCH_ENUMERATOR) };
constexpr int kNoteCount = 10;

#define MPBENCH_CUDNN_GRAPH_FUNCTIONS(X)                                                        \
  X(Status, create, cudnnBackendCreateDescriptor, GraphDescType, GraphDesc *)                   \
  X(Status, destroy, cudnnBackendDestroyDescriptor, GraphDesc)                                  \
  X(Status, finalize, cudnnBackendFinalize, GraphDesc)                                          \
  X(Status, set, cudnnBackendSetAttribute, GraphDesc, GraphAttribute, GraphType, int64_t count, \
    const void *elems)                                                                          \
  X(Status, get, cudnnBackendGetAttribute, GraphDesc, GraphAttribute, GraphType, int64_t room,  \
    int64_t *count, void *elems)                                                                \
  X(Status, execute, cudnnBackendExecute, Handle, GraphDesc plan, GraphDesc pack)
MPBENCH_TABLE(GraphFunctions, MPBENCH_CUDNN_GRAPH_FUNCTIONS)

}  // namespace mpbench::cudnn
