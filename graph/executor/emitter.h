// Compiled graph: a flat list of calls, with all decisions made except the addresses of inputs.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "graph/executor/graph_data.h"
#include "graph/executor/operation.h"
#include "graph/executor/phases.h"

namespace mp::graph {

/// Index in the address table of a tensor, or of its copy in another type.
using Place = size_t;

/// Layout of the address table: each tensor and its copy, then buffers that are not tensors.
struct Places {
  static Place of(const Input &input) {
    return 2 * static_cast<size_t>(input.tensor) + (input.reads_copy ? 1 : 0);
  }
  explicit Places(const Graph &graph) : end(2 * graph.tensors.size()) {}
  Place nowhere() const { return end; }
  Place ones(mp_dtype_t dtype) const { return end + static_cast<size_t>(dtype); }
  Place zeros() const { return end + 4; }
  Place steps() const { return end + 5; }
  size_t count() const { return end + 6; }
  size_t end;
};

/// Arguments of one pass over the launches.
struct Run {
  bool is_training = false;
  mp_stream_t stream = nullptr;
  const float *loss_scale = nullptr;  ///< device; nullptr means 1
  float *found_inf = nullptr;         ///< device, optional
  mp_context_t context = nullptr;
  void *const *addresses = nullptr;
  void *workspace = nullptr;
  size_t workspace_bytes = 0;

  void *at(Place place) const { return addresses[place]; }
  float *floats_at(Place place) const { return static_cast<float *>(at(place)); }
  const int32_t *integers_at(Place place) const { return static_cast<const int32_t *>(at(place)); }
};

using Call = std::function<mp_status_t(const Run &)>;

struct Launch {
  Phase phase;
  std::string what;  ///< one-line description
  Call call;
};

/// Target of Operation::emit().
class Emitter {
 public:
  Emitter(const Graph &graph, mp_context_t context);

  /// Appends the calls of all nodes, forward and then backward.
  void emit_all();

  const Graph &graph() const { return graph_; }
  mp_context_t context() const { return context_; }

  Place in(const Node &node, size_t i) const {
    return node.has_input(i) ? Places::of(node.inputs[i]) : places_.nowhere();
  }
  Place place(const Input &input) const {
    return input.tensor != kNone ? Places::of(input) : places_.nowhere();
  }
  Place out(const Node &node, size_t i) const {
    return place({node.has_output(i) ? node.outputs[i] : kNone});
  }
  Place nowhere() const { return places_.nowhere(); }
  /// Requests `count` ones of a type, or `bytes` zero bytes.
  Place ones(mp_dtype_t dtype, int64_t count);
  Place zeros(size_t bytes);
  /// Requests two uint64_t: numbers of training forward passes before the next and the last one.
  Place steps();
  void needs_workspace(size_t bytes);

  /// @param name    function that is called
  /// @param output  output that this call writes, or kAllOutputs
  void append(const char *name, Call call, size_t output = kAllOutputs);
  static constexpr size_t kAllOutputs = ~size_t{0};

  std::vector<Launch> launches;
  size_t workspace_bytes = 0;
  std::array<int64_t, 4> num_ones = {};  ///< indexed by mp_dtype_t
  size_t zero_bytes = 0;
  bool counts_steps = false;

 private:
  void emit_count();
  void emit_casts(const Node &node);
  void emit_cast(int32_t tensor);

  const Graph &graph_;
  mp_context_t context_;
  Places places_;
  int32_t node_ = kNone;
};

/// Fails with the message of the last call if `status` is an error.
void require_success(mp_status_t status);

}  // namespace mp::graph
