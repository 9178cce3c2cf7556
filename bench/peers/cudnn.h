// cuDNN as a peer: the fastest algorithm found with a workspace of 1 GiB, FP32 compute, the same
// pointers and stream, NHWC and KRSC like mpcore.
//
// FP16 and BF16 run on tensor cores; FP32 on CUDA cores or, with TF32 allowed, on the faster of
// both.
#pragma once

#include <initializer_list>

#include "bench/common.h"
#include "cudnn_abi.h"
#include "cudnn_graph_abi.h"
#include "dynamic_library.h"
#include "peer_math.h"

namespace mpbench {

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
  size_t version() const { return dnn_.get_version(); }
  const DynamicLibrary &library() const { return library_; }

 private:
  friend class CudnnConv;
  friend class CudnnGraphConv;
  friend class CudnnLayer;
  friend class CudnnRnn;

  void check(cudnn::Status status, const char *call) const;
  /// Allocated at first use: recurrent layers have separate workspaces.
  void *workspace() const;

  DynamicLibrary library_;
  mp_context_t context_;
  mp_stream_t stream_;
  cudnn::Functions dnn_;
  cudnn::GraphFunctions graph_;
  cudnn::Handle handle_ = nullptr;
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
  CudnnConv(const CudnnConv &) = delete;
  CudnnConv &operator=(const CudnnConv &) = delete;
  ~CudnnConv();

  int64_t workspace_bytes() const { return static_cast<int64_t>(best_.memory_bytes); }
  void enqueue(const void *first, const void *second, void *out) const;

 private:
  void create_descriptors(PeerMath math);
  void destroy_descriptors();
  void set_format(cudnn::Format format);
  /// Returns the fastest algorithm for the current descriptors; time_ms < 0 if there is none.
  cudnn::AlgoPerf find(const void *first, const void *second, void *out) const;
  void choose(std::initializer_list<cudnn::Format> formats, const void *first, const void *second,
              void *out);

  const Cudnn &library_;
  mp_conv2d_desc_t desc_;
  mp_conv_op_t op_;
  cudnn::TensorDesc x_ = nullptr, y_ = nullptr;
  cudnn::FilterDesc filter_ = nullptr;
  cudnn::ConvDesc conv_ = nullptr;
  cudnn::AlgoPerf best_ = {};
};

}  // namespace mpbench
