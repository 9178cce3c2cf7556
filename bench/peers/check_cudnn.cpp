// Compile-time comparison of the declarations of cudnn_abi.h, cudnn_layers_abi.h, cudnn_rnn_abi.h
// and cudnn_graph_abi.h with cuDNN's; empty if its headers are not on the include path.
#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <cstddef>
#include <type_traits>

#include "cudnn_graph_abi.h"
#include "cudnn_layers_abi.h"
#include "cudnn_rnn_abi.h"
#include "same_call.h"

namespace mpbench {
namespace {

/// Checks that pointers to the same kind of object have the same positions.
template <typename Ours, typename Theirs>
constexpr bool kSameObject =
    std::is_same_v<Ours, cudnn::Handle> ==
    std::is_same_v<Theirs, cudnnHandle_t> &&std::is_same_v<Ours, cudnn::TensorDesc> ==
    std::is_same_v<Theirs, cudnnTensorDescriptor_t> &&std::is_same_v<Ours, cudnn::FilterDesc> ==
    std::is_same_v<Theirs, cudnnFilterDescriptor_t> &&std::is_same_v<Ours, cudnn::ConvDesc> ==
    std::is_same_v<Theirs, cudnnConvolutionDescriptor_t> &&std::is_same_v<Ours, cudnn::RnnDesc> ==
    std::is_same_v<Theirs, cudnnRNNDescriptor_t> &&std::is_same_v<Ours, cudnn::RnnDataDesc> ==
    std::is_same_v<Theirs, cudnnRNNDataDescriptor_t> &&std::is_same_v<Ours, cudnn::DropoutDesc> ==
    std::is_same_v<Theirs, cudnnDropoutDescriptor_t> &&std::is_same_v<Ours, const void *> ==
    std::is_same_v<Theirs, const void *> &&std::is_same_v<Ours, void *> ==
    std::is_same_v<Theirs, void *> &&std::is_same_v<Ours, int *> == std::is_same_v<Theirs, int *>;

template <typename Ours, typename Theirs>
struct SameObjects : std::false_type {};
template <typename R, typename... P, typename S, typename... Q>
requires(sizeof...(P) == sizeof...(Q)) struct SameObjects<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<(kSameObject<P, Q> && ...)> {
};

#define SAME_CALL(result, member, symbol, ...)           \
  MPBENCH_SAME_CALL(result, member, symbol, __VA_ARGS__) \
  static_assert(SameObjects<decltype(member), decltype(+symbol)>::value, #symbol);

MPBENCH_SAME_CALLS(cudnn::Functions, MPBENCH_CUDNN_FUNCTIONS, SAME_CALL)

// DataType, Format, Mode and MathType are all passed as int; their order is checked in the two
// calls that take more than one of them.
static_assert(std::is_invocable_v<decltype(cudnnSetTensor4dDescriptor), cudnnTensorDescriptor_t,
                                  cudnnTensorFormat_t, cudnnDataType_t, int, int, int, int>);
static_assert(std::is_invocable_v<decltype(cudnnSetFilter4dDescriptor), cudnnFilterDescriptor_t,
                                  cudnnDataType_t, cudnnTensorFormat_t, int, int, int, int>);
static_assert(
    std::is_invocable_v<decltype(cudnnSetConvolution2dDescriptor), cudnnConvolutionDescriptor_t,
                        int, int, int, int, int, int, cudnnConvolutionMode_t, cudnnDataType_t>);

template <typename Theirs>
constexpr bool kSamePerf = sizeof(cudnn::AlgoPerf) == sizeof(Theirs) &&
                           alignof(cudnn::AlgoPerf) == alignof(Theirs) &&
                           offsetof(cudnn::AlgoPerf, algo) == offsetof(Theirs, algo) &&
                           offsetof(cudnn::AlgoPerf, status) == offsetof(Theirs, status) &&
                           offsetof(cudnn::AlgoPerf, time_ms) == offsetof(Theirs, time) &&
                           offsetof(cudnn::AlgoPerf, memory_bytes) == offsetof(Theirs, memory) &&
                           offsetof(cudnn::AlgoPerf, determinism) ==
                               offsetof(Theirs, determinism) &&
                           offsetof(cudnn::AlgoPerf, math) == offsetof(Theirs, mathType);
static_assert(kSamePerf<cudnnConvolutionFwdAlgoPerf_t>);
static_assert(kSamePerf<cudnnConvolutionBwdDataAlgoPerf_t>);
static_assert(kSamePerf<cudnnConvolutionBwdFilterAlgoPerf_t>);

static_assert(int{CUDNN_STATUS_SUCCESS} == 0);
static_assert(int{cudnn::kFloat} == int{CUDNN_DATA_FLOAT});
static_assert(int{cudnn::kHalf} == int{CUDNN_DATA_HALF});
static_assert(int{cudnn::kBfloat16} == int{CUDNN_DATA_BFLOAT16});
static_assert(int{cudnn::kNchw} == int{CUDNN_TENSOR_NCHW});
static_assert(int{cudnn::kNhwc} == int{CUDNN_TENSOR_NHWC});
static_assert(int{cudnn::kCrossCorrelation} == int{CUDNN_CROSS_CORRELATION});
static_assert(int{cudnn::kDefault} == int{CUDNN_DEFAULT_MATH});
static_assert(int{cudnn::kTensorOp} == int{CUDNN_TENSOR_OP_MATH});
static_assert(int{cudnn::kFma} == int{CUDNN_FMA_MATH});

// ---------------------------------------------------------------------------- layers

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
MPBENCH_SAME_CALLS(cudnn::LayerFunctions, MPBENCH_CUDNN_LAYER_FUNCTIONS, SAME_CALL)
static_assert(int{cudnn::kAccurate} == int{CUDNN_SOFTMAX_ACCURATE});
static_assert(int{cudnn::kInstance} == int{CUDNN_SOFTMAX_MODE_INSTANCE});
static_assert(int{cudnn::kMax} == int{CUDNN_POOLING_MAX});
static_assert(int{cudnn::kAvgIncludePad} == int{CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING});
static_assert(int{cudnn::kPropagateNan} == int{CUDNN_PROPAGATE_NAN});
static_assert(int{cudnn::kSpatialPersistent} == int{CUDNN_BATCHNORM_SPATIAL_PERSISTENT});
static_assert(int{cudnn::kBatchNormAlone} == int{CUDNN_BATCHNORM_OPS_BN});
#pragma GCC diagnostic pop

// ---------------------------------------------------------------------------- recurrent layers

MPBENCH_SAME_CALLS(cudnn::RnnFunctions, MPBENCH_CUDNN_RNN_FUNCTIONS, SAME_CALL)
static_assert(int{cudnn::kStandard} == int{CUDNN_RNN_ALGO_STANDARD});
static_assert(int{cudnn::kPersistStatic} == int{CUDNN_RNN_ALGO_PERSIST_STATIC});
static_assert(int{cudnn::kPersistDynamic} == int{CUDNN_RNN_ALGO_PERSIST_DYNAMIC});
static_assert(int{cudnn::kRnnRelu} == int{CUDNN_RNN_RELU});
static_assert(int{cudnn::kLstm} == int{CUDNN_LSTM});
static_assert(int{cudnn::kGru} == int{CUDNN_GRU});
static_assert(int{cudnn::kDoubleBias} == int{CUDNN_RNN_DOUBLE_BIAS});
static_assert(int{cudnn::kUnidirectional} == int{CUDNN_UNIDIRECTIONAL});
static_assert(int{cudnn::kSkipInput} == int{CUDNN_SKIP_INPUT});
static_assert(int{cudnn::kSeqMajorPacked} == int{CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED});
static_assert(int{cudnn::kInference} == int{CUDNN_FWD_MODE_INFERENCE});
static_assert(int{cudnn::kTraining} == int{CUDNN_FWD_MODE_TRAINING});
static_assert(int{cudnn::kAdd} == int{CUDNN_WGRAD_MODE_ADD});

// Enums are passed as int here too; their order is checked in the two calls that take several.
static_assert(
    std::is_invocable_v<decltype(cudnnSetRNNDescriptor_v8), cudnnRNNDescriptor_t, cudnnRNNAlgo_t,
                        cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnDirectionMode_t,
                        cudnnRNNInputMode_t, cudnnDataType_t, cudnnDataType_t, cudnnMathType_t,
                        int32_t, int32_t, int32_t, int32_t, cudnnDropoutDescriptor_t, uint32_t>);
static_assert(
    std::is_invocable_v<decltype(cudnnSetRNNDataDescriptor), cudnnRNNDataDescriptor_t,
                        cudnnDataType_t, cudnnRNNDataLayout_t, int, int, int, const int *, void *>);

// ---------------------------------------------------------------------------- graph API

MPBENCH_SAME_CALLS(cudnn::GraphFunctions, MPBENCH_CUDNN_GRAPH_FUNCTIONS, MPBENCH_SAME_CALL)

// Attribute and type are both passed as int; this checks their order.
static_assert(std::is_invocable_v<decltype(cudnnBackendSetAttribute), cudnnBackendDescriptor_t,
                                  cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                                  const void *>);
static_assert(std::is_invocable_v<decltype(cudnnBackendGetAttribute), cudnnBackendDescriptor_t,
                                  cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                                  int64_t *, void *>);

// cuDNN 9 deprecates two attributes in favor of device properties, which cuDNN 8 lacks.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define SAME(ours, value, theirs) static_assert(int{cudnn::ours} == int{theirs});
MPBENCH_CUDNN_GRAPH_DESC_TYPES(SAME)
MPBENCH_CUDNN_GRAPH_TYPES(SAME)
MPBENCH_CUDNN_GRAPH_ATTRIBUTES(SAME)
MPBENCH_CUDNN_HEURISTIC_MODES(SAME)
MPBENCH_CUDNN_NUMERICAL_NOTES(SAME)
#undef SAME
#pragma GCC diagnostic pop
static_assert(cudnn::kNoteCount >= int{CUDNN_NUMERICAL_NOTE_TYPE_COUNT});

}  // namespace
}  // namespace mpbench

#endif
