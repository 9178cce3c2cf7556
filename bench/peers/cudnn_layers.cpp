#include "cudnn.h"

#if __has_include(<cudnn.h>)
#include "cudnn_functions.h"

namespace mpbench {
namespace {

using Arrays = std::vector<void *>;

constexpr float kOne = 1.0f, kZero = 0.0f;
constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
constexpr cudnnBatchNormOps_t kOps = CUDNN_BATCHNORM_OPS_BN;

DnnCall batch_norm(const Cudnn &library, bool is_forward, const TensorDescriptor &x,
                   const TensorDescriptor &y) {
  const cudnnHandle_t handle = library.handle();
  const TensorDescriptor channels = MPBENCH_DNN_NEW(Tensor);
  MPBENCH_DNN(cudnnDeriveBNTensorDescriptor, channels, x, kMode);
  size_t bytes = 0, reserve_bytes = 0;
  check_cudnn(is_forward
                  ? MPBENCH_CUDNN(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)(
                        handle, kMode, kOps, x, nullptr, y, channels, nullptr, &bytes)
                  : MPBENCH_CUDNN(cudnnGetBatchNormalizationBackwardExWorkspaceSize)(
                        handle, kMode, kOps, x, nullptr, y, nullptr, x, channels, nullptr, &bytes),
              "cudnnGetBatchNormalization...ExWorkspaceSize");
  MPBENCH_DNN(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, handle, kMode, kOps, nullptr, x,
              &reserve_bytes);
  const auto workspace_bytes = static_cast<int64_t>(bytes);
  if (workspace_bytes > Cudnn::kWorkspaceBytes)
    throw std::runtime_error("cuDNN requires a larger workspace");
  const auto reserve =
      std::make_shared<Buffer>(library.context(), static_cast<int64_t>(reserve_bytes));
  const auto enqueue = [=, &library](const Arrays &a) {
    constexpr double kMomentum = 0.1, kEpsilon = 1e-5;  // defaults of mpcore
    void *const space = library.workspace();
    if (is_forward)
      return MPBENCH_DNN(cudnnBatchNormalizationForwardTrainingEx, handle, kMode, kOps, &kOne,
                         &kZero, x, a[kX], nullptr, nullptr, y, a[kY], channels, a[kGamma],
                         a[kBeta], kMomentum, a[kRunningMean], a[kRunningVar], kEpsilon,
                         a[kSavedMean], a[kSavedInvStd], nullptr, space, bytes, reserve->data(),
                         reserve_bytes);
    MPBENCH_DNN(cudnnBatchNormalizationBackwardEx, handle, kMode, kOps, &kOne, &kZero, &kOne,
                &kZero, x, a[kX], nullptr, nullptr, y, a[kDy], nullptr, nullptr, x, a[kDx],
                channels, a[kGamma], a[kBeta], a[kDgamma], a[kDbeta], kEpsilon, a[kSavedMean],
                a[kSavedInvStd], nullptr, space, bytes, reserve->data(), reserve_bytes);
  };
  return {workspace_bytes, {}, enqueue};
}

}  // namespace

DnnCall Cudnn::layer(const LayerShape &shape, mp_dtype_t dtype) const {
  const auto extent = [&](const char *name) { return static_cast<int>(shape[name]); };
  const int window = extent("window"), pad = extent("pad"), stride = extent("stride");
  const auto create = [&](int h, int w) {
    TensorDescriptor desc = MPBENCH_DNN_NEW(Tensor);
    MPBENCH_DNN(cudnnSetTensor4dDescriptor, desc, CUDNN_TENSOR_NHWC, cudnn_type(dtype), extent("n"),
                extent("c"), h, w);
    return desc;
  };
  const auto out = [&](int size) { return (size + 2 * pad - window) / stride + 1; };
  const TensorDescriptor x = create(extent("h"), extent("w"));
  const TensorDescriptor y = create(out(extent("h")), out(extent("w")));
  if (shape.form == "batchnorm") return batch_norm(*this, shape.is_forward, x, y);
  if (!shape.is_pool())
    return {0, {}, [=, handle = handle_](const Arrays &a) {
              MPBENCH_DNN(cudnnSoftmaxForward, handle, CUDNN_SOFTMAX_ACCURATE,
                          CUDNN_SOFTMAX_MODE_INSTANCE, &kOne, x, a[kX], &kZero, y, a[kDx]);
            }};
  const auto pool = MPBENCH_DNN_NEW(Pooling);
  const cudnnPoolingMode_t mode =
      shape.form == "maxpool" ? CUDNN_POOLING_MAX : CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  MPBENCH_DNN(cudnnSetPooling2dDescriptor, pool, mode, CUDNN_PROPAGATE_NAN, window, window, pad,
              pad, stride, stride);
  return {0, {}, [=, handle = handle_, is_forward = shape.is_forward](const Arrays &a) {
            if (is_forward)
              return MPBENCH_DNN(cudnnPoolingForward, handle, pool, &kOne, x, a[kX], &kZero, y,
                                 a[kY]);
            MPBENCH_DNN(cudnnPoolingBackward, handle, pool, &kOne, y, a[kY], y, a[kDy], x, a[kX],
                        &kZero, x, a[kDx]);
          }};
}

}  // namespace mpbench

#endif
