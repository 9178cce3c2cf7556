// Compiled graph: a flat list of calls, with all decisions made except the addresses of inputs.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "graph/executor/graph_data.h"
#include "graph/executor/operation.h"

namespace mp::graph {

/// Index of the address of a tensor, or of its copy in another type.
using AddressIndex = size_t;

/// Layout of the table of addresses: each tensor and its copy, then buffers that are not tensors.
struct AddressTable {
  static AddressIndex of(const Input &input) {
    return 2 * static_cast<size_t>(input.tensor) + (input.reads_copy ? 1 : 0);
  }
  explicit AddressTable(const Graph &graph) : end(2 * graph.tensors.size()) {}
  AddressIndex null() const { return end; }
  AddressIndex ones(mp_dtype_t dtype) const { return end + static_cast<size_t>(dtype); }
  AddressIndex zeros() const { return end + 4; }
  AddressIndex steps() const { return end + 5; }
  size_t count() const { return end + 6; }
  size_t end;
};

/// Addresses of the inputs and outputs of a node.
using Ports = std::array<AddressIndex, kMaxPorts>;

/// Arguments of one pass over the launches.
struct LaunchArgs {
  bool is_training = false;
  mp_stream_t stream = nullptr;
  const float *loss_scale = nullptr;  ///< device; nullptr means 1
  float *found_inf = nullptr;         ///< device, optional
  mp_context_t context = nullptr;
  void *const *addresses = nullptr;
  void *workspace = nullptr;
  size_t workspace_bytes = 0;
  const Ports *inputs = nullptr, *outputs = nullptr;  ///< ports of the node

  void *at(AddressIndex index) const { return addresses[index]; }
  float *floats_at(AddressIndex index) const { return static_cast<float *>(at(index)); }
  /// Returns input i; nullptr if the node does not have it, or i = kAbsent.
  void *in(size_t i) const { return i < kMaxPorts ? at((*inputs)[i]) : nullptr; }
  float *floats_in(size_t i) const { return static_cast<float *>(in(i)); }
  const int32_t *integers_in(size_t i) const { return static_cast<const int32_t *>(in(i)); }
  void *out(size_t i) const { return i < kMaxPorts ? at((*outputs)[i]) : nullptr; }
  float *floats_out(size_t i) const { return static_cast<float *>(out(i)); }
};

using Call = std::function<mp_status_t(const LaunchArgs &)>;

struct Launch {
  Phase phase;
  std::string what;  ///< one-line description
  Call call;
  Ports inputs = {}, outputs = {};
  bool has_run = false;
};

/// Target of Operation::emit.
class Emitter {
 public:
  Emitter(Graph &graph, mp_context_t context);

  /// Appends the calls of all nodes, forward and then backward.
  void emit_all();

  const Graph &graph() const { return graph_; }
  mp_context_t context() const { return context_; }

  AddressIndex index(const Input &input) const {
    return input.tensor != kNone ? AddressTable::of(input) : table_.null();
  }
  AddressIndex in(const Node &node, size_t i) const {
    return node.has_input(i) ? AddressTable::of(node.inputs[i]) : table_.null();
  }
  AddressIndex out(const Node &node, size_t i) const {
    return index({node.has_output(i) ? node.outputs[i] : kNone});
  }
  /// Requests `count` ones of a type, or `bytes` zero bytes.
  AddressIndex ones(mp_dtype_t dtype, int64_t count);
  AddressIndex zeros(size_t bytes);
  /// Requests two uint64_t: numbers of training forward passes before the next and the last one.
  AddressIndex steps();
  void needs_workspace(size_t bytes);
  /// Sizes an output of kBytes for the first batch that is emitted, the largest.
  void size_output(const Node &node, size_t i, size_t bytes);

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

  Graph &graph_;
  mp_context_t context_;
  AddressTable table_;
  int32_t node_ = kNone;
};

/// Fails with the message of the last call if `status` is an error.
void require_success(mp_status_t status);

}  // namespace mp::graph
