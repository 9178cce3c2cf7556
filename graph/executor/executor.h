// What the handle of mpcore/graph.h is.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "capi/context.h"
#include "graph/executor/casting.h"
#include "graph/executor/emitter.h"
#include "graph/executor/graph_data.h"
#include "graph/executor/memory.h"
#include "mpcore.h"

namespace mp::graph {

/// What is known of a tensor before it has memory.
mp_graph_tensor_t shape_of(const Tensor &tensor);

struct DestroyList {
  void operator()(mp_tensor_list_t list) const noexcept { mp_tensor_list_destroy(list); }
};
using List = std::unique_ptr<mp_tensor_list, DestroyList>;

/// A graph that can run.
class Executor {
 public:
  /// Compiles; nothing is left behind where that fails.
  Executor(const Graph &described, mp_autocast_t policy, mp_context_t context);

  void bind(int32_t input, const void *data);
  void set_batch(const Graph &described, int64_t batch);
  void write(int32_t tensor, const float *values, mp_stream_t stream);
  void forward(mp_graph_mode_t mode, mp_stream_t stream);
  void backward(mp_scaler_t scaler, mp_stream_t stream);
  /// Number of forward passes in training; 0 without Dropout.
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
  void run(std::initializer_list<Phase> phases, Run run);
  /// nullptr: it lies elsewhere.
  void *address_in_block(Place root) const;
  void *address(const Input &input) const { return addresses_[Places::of(input)]; }

  mp_context_t context_;
  Graph graph_;
  bool keeps_io_;
  Reports reports_;
  std::vector<int32_t> parameters_;
  std::vector<int32_t> gradients_;  ///< of each tensor; kNone
  Layout layout_;
  DeviceBuffer block_;
  std::vector<void *> addresses_;                       ///< by Place
  std::map<int32_t, std::vector<Place>> bound_places_;  ///< an input, and its views
  Workspace workspace_ = {};
  std::vector<DeviceBuffer> more_workspace_;         ///< for batches beyond the plan
  std::map<int64_t, std::vector<Launch>> launches_;  ///< by batch
  std::array<std::set<int32_t>, kPhases> required_;  ///< inputs that must be bound, by phase
  bool is_trained_ = false;                          ///< a forward pass in training came last
  List grads_, master_, model_;
  /// Of one parameter each, to write its 16-bit copy as an optimizer does; both empty where it has none.
  struct Pair {
    List master, model;
  };
  std::vector<Pair> pairs_;  ///< by parameter
};

}  // namespace mp::graph

struct mp_graph {
  explicit mp_graph(const mp::ContextPtr &shared) : context{shared} {}
  mp_context context;
  mp::graph::Graph described;
  mp_autocast_t policy = nullptr;
  std::unique_ptr<mp::graph::Executor> executor;  ///< once it is compiled
};
