// Compares the declarations of cudnn_graph_abi.h with cuDNN's, at compile time; empty where its headers
// are not on the include path.
#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include "cudnn_graph_abi.h"
#include "same_call.h"

namespace mpbench {
namespace {

constexpr cudnn::GraphFunctions kGraphCalls{};
static_assert(same_call(kGraphCalls.create, cudnnBackendCreateDescriptor));
static_assert(same_call(kGraphCalls.destroy, cudnnBackendDestroyDescriptor));
static_assert(same_call(kGraphCalls.finalize, cudnnBackendFinalize));
static_assert(same_call(kGraphCalls.set, cudnnBackendSetAttribute));
static_assert(same_call(kGraphCalls.get, cudnnBackendGetAttribute));
static_assert(same_call(kGraphCalls.execute, cudnnBackendExecute));

// Attribute and type are both passed as int: which stands where.
static_assert(std::is_invocable_v<decltype(cudnnBackendSetAttribute), cudnnBackendDescriptor_t,
                                  cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                                  const void *>);
static_assert(std::is_invocable_v<decltype(cudnnBackendGetAttribute), cudnnBackendDescriptor_t,
                                  cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                                  int64_t *, void *>);

#define SAME(ours, theirs) static_assert(int{cudnn::ours} == int{theirs})
SAME(kConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(kHeuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(kPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(kForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(kBackwardFilter, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(kBackwardData, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(kGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

SAME(kHandleType, CUDNN_TYPE_HANDLE);
SAME(kDataTypeType, CUDNN_TYPE_DATA_TYPE);
SAME(kInt64Type, CUDNN_TYPE_INT64);
SAME(kFloatType, CUDNN_TYPE_FLOAT);
SAME(kPointerType, CUDNN_TYPE_VOID_PTR);
SAME(kModeType, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(kHeuristicModeType, CUDNN_TYPE_HEUR_MODE);
SAME(kNoteType, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(kDescType, CUDNN_TYPE_BACKEND_DESCRIPTOR);

SAME(kConvComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(kConvMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(kConvDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(kConvStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(kConvPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(kConvPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(kConvSpatialDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(kHeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(kHeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(kHeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(kConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(kPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(kPlanWorkspaceBytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(kForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(kForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(kForwardConv, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(kForwardFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(kForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(kForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(kDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
SAME(kDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
SAME(kDataConv, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME(kDataFilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(kDataDx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(kDataDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(kFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(kFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(kFilterConv, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(kFilterDfilter, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(kFilterX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(kFilterDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(kTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(kTensorExtents, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(kEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(kModeA, CUDNN_HEUR_MODE_A);
SAME(kDownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(kReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
static_assert(cudnn::kNoteCount >= int{CUDNN_NUMERICAL_NOTE_TYPE_COUNT});

// Both are deprecated in favour of a device's properties, which cuDNN 8 has not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
SAME(kGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
#pragma GCC diagnostic pop
#undef SAME

}  // namespace
}  // namespace mpbench

#endif
