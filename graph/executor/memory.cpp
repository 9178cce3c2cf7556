#include "graph/executor/executor.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mp::graph {

namespace {

constexpr size_t kAlignment = 256;

size_t aligned(size_t bytes) {
  return checked_bytes(1, bytes, kAlignment - 1) / kAlignment * kAlignment;
}

/// Lifetime of a tensor, from its producer to its last reader.
struct Lifetime {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  void include(int64_t time) {
    first = std::min(first, time);
    last = std::max(last, time);
  }
  bool is_empty() const { return last < 0; }
  bool meets(const Lifetime &other) const { return first <= other.last && other.first <= last; }
};

class Planner {
 public:
  Planner(const Graph &graph, const std::vector<int32_t> &gradients)
      : graph_(graph), table_(graph), lives_(table_.end), is_gradient_(graph.tensors.size()) {
    layout_.offset.assign(table_.count(), Layout::kNowhere);
    layout_.same_as.resize(table_.count());
    std::iota(layout_.same_as.begin(), layout_.same_as.end(), AddressIndex{0});
    for (const int32_t gradient : gradients)
      if (gradient != kNone) is_gradient_[static_cast<size_t>(gradient)] = true;
    find_views();
    find_lives();
  }

  Layout place_all(const Emitter &emitted) {
    place_lasting();
    place_activations();
    const auto place_constant = [&](AddressIndex index, size_t bytes) {
      if (bytes > 0) append(index, bytes, layout_.memory.states);
    };
    for (const FloatType &type : kFloatTypes)
      place_constant(
          table_.ones(type.dtype),
          checked_bytes(static_cast<size_t>(emitted.num_ones[static_cast<size_t>(type.dtype)]),
                        static_cast<size_t>(type.bytes)));
    place_constant(table_.zeros(), emitted.zero_bytes);
    place_constant(table_.steps(), emitted.counts_steps ? 2 * sizeof(uint64_t) : 0);
    layout_.workspace_offset = layout_.bytes;
    layout_.bytes = checked_bytes(1, layout_.bytes, aligned(emitted.workspace_bytes));
    return layout_;
  }

 private:
  AddressIndex root(AddressIndex index) const { return layout_.root_of(index); }

  void find_views() {
    for (const Node &node : graph_.nodes)
      if (node.operation->traits.is_view && !node.is_absorbed)
        layout_.same_as[AddressTable::of({node.outputs[0]})] = AddressTable::of(node.inputs[0]);
  }

  void use(const Input &input, int64_t time) {
    lives_[root(AddressTable::of(input))].include(time);
    // A cast runs after the producer: it reads one form and writes the other.
    const Tensor &t = graph_.tensor(input.tensor);
    if (input.reads_copy && t.role != Role::parameter) {
      const int64_t written = t.producer == kNone ? 0 : t.producer;
      lives_[root(AddressTable::of({input.tensor}))].include(written);
      lives_[root(AddressTable::of(input))].include(written);
    }
  }

  void find_lives() {
    const auto end = static_cast<int64_t>(graph_.nodes.size());
    for (int64_t time = 0; time < end; ++time) {
      const Node &node = graph_.nodes[static_cast<size_t>(time)];
      if (node.is_absorbed) continue;
      node.for_each_input([&](const Input &input) { use(input, time); });
      node.for_each_output([&](int32_t output) { use({output}, time); });
    }
    for (size_t t = 0; t < graph_.tensors.size(); ++t) {
      const Input written = {static_cast<int32_t>(t)};
      if (!graph_.tensors[t].is_output || lives_[root(AddressTable::of(written))].is_empty())
        continue;
      // External readers may access outputs at any time, so no pass may overwrite them.
      const bool has_copy = graph_.tensors[t].copy_dtype != MP_DTYPE_NONE;
      for (const int64_t time : {int64_t{0}, end}) {
        use(written, time);
        if (has_copy) use({written.tensor, true}, time);
      }
    }
  }

  static void add(int64_t &sum, size_t bytes) {
    sum = static_cast<int64_t>(checked_bytes(1, static_cast<size_t>(sum), bytes));
  }

  void append(AddressIndex index, size_t bytes, int64_t &sum) {
    layout_.offset[index] = layout_.bytes;
    layout_.bytes = checked_bytes(1, layout_.bytes, aligned(bytes));
    add(sum, aligned(bytes));
  }

  /// Places parameters, their copies and gradients, and states.
  void place_lasting() {
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const Tensor &t = graph_.tensors[i];
      const auto id = static_cast<int32_t>(i);
      const AddressIndex index = AddressTable::of({id});
      if (t.role == Role::parameter) append(index, t.bytes(false), layout_.memory.parameters);
      if (t.role == Role::state) append(index, t.bytes(false), layout_.memory.states);
      if (t.has_model_copy())
        append(AddressTable::of({id, true}), t.bytes(true), layout_.memory.copies);
      if (is_gradient_[i] && root(index) == index)
        append(index, t.bytes(false), layout_.memory.gradients);
    }
  }

  size_t bytes_of(AddressIndex index) const {
    return aligned(graph_.tensors[index / 2].bytes(index % 2 != 0));
  }

  /// Places activations by first fit, largest first: each gets the lowest offset that no tensor
  /// with an overlapping lifetime uses.
  void place_activations() {
    std::vector<AddressIndex> open;
    for (AddressIndex index = 0; index < table_.end; ++index)
      if (root(index) == index && !lives_[index].is_empty() &&
          layout_.offset[index] == Layout::kNowhere &&
          (graph_.tensors[index / 2].role != Role::input || index % 2 != 0))
        open.push_back(index);
    std::ranges::stable_sort(open, std::greater<>(), [&](AddressIndex p) { return bytes_of(p); });
    const size_t start = layout_.bytes;
    std::vector<AddressIndex> placed;  // sorted by offset
    for (const AddressIndex index : open) {
      size_t offset = start;
      for (const AddressIndex other : placed) {
        if (!lives_[index].meets(lives_[other])) continue;
        if (checked_bytes(1, offset, bytes_of(index)) <= layout_.offset[other]) break;
        offset = std::max(offset, layout_.offset[other] + bytes_of(other));
      }
      layout_.offset[index] = offset;
      layout_.bytes = std::max(layout_.bytes, checked_bytes(1, offset, bytes_of(index)));
      add(layout_.memory.activations_unshared, bytes_of(index));
      const auto after = std::ranges::upper_bound(
          placed, offset, {}, [&](AddressIndex p) { return layout_.offset[p]; });
      placed.insert(after, index);
    }
    layout_.memory.activations = static_cast<int64_t>(layout_.bytes - start);
  }

  const Graph &graph_;
  AddressTable table_;
  std::vector<Lifetime> lives_;  ///< indexed by AddressIndex; only for roots
  std::vector<bool> is_gradient_;
  Layout layout_;
};

}  // namespace

Layout lay_out(const Graph &graph, const Emitter &emitted, const std::vector<int32_t> &gradients) {
  return Planner(graph, gradients).place_all(emitted);
}

}  // namespace mp::graph
