#include "cudnn_layers.h"

namespace mpbench {
namespace {

constexpr float kOne = 1.0f, kZero = 0.0f;
constexpr cudnn::BatchNormMode kMode = cudnn::kSpatialPersistent;
constexpr cudnn::BatchNormOps kOps = cudnn::kBatchNormAlone;

}  // namespace

CudnnLayer::CudnnLayer(const Cudnn &library, const LayerShape &shape, mp_dtype_t dtype)
    : library_(library), shape_(shape) {
  layers_.load(library.library_);
  try {
    create_descriptors(dtype);
    if (shape.is_pool()) create_pool();
    if (shape.layer == Layer::kBatchNorm) create_batch_norm();
  } catch (...) {
    destroy_descriptors();
    throw;
  }
}

CudnnLayer::~CudnnLayer() {
  destroy_descriptors();
}

void CudnnLayer::create_descriptors(mp_dtype_t dtype) {
  const cudnn::Functions &dnn = library_.dnn_;
  const cudnn::DataType type = cudnn::data_type(dtype);
  const auto create = [&](cudnn::TensorDesc *desc, int64_t h, int64_t w) {
    library_.check(dnn.create_tensor(desc), "cudnnCreateTensorDescriptor");
    library_.check(
        dnn.set_tensor_4d(*desc, cudnn::kNhwc, type, static_cast<int>(shape_.n),
                          static_cast<int>(shape_.c), static_cast<int>(h), static_cast<int>(w)),
        "cudnnSetTensor4dDescriptor");
  };
  create(&x_, shape_.h, shape_.w);
  if (!shape_.is_pool()) return create(&y_, shape_.h, shape_.w);
  const auto out = [&](int64_t extent) {
    return (extent + 2 * shape_.pad - shape_.window) / shape_.stride + 1;
  };
  create(&y_, out(shape_.h), out(shape_.w));
}

void CudnnLayer::create_pool() {
  library_.check(layers_.create_pool(&pool_), "cudnnCreatePoolingDescriptor");
  const cudnn::PoolMode mode =
      shape_.layer == Layer::kMaxPool ? cudnn::kMax : cudnn::kAvgIncludePad;
  library_.check(
      layers_.set_pool_2d(pool_, mode, cudnn::kPropagateNan, shape_.window, shape_.window,
                          shape_.pad, shape_.pad, shape_.stride, shape_.stride),
      "cudnnSetPooling2dDescriptor");
}

void CudnnLayer::create_batch_norm() {
  const cudnn::Handle handle = library_.handle_;
  library_.check(library_.dnn_.create_tensor(&channels_), "cudnnCreateTensorDescriptor");
  library_.check(layers_.derive_batch_norm(channels_, x_, kMode), "cudnnDeriveBNTensorDescriptor");
  library_.check(
      shape_.pass == LayerPass::kForward
          ? layers_.batch_norm_forward_bytes(handle, kMode, kOps, x_, nullptr, y_, channels_,
                                             nullptr, &workspace_bytes_)
          : layers_.batch_norm_backward_bytes(handle, kMode, kOps, x_, nullptr, y_, nullptr, x_,
                                              channels_, nullptr, &workspace_bytes_),
      "cudnnGetBatchNormalization...ExWorkspaceSize");
  library_.check(
      layers_.batch_norm_reserve_bytes(handle, kMode, kOps, nullptr, x_, &reserve_bytes_),
      "cudnnGetBatchNormalizationTrainingExReserveSpaceSize");
  if (workspace_bytes() > Cudnn::kWorkspaceBytes)
    throw std::runtime_error("cuDNN requires a larger workspace");
  reserve_ = Buffer(library_.context_, static_cast<int64_t>(reserve_bytes_));
}

void CudnnLayer::destroy_descriptors() {
  for (const cudnn::TensorDesc desc : {x_, y_, channels_})
    if (desc != nullptr) library_.dnn_.destroy_tensor(desc);
  if (pool_ != nullptr) layers_.destroy_pool(pool_);
}

void CudnnLayer::enqueue(const LayerTensors &t) const {
  if (shape_.layer == Layer::kBatchNorm) return enqueue_batch_norm(t);
  if (shape_.is_pool()) return enqueue_pool(t);
  library_.check(layers_.softmax_forward(library_.handle_, cudnn::kAccurate, cudnn::kInstance,
                                         &kOne, x_, t.x, &kZero, y_, t.dx),
                 "cudnnSoftmaxForward");
}

void CudnnLayer::enqueue_batch_norm(const LayerTensors &t) const {
  constexpr double kMomentum = 0.1, kEpsilon = 1e-5;  // defaults of mpcore
  void *const space = library_.workspace();
  if (shape_.pass == LayerPass::kForward)
    return library_.check(
        layers_.batch_norm_forward(library_.handle_, kMode, kOps, &kOne, &kZero, x_, t.x, nullptr,
                                   nullptr, y_, t.y, channels_, t.gamma, t.beta, kMomentum,
                                   t.running_mean, t.running_var, kEpsilon, t.saved_mean,
                                   t.saved_inv_std, nullptr, space, workspace_bytes_,
                                   reserve_.data(), reserve_bytes_),
        "cudnnBatchNormalizationForwardTrainingEx");
  library_.check(layers_.batch_norm_backward(
                     library_.handle_, kMode, kOps, &kOne, &kZero, &kOne, &kZero, x_, t.x, nullptr,
                     nullptr, y_, t.dy, nullptr, nullptr, x_, t.dx, channels_, t.gamma, t.beta,
                     t.dgamma, t.dbeta, kEpsilon, t.saved_mean, t.saved_inv_std, nullptr, space,
                     workspace_bytes_, reserve_.data(), reserve_bytes_),
                 "cudnnBatchNormalizationBackwardEx");
}

void CudnnLayer::enqueue_pool(const LayerTensors &t) const {
  if (shape_.pass == LayerPass::kForward)
    return library_.check(
        layers_.pool_forward(library_.handle_, pool_, &kOne, x_, t.x, &kZero, y_, t.y),
        "cudnnPoolingForward");
  library_.check(layers_.pool_backward(library_.handle_, pool_, &kOne, y_, t.y, y_, t.dy, x_, t.x,
                                       &kZero, x_, t.dx),
                 "cudnnPoolingBackward");
}

}  // namespace mpbench
