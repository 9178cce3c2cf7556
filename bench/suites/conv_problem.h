// One product of a convolution with its data: what mpcore and the peers are given.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "bench/peers/cudnn_graph.h"
#include "bench/shapes/conv_shapes.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"

namespace mpbench {

class ConvProblem {
 public:
  ConvProblem(const Machine &machine, RandomPool &pool, const ConvShape &shape,
              const mp_conv2d_desc_t &desc);
  ConvProblem(const ConvProblem &) = delete;
  ConvProblem &operator=(const ConvProblem &) = delete;

  /// Names of the kernels that can run it, the library's choice first.
  const std::vector<const char *> &kernels() const { return kernels_; }
  /// By the cost model that chose the kernel.
  double predicted_us() const;
  int64_t sets() const { return static_cast<int64_t>(sets_.size()); }
  /// What every implementation reads and writes at least.
  double min_bytes() const { return mpbench::min_bytes(shape_, desc_); }
  /// What the library asks for, and what forced kernels have asked for since.
  int64_t workspace_bytes() const { return workspace_.bytes(); }

  /// mp_conv2d_* on the next set of tensors; makes room for what a forced kernel needs.
  Work own(const char *kernel = nullptr);
  Work peer(const CudnnConv &conv);
  Work peer(const CudnnGraphConv &conv, size_t engine);

  /// The engines of cuDNN's graph API for this problem.
  std::unique_ptr<CudnnGraphConv> make_graph_peer(const Cudnn &library) const {
    return std::make_unique<CudnnGraphConv>(library, desc_, shape_.op);
  }
  /// cuDNN's convolution of this problem, searched for with the first set.
  std::unique_ptr<CudnnConv> make_peer(const Cudnn &library, PeerLayout layout,
                                       PeerMath math = PeerMath::kFp32) const;
  /// Whether the output is the same within the roundings that two correct implementations may
  /// differ by.
  bool agrees_with(const CudnnConv &conv);
  bool agrees_with(const CudnnGraphConv &conv, size_t engine);

 private:
  /// Device tensors in the order of the arguments of mp_conv2d_*, each at a 256-byte boundary.
  struct Set {
    void *first, *second, *out;
  };
  struct Elems {
    int64_t first, second, out;
  };

  Elems elems() const;
  void list_kernels();
  void fill_sets(RandomPool &pool);
  void reserve_workspace(const mp_conv2d_desc_t &desc);
  const Set &next_set();
  /// A peer's on a set.
  using PeerCall = std::function<void(const Set &)>;
  bool agrees_with_call(const PeerCall &call);
  void enqueue_own(const mp_conv2d_desc_t &desc, const Set &set) const;

  const Machine &machine_;
  ConvShape shape_;
  mp_conv2d_desc_t desc_;
  std::vector<const char *> kernels_;
  Buffer tensors_;
  std::vector<Set> sets_;
  size_t next_ = 0;
  Buffer workspace_;
};

}  // namespace mpbench
