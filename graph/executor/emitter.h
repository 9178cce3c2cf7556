// Compiled graph: a flat list of calls, with all decisions made except the addresses of inputs.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "capi/defaults.h"
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
  AddressIndex zeros() const { return end + kNumTypes; }
  AddressIndex steps() const { return end + kNumTypes + 1; }
  size_t count() const { return end + kNumTypes + 2; }
  size_t end;
};

/// Addresses of the inputs and outputs of a node.
using Ports = std::array<AddressIndex, kMaxPorts>;

/// Arguments of one pass over the launches.
struct LaunchArgs {
  bool is_training = false;
  mp_stream_t stream = nullptr;
  const float *loss_scale = nullptr;  ///< device; nullptr means 1
  mp_grad_stats_t stats = {};         ///< device, optional; amax is NULL
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
  /// Requests the workspace of a call, and returns its size.
  /// @param query  mp_*_workspace_size
  template <class Query, class... Args>
  size_t needs_workspace_of(const Query &query, const Args &...args) {
    size_t bytes = 0;
    require_success(query(context_, args..., &bytes));
    needs_workspace(bytes);
    return bytes;
  }
  /// Sizes an output of kBytes for the first batch that is emitted, the largest.
  void size_output(const Node &node, size_t i, size_t bytes);

  /// @param name    function that is called
  /// @param output  output that this call writes, or kAllOutputs
  void append(const char *name, Call call, size_t output = kAllOutputs);
  static constexpr size_t kAllOutputs = ~size_t{0};

  std::vector<Launch> launches;
  size_t workspace_bytes = 0;
  std::array<int64_t, kNumTypes> num_ones = {};  ///< indexed by mp_dtype_t
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

// ---------------------------------------------------------------------------- copies

/// Appends a dimension to a copy.
inline void append_dim(mp_strided_copy_desc_t &desc, int64_t extent, int64_t x_stride,
                       int64_t y_stride) {
  desc.extent[desc.rank] = extent;
  desc.x_stride[desc.rank] = x_stride;
  desc.y_stride[desc.rank] = y_stride;
  ++desc.rank;
}

/// Emits a copy between two tensors.
/// @param x,y  addresses; the offsets are in elements
void emit_copy(Emitter &e, const mp_strided_copy_desc_t &desc, AddressIndex x, int64_t x_offset,
               AddressIndex y, int64_t y_offset, size_t output = Emitter::kAllOutputs);

// ---------------------------------------------------------------------------- dropout

// The mask of a node is a function of seed and offset (mpcore/graph.h), so backward applies the
// mask of the forward pass without storing it.

/// Differences between the seeds of consecutive nodes.  mp_attention_* adds a multiple of the first
/// one to its seed.
constexpr uint64_t kDropoutSeedStep = 0x9E3779B97F4A7C15;
constexpr uint64_t kAttentionSeedStep = 0xBF58476D1CE4E5B9;

/// Arguments of a call with dropout.
struct MaskArgs {
  float p = 0.0f;
  uint64_t seed = 0;
  const uint64_t *offset = nullptr;
};

class DropoutMask {
 public:
  /// Creates a mask that drops nothing.
  DropoutMask() = default;
  /// @param node    its attributes p and seed are the last two
  /// @param offset  optional input of the node
  DropoutMask(Emitter &e, const Node &node, size_t offset, uint64_t seed_step) {
    const size_t last = node.attributes.size() - 1;
    given_.p = static_cast<float>(node.attributes[last - 1].real);
    given_.seed = static_cast<uint64_t>(node.attributes[last].integer);
    own_seed_ = given_.seed + seed_step * static_cast<uint64_t>(node.number);
    offset_ = e.in(node, offset);
    pass_ = phase_of(e.graph(), node) == Phase::forward ? 0 : 1;
    steps_ = e.steps();
  }

  MaskArgs at(const LaunchArgs &run) const {
    if (!run.is_training || given_.p == 0.0f) return {};
    MaskArgs args = given_;
    args.offset = static_cast<const uint64_t *>(run.at(offset_));
    if (args.offset != nullptr) return args;
    args.seed = own_seed_;
    args.offset = static_cast<const uint64_t *>(run.at(steps_)) + pass_;
    return args;
  }

 private:
  MaskArgs given_;
  uint64_t own_seed_ = 0;
  AddressIndex offset_ = 0, steps_ = 0;
  size_t pass_ = 0;
};

}  // namespace mp::graph
