// Compares the declarations of cudnn_abi.h with cuDNN's, at compile time; empty where its headers are
// not on the include path.
#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <cstddef>
#include <type_traits>

#include "cudnn_abi.h"
#include "same_call.h"

namespace mpbench {
namespace {

/// Many of the parameters are pointers: those to the same kind of object stand in the same places.
template <typename Ours, typename Theirs>
constexpr bool kSameObject =
    std::is_same_v<Ours, cudnn::Handle> ==
    std::is_same_v<Theirs, cudnnHandle_t> &&std::is_same_v<Ours, cudnn::TensorDesc> ==
    std::is_same_v<Theirs, cudnnTensorDescriptor_t> &&std::is_same_v<Ours, cudnn::FilterDesc> ==
    std::is_same_v<Theirs, cudnnFilterDescriptor_t> &&std::is_same_v<Ours, cudnn::ConvDesc> ==
    std::is_same_v<Theirs, cudnnConvolutionDescriptor_t> &&std::is_same_v<Ours, const void *> ==
    std::is_same_v<Theirs, const void *> &&std::is_same_v<Ours, void *> ==
    std::is_same_v<Theirs, void *> &&std::is_same_v<Ours, int *> == std::is_same_v<Theirs, int *>;

template <typename Ours, typename Theirs>
struct SameObjects : std::false_type {};
template <typename R, typename... P, typename S, typename... Q>
requires(sizeof...(P) == sizeof...(Q)) struct SameObjects<R (*)(P...), S (*)(Q...)>
    : std::bool_constant<(kSameObject<P, Q> && ...)> {
};

template <typename Theirs, typename Ours>
consteval bool same(Ours ours, Theirs theirs) {
  return same_call(ours, theirs) && SameObjects<Ours, Theirs>::value;
}

constexpr cudnn::Functions kDnn{};
static_assert(same(kDnn.get_version, cudnnGetVersion));
static_assert(same(kDnn.get_error_string, cudnnGetErrorString));
static_assert(same(kDnn.create, cudnnCreate));
static_assert(same(kDnn.destroy, cudnnDestroy));
static_assert(same(kDnn.set_stream, cudnnSetStream));
static_assert(same(kDnn.create_tensor, cudnnCreateTensorDescriptor));
static_assert(same(kDnn.destroy_tensor, cudnnDestroyTensorDescriptor));
static_assert(same(kDnn.set_tensor_4d, cudnnSetTensor4dDescriptor));
static_assert(same(kDnn.create_filter, cudnnCreateFilterDescriptor));
static_assert(same(kDnn.destroy_filter, cudnnDestroyFilterDescriptor));
static_assert(same(kDnn.set_filter_4d, cudnnSetFilter4dDescriptor));
static_assert(same(kDnn.create_convolution, cudnnCreateConvolutionDescriptor));
static_assert(same(kDnn.destroy_convolution, cudnnDestroyConvolutionDescriptor));
static_assert(same(kDnn.set_convolution_2d, cudnnSetConvolution2dDescriptor));
static_assert(same(kDnn.set_group_count, cudnnSetConvolutionGroupCount));
static_assert(same(kDnn.set_math_type, cudnnSetConvolutionMathType));
static_assert(same(kDnn.find_forward, cudnnFindConvolutionForwardAlgorithmEx));
static_assert(same(kDnn.find_backward_data, cudnnFindConvolutionBackwardDataAlgorithmEx));
static_assert(same(kDnn.find_backward_filter, cudnnFindConvolutionBackwardFilterAlgorithmEx));
static_assert(same(kDnn.forward, cudnnConvolutionForward));
static_assert(same(kDnn.backward_data, cudnnConvolutionBackwardData));
static_assert(same(kDnn.backward_filter, cudnnConvolutionBackwardFilter));

// DataType, Format, Mode and MathType are all passed as int: which stands where is seen in the two
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

}  // namespace
}  // namespace mpbench

#endif
