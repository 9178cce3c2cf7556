// Implementation of the handle of mpcore/graph.h.
#pragma once

#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "capi/context.h"
#include "graph/executor/emitter.h"

namespace mp::graph {

// ---------------------------------------------------------------------------- steps of compilation

/// Reports of mp_autocast_explain, indexed by mp_autocast_format_t.
using Reports = std::array<std::string, MP_AUTOCAST_FORMAT_DOT + 1>;

/// Assigns a type to every node and tensor.  One rewrite covers forward and backward nodes, so the
/// types of gradients follow from the same rules.
/// @param policy  nullptr: changes nothing and returns empty reports
Reports cast(Graph &graph, mp_autocast_t policy, mp_context_t context);

/// Fuses nodes:
///
/// - into the epilogue of a product: bias and activation
/// - into the epilogue of an input-gradient product: activation derivative and bias gradient
/// - into batch normalization: ReLU and its derivative
void fuse(Graph &graph);

/// Offsets, indexed by AddressIndex; kNowhere if bound externally or not in memory.
struct Layout {
  static constexpr size_t kNowhere = ~size_t{0};
  std::vector<size_t> offset;
  size_t bytes = 0;
  size_t workspace_offset = 0;
  /// Views: the address that each address equals, or itself.  Indexed by AddressIndex.
  std::vector<AddressIndex> same_as;
  mp_graph_memory_t memory = zero_struct<mp_graph_memory_t>();

  /// Returns the root of a chain of views, or the address itself.
  AddressIndex root_of(AddressIndex index) const {
    while (same_as[index] != index) index = same_as[index];
    return index;
  }
};

/// Plans the memory of a graph.
/// @param emitted    all launches, for buffers other than tensors
/// @param gradients  gradient of each tensor, or kNone
Layout lay_out(const Graph &graph, const Emitter &emitted, const std::vector<int32_t> &gradients);

// ---------------------------------------------------------------------------- the executor

/// Returns the properties of a tensor that need no memory.
mp_graph_tensor_t shape_of(const Tensor &tensor);

struct DestroyList {
  void operator()(mp_tensor_list_t list) const noexcept { mp_tensor_list_destroy(list); }
};
using List = std::unique_ptr<mp_tensor_list, DestroyList>;

/// Compiled graph that can run.
class Executor {
 public:
  /// Compiles the graph.  Leaves no resources allocated on failure.
  /// @param measured_kernels  of mp_graph_measure_kernels
  Executor(const Graph &described, mp_autocast_t policy, mp_context_t context,
           int32_t measured_kernels);

  void bind(int32_t input, const void *data);
  void set_batch(const Graph &described, int64_t batch);
  void write(int32_t tensor, const float *values, mp_stream_t stream);
  void forward(mp_graph_mode_t mode, mp_stream_t stream);
  void backward(mp_scaler_t scaler, mp_stream_t stream);
  /// Returns the number of training forward passes; 0 without dropout.
  int64_t step(mp_stream_t stream) const;
  void set_step(int64_t t, mp_stream_t stream);

  mp_graph_tensor_t tensor(int32_t id) const;
  mp_graph_memory_t memory() const;
  const Reports &reports() const { return reports_; }
  std::string description() const;
  bool has_backward() const { return graph_.has_backward(); }
  const Graph &graph() const { return graph_; }

  mp_tensor_list_t grads() const { return grads_.get(); }
  mp_tensor_list_t master() const { return master_.get(); }
  mp_tensor_list_t model() const { return model_.get(); }

 private:
  void plan_workspace(const Graph &described, Emitter &full);
  void allocate(const Emitter &emitted);
  void fill_constants(const Emitter &emitted);
  void make_lists();
  void set_extents(const Graph &described, int64_t batch);
  void make_launches();
  bool can_compute_loss() const;
  void run(std::initializer_list<Phase> phases, LaunchArgs run);
  /// Returns nullptr if the address is not in the block.
  void *address_in_block(AddressIndex root) const;
  void *address(const Input &input) const { return addresses_[AddressTable::of(input)]; }

  mp_context_t context_;
  const int32_t measured_kernels_;
  Graph graph_;
  bool keeps_io_;
  Reports reports_;
  std::vector<int32_t> gradients_;  ///< per tensor, or kNone
  Layout layout_;
  DeviceBuffer block_;
  std::vector<void *> addresses_;                                 ///< indexed by AddressIndex
  std::map<int32_t, std::vector<AddressIndex>> bound_addresses_;  ///< per input, including views
  Workspace workspace_ = {};
  std::vector<DeviceBuffer> more_workspace_;         ///< for batches that the plan does not cover
  std::map<int64_t, std::vector<Launch>> launches_;  ///< per batch
  std::array<std::set<int32_t>, kPhases> required_;  ///< inputs that must be bound, per phase
  bool is_trained_ = false;  ///< true directly after a training forward pass
  List grads_, master_, model_;
  /// Lists with one parameter each, to write its 16-bit copy like an optimizer.
  struct Pair {
    List master, model;
  };
  std::map<int32_t, Pair> pairs_;  ///< per parameter with a copy
};

}  // namespace mp::graph

struct mp_graph {
  explicit mp_graph(const mp::ContextPtr &shared) : context{shared} {}
  mp_context context;
  mp::graph::Graph described;
  mp_autocast_t policy = nullptr;
  int32_t measured_kernels = 0;
  std::unique_ptr<mp::graph::Executor> executor;  ///< NULL before mp_graph_compile
};
