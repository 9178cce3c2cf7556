// cuDNN's graph API as a peer: engines that its heuristic selects for a convolution or an
// attention, FP32 compute.  Some of their kernels are not available through older functions.
#pragma once

#include <memory>
#include <vector>

#include "bench/shapes/layer_shapes.h"
#include "cudnn.h"

namespace mpbench {

/// Execution plans of one operation.
class CudnnGraph {
 public:
  /// Number of engines requested from the heuristic; those that cannot run are dropped.
  static constexpr int64_t kMaxEngines = 8;

  /// Convolution, NHWC and KRSC.  Its tensors are those of mp_conv2d_*, in their order.
  /// @throws std::runtime_error if cuDNN has no engine for it.
  CudnnGraph(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op);
  /// Attention without a mask, which cuDNN's operation lacks.  Its tensors are q, k, v, o, lse; in
  /// the backward pass also d_o, dq, dk, dv.
  /// @throws std::runtime_error if cuDNN has no engine for it, or the form is not "full".
  CudnnGraph(const Cudnn &library, const LayerShape &shape, mp_dtype_t dtype);
  CudnnGraph(const CudnnGraph &) = delete;
  CudnnGraph &operator=(const CudnnGraph &) = delete;
  ~CudnnGraph();

  size_t engines() const { return engines_.size(); }
  int64_t workspace_bytes(size_t engine) const { return engines_[engine].workspace_bytes; }
  bool is_deterministic(size_t engine) const { return engines_[engine].is_deterministic; }
  /// @param tensors  device tensors
  void enqueue(const std::vector<const void *> &tensors, size_t engine) const;

 private:
  struct Engine {
    int64_t workspace_bytes;
    bool is_deterministic;
  };
  class Builder;
  struct Plans;

  const Cudnn &library_;
  float scale_ = 0;  ///< factor of the scores of an attention
  std::vector<Engine> engines_;
  std::unique_ptr<Plans> plans_;
};

}  // namespace mpbench
