// cuDNN as a peer: the fastest algorithm found with a workspace of 1 GiB, FP32 compute, the same
// pointers and stream, NHWC and KRSC like mpcore.
//
// FP16 and BF16 run on tensor cores; FP32 on CUDA cores or, with TF32 allowed, on the faster of
// both.  If cuDNN's headers are missing, the bench is compiled without it (no_cudnn.cpp).
#pragma once

#include <memory>

#include "bench/common.h"
#include "dynamic_library.h"
#include "peer.h"

// Types that cuDNN declares.
typedef struct cudnnContext *cudnnHandle_t;
struct cudnnTensorStruct;
struct cudnnFilterStruct;
struct cudnnConvolutionStruct;

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

 private:
  friend class CudnnConv;
  friend class CudnnGraph;
  friend class CudnnLayer;
  friend class CudnnRnn;

  /// Allocated at first use: recurrent layers have separate workspaces.
  void *workspace() const;

  DynamicLibrary library_;
  mp_context_t context_;
  mp_stream_t stream_;
  cudnnHandle_t handle_ = nullptr;
  mutable Buffer workspace_;
};

/// Layout of tensors: mpcore's, or NCHW if cuDNN is faster with it (for times only).
enum class PeerLayout { kOwn, kFastest };

/// One pass of a convolution, ready to be enqueued.
class CudnnConv {
 public:
  /// The search runs the algorithms and overwrites `out`.
  /// @param first, second, out  device tensors, in the order of mp_conv2d_*
  /// @param math                precision in which FP32 tensors are multiplied
  /// @throws std::runtime_error if cuDNN has no algorithm for it.
  CudnnConv(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op, PeerLayout layout,
            const void *first, const void *second, void *out, PeerMath math = PeerMath::kFp32);

  int64_t workspace_bytes() const { return static_cast<int64_t>(best_.memory); }
  void enqueue(const void *first, const void *second, void *out) const;

 private:
  /// An algorithm; each pass numbers them separately.
  struct Algo {
    int number = 0, math = 0;
    float time_ms = -1;
    size_t memory = 0;
  };

  void create_descriptors(PeerMath math);
  void set_format(bool is_nhwc);
  /// Returns the fastest algorithm for the current descriptors; time_ms < 0 if there is none.
  Algo find(const void *first, const void *second, void *out) const;

  const Cudnn &library_;
  mp_conv2d_desc_t desc_;
  mp_conv_op_t op_;
  TensorDescriptor x_, y_;
  CudnnDescriptor<cudnnFilterStruct> filter_;
  CudnnDescriptor<cudnnConvolutionStruct> conv_;
  Algo best_ = {};
};

}  // namespace mpbench
