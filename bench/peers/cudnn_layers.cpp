#include "cudnn_layers.h"

#if __has_include(<cudnn.h>)
#include "cudnn_functions.h"

namespace mpbench {
namespace {

constexpr float kOne = 1.0f, kZero = 0.0f;
constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
constexpr cudnnBatchNormOps_t kOps = CUDNN_BATCHNORM_OPS_BN;

}  // namespace

CudnnLayer::CudnnLayer(const Cudnn &library, const LayerShape &shape, mp_dtype_t dtype)
    : library_(library), shape_(shape) {
  create_descriptors(dtype);
  if (shape.is_pool()) create_pool();
  if (shape.form == "batchnorm") create_batch_norm();
}

void CudnnLayer::create_descriptors(mp_dtype_t dtype) {
  const cudnnDataType_t type = cudnn_type(dtype);
  const auto create = [&](int h, int w) {
    TensorDescriptor desc = MPBENCH_DNN_NEW(Tensor);
    MPBENCH_DNN(cudnnSetTensor4dDescriptor, desc, CUDNN_TENSOR_NHWC, type, extent("n"), extent("c"),
                h, w);
    return desc;
  };
  const auto out = [&](int size) {
    return (size + 2 * extent("pad") - extent("window")) / extent("stride") + 1;
  };
  x_ = create(extent("h"), extent("w"));
  y_ = create(out(extent("h")), out(extent("w")));
}

void CudnnLayer::create_pool() {
  pool_ = MPBENCH_DNN_NEW(Pooling);
  const cudnnPoolingMode_t mode =
      shape_.form == "maxpool" ? CUDNN_POOLING_MAX : CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
  const int window = extent("window"), pad = extent("pad"), stride = extent("stride");
  MPBENCH_DNN(cudnnSetPooling2dDescriptor, pool_, mode, CUDNN_PROPAGATE_NAN, window, window, pad,
              pad, stride, stride);
}

void CudnnLayer::create_batch_norm() {
  const cudnnHandle_t handle = library_.handle_;
  channels_ = MPBENCH_DNN_NEW(Tensor);
  MPBENCH_DNN(cudnnDeriveBNTensorDescriptor, channels_, x_, kMode);
  check_cudnn(shape_.is_forward
                  ? MPBENCH_CUDNN(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)(
                        handle, kMode, kOps, x_, nullptr, y_, channels_, nullptr, &workspace_bytes_)
                  : MPBENCH_CUDNN(cudnnGetBatchNormalizationBackwardExWorkspaceSize)(
                        handle, kMode, kOps, x_, nullptr, y_, nullptr, x_, channels_, nullptr,
                        &workspace_bytes_),
              "cudnnGetBatchNormalization...ExWorkspaceSize");
  MPBENCH_DNN(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, handle, kMode, kOps, nullptr,
              x_, &reserve_bytes_);
  if (workspace_bytes() > Cudnn::kWorkspaceBytes)
    throw std::runtime_error("cuDNN requires a larger workspace");
  reserve_ = Buffer(library_.context_, static_cast<int64_t>(reserve_bytes_));
}

void CudnnLayer::enqueue(const std::vector<void *> &a) const {
  if (shape_.form == "batchnorm") return enqueue_batch_norm(a);
  if (shape_.is_pool()) return enqueue_pool(a);
  MPBENCH_DNN(cudnnSoftmaxForward, library_.handle_, CUDNN_SOFTMAX_ACCURATE,
              CUDNN_SOFTMAX_MODE_INSTANCE, &kOne, x_, a[kX], &kZero, y_, a[kDx]);
}

void CudnnLayer::enqueue_batch_norm(const std::vector<void *> &a) const {
  constexpr double kMomentum = 0.1, kEpsilon = 1e-5;  // defaults of mpcore
  void *const space = library_.workspace();
  if (shape_.is_forward)
    return MPBENCH_DNN(cudnnBatchNormalizationForwardTrainingEx, library_.handle_, kMode, kOps,
                       &kOne, &kZero, x_, a[kX], nullptr, nullptr, y_, a[kY], channels_, a[kGamma],
                       a[kBeta], kMomentum, a[kRunningMean], a[kRunningVar], kEpsilon,
                       a[kSavedMean], a[kSavedInvStd], nullptr, space, workspace_bytes_,
                       reserve_.data(), reserve_bytes_);
  MPBENCH_DNN(cudnnBatchNormalizationBackwardEx, library_.handle_, kMode, kOps, &kOne, &kZero,
              &kOne, &kZero, x_, a[kX], nullptr, nullptr, y_, a[kDy], nullptr, nullptr, x_, a[kDx],
              channels_, a[kGamma], a[kBeta], a[kDgamma], a[kDbeta], kEpsilon, a[kSavedMean],
              a[kSavedInvStd], nullptr, space, workspace_bytes_, reserve_.data(), reserve_bytes_);
}

void CudnnLayer::enqueue_pool(const std::vector<void *> &a) const {
  if (shape_.is_forward)
    return MPBENCH_DNN(cudnnPoolingForward, library_.handle_, pool_, &kOne, x_, a[kX], &kZero, y_,
                       a[kY]);
  MPBENCH_DNN(cudnnPoolingBackward, library_.handle_, pool_, &kOne, y_, a[kY], y_, a[kDy], x_,
              a[kX], &kZero, x_, a[kDx]);
}

}  // namespace mpbench

#endif
