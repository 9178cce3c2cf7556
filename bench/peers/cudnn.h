// cuDNN as a peer: FP32 compute, the same pointers and stream, NHWC and KRSC like mpcore.
//
// FP16 and BF16 run on tensor cores; FP32 on CUDA cores or, with TF32 allowed, on the faster of
// both.  If cuDNN's headers are missing, the bench is compiled without it (no_cudnn.cpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bench/common.h"
#include "bench/shapes/layer_shapes.h"
#include "dynamic_library.h"
#include "peer.h"

// Types that cuDNN declares.
typedef struct cudnnContext *cudnnHandle_t;
struct cudnnTensorStruct;

namespace mpbench {

/// Owner of a descriptor of cuDNN, to which it converts.
template <typename Struct>
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  CudnnDescriptor(Struct *descriptor, void (*destroy)(Struct *)) : owner_(descriptor, destroy) {}
  operator Struct *() const { return owner_.get(); }

 private:
  std::shared_ptr<Struct> owner_;
};
using TensorDescriptor = CudnnDescriptor<cudnnTensorStruct>;

/// Layout of tensors: mpcore's, or NCHW if cuDNN is faster with it (for times only).
enum class PeerLayout { kOwn, kFastest };

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

/// An operation by cuDNN, ready to be enqueued.
struct DnnCall {
  int64_t workspace_bytes;
  std::optional<bool> is_deterministic;  ///< empty = unknown
  /// @param tensors  device tensors in the order of mpcore's function or of LayerIndex; further
  ///                 ones are ignored
  std::function<void(const std::vector<void *> &tensors)> enqueue;
};

class Cudnn {
 public:
  static constexpr char kName[] = "cuDNN";
  /// Size of the workspace, and limit per algorithm.
  static constexpr int64_t kWorkspaceBytes = int64_t{1} << 30;

  /// @throws std::runtime_error if it is not installed or does not start.
  Cudnn(mp_context_t context, mp_stream_t stream);
  Cudnn(const Cudnn &) = delete;
  Cudnn &operator=(const Cudnn &) = delete;
  ~Cudnn();

  /// Version number in the library's format, e.g. 91900.
  size_t version() const;
  const DynamicLibrary &library() const { return library_; }

  // The calls returned below use this object, which must outlive them.  All functions throw
  // std::runtime_error if cuDNN rejects the problem, or has no algorithm for it within the
  // workspace.

  /// Returns a pass of a convolution by the fastest algorithm.
  /// @param search  tensors of the search, which runs the algorithms and overwrites the output
  /// @param math    precision in which FP32 tensors are multiplied
  DnnCall convolution(const mp_conv2d_desc_t &desc, mp_conv_op_t op, PeerLayout layout,
                      const Operands &search, PeerMath math = PeerMath::kFp32) const;
  /// Returns a pass of one of the `layers`: batch normalization, pooling, or softmax.  Softmax has
  /// neither loss nor gradient, but moves as many bytes as mpcore's loss with gradient.
  DnnCall layer(const LayerShape &shape, mp_dtype_t dtype) const;

  /// Number of engines requested from the heuristic of the graph API; those that cannot run are
  /// dropped.  Some of their kernels are not available through older functions.
  static constexpr int64_t kMaxEngines = 8;
  std::vector<DnnCall> convolution_engines(const mp_conv2d_desc_t &desc, mp_conv_op_t op) const;
  /// Attention of form "full": cuDNN's operation lacks masks.  Its tensors are q, k, v, o, lse; in
  /// the backward pass also d_o, dq, dk, dv.
  std::vector<DnnCall> attention_engines(const LayerShape &shape, mp_dtype_t dtype) const;

  // Used by the implementations of these functions and of recurrent layers.
  cudnnHandle_t handle() const { return handle_; }
  mp_context_t context() const { return context_; }
  mp_stream_t stream() const { return stream_; }
  /// Allocated at first use: recurrent layers have separate workspaces.
  void *workspace() const;

 private:
  DynamicLibrary library_;
  mp_context_t context_;
  mp_stream_t stream_;
  cudnnHandle_t handle_ = nullptr;
  mutable Buffer workspace_;
};

}  // namespace mpbench
