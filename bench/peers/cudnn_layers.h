// cuDNN's layers as peers, NHWC: batch normalization, pooling, and softmax.  Softmax has neither
// loss nor gradient, but moves as many bytes as mpcore's loss with gradient.
#pragma once

#include <memory>
#include <vector>

#include "bench/shapes/layer_shapes.h"
#include "cudnn.h"

struct cudnnPoolingStruct;  // declared by cuDNN

namespace mpbench {

/// Indices of the arrays of a layer.
enum LayerIndex : size_t {
  kX,
  kY,
  kDy,
  kDx,
  kGamma,
  kBeta,
  kRunningMean,
  kRunningVar,
  kSavedMean,
  kSavedInvStd,
  kDgamma,
  kDbeta,
  kIndex = kGamma,  ///< max pooling: not for cuDNN
  kLabels = kY,
  kLosses = kDy
};

/// One pass of a layer, ready to be enqueued.
class CudnnLayer {
 public:
  /// @throws std::runtime_error if cuDNN rejects the layer, or needs more workspace than Cudnn has.
  CudnnLayer(const Cudnn &library, const LayerShape &shape, mp_dtype_t dtype);

  int64_t workspace_bytes() const { return static_cast<int64_t>(workspace_bytes_); }
  void enqueue(const std::vector<void *> &arrays) const;

 private:
  int extent(const char *name) const { return static_cast<int>(shape_[name]); }
  void create_descriptors(mp_dtype_t dtype);
  void create_pool();
  void create_batch_norm();
  void enqueue_batch_norm(const std::vector<void *> &arrays) const;
  void enqueue_pool(const std::vector<void *> &arrays) const;

  const Cudnn &library_;
  LayerShape shape_;
  TensorDescriptor x_, y_, channels_;
  CudnnDescriptor<cudnnPoolingStruct> pool_;
  size_t workspace_bytes_ = 0, reserve_bytes_ = 0;
  Buffer reserve_;
};

}  // namespace mpbench
