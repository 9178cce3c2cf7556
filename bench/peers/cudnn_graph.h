// cuDNN's graph API as a peer: engines that its heuristic selects for a convolution, FP32 compute,
// NHWC and KRSC.  Some of their kernels are not available through the older functions of cudnn.h.
#pragma once

#include <memory>
#include <vector>

#include "cudnn.h"
#include "cudnn_graph_abi.h"

namespace mpbench {

/// A descriptor of any kind.
class GraphDescriptor {
 public:
  GraphDescriptor(const cudnn::GraphFunctions &graph, cudnn::GraphDescType type);
  GraphDescriptor(const GraphDescriptor &) = delete;
  GraphDescriptor &operator=(const GraphDescriptor &) = delete;
  ~GraphDescriptor();

  cudnn::GraphDesc get() const { return desc_; }

  template <typename Value>
  void set(cudnn::GraphAttribute attribute, cudnn::GraphType type,
           std::initializer_list<Value> values) {
    set_all(attribute, type, static_cast<int64_t>(values.size()), values.begin());
  }
  void set(cudnn::GraphAttribute attribute, const GraphDescriptor &descriptor) {
    set(attribute, cudnn::kDescType, {descriptor.get()});
  }
  void finalize();
  /// Writes at most `room` values and returns the number of existing ones.
  int64_t get_all(cudnn::GraphAttribute attribute, cudnn::GraphType type, int64_t room,
                  void *values) const;

 private:
  void set_all(cudnn::GraphAttribute attribute, cudnn::GraphType type, int64_t count,
               const void *values);

  const cudnn::GraphFunctions &graph_;
  cudnn::GraphDesc desc_ = nullptr;
};

class CudnnGraphConv {
 public:
  /// Number of engines requested from the heuristic; those that cannot run are dropped.
  static constexpr int64_t kMaxEngines = 8;

  /// @throws std::runtime_error if cuDNN has no engine for it.
  CudnnGraphConv(const Cudnn &library, const mp_conv2d_desc_t &desc, mp_conv_op_t op);

  size_t engines() const { return plans_.size(); }
  int64_t workspace_bytes(size_t engine) const { return plan_bytes_[engine]; }
  /// @param first, second, out  device tensors, in the order of mp_conv2d_*
  void enqueue(const void *first, const void *second, void *out, size_t engine) const;

 private:
  using Descriptor = std::unique_ptr<GraphDescriptor>;

  Descriptor make(cudnn::GraphDescType type) const;
  Descriptor make_tensor(int64_t id, const int64_t (&nchw)[4]) const;
  Descriptor make_convolution() const;
  void make_graph(mp_conv_op_t op);
  void find_plans();
  bool computes_in_fp32(const GraphDescriptor &config) const;

  const Cudnn &library_;
  mp_conv2d_desc_t desc_;
  Descriptor tensors_[3], convolution_, operation_, graph_;
  std::vector<Descriptor> configs_, plans_;
  std::vector<int64_t> plan_bytes_;  ///< workspace bytes
};

}  // namespace mpbench
