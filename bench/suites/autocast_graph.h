// Synthetic network graphs of any size for timing mp_autocast_rewrite.
#pragma once

#include <cstdint>
#include <vector>

#include "mpcore.h"

namespace mpbench {

enum class GraphShape {
  kChain,  ///< each node reads the previous one: neighbors are adjacent in memory
  kRandom  ///< each node reads any earlier one: neighbors are not adjacent
};

const char *name_of(GraphShape shape);

class AutocastGraph {
 public:
  AutocastGraph(GraphShape shape, int32_t nodes);

  /// Returns a view with pointers into this graph.
  mp_autocast_graph_t view() const;
  int32_t num_tensors() const { return static_cast<int32_t>(tensor_dtype_.size()); }
  int32_t num_inputs() const { return static_cast<int32_t>(input_tensor_.size()); }

 private:
  /// Adds a tensor and returns its index.
  int32_t add_tensor(int32_t producer, mp_tensor_role_t role);
  void add_node(const char *op, const std::vector<int32_t> &inputs);

  std::vector<const char *> node_op_;
  std::vector<int32_t> input_offsets_{0}, input_tensor_, tensor_producer_;
  std::vector<uint8_t> tensor_dtype_, tensor_role_;
  std::vector<int32_t> output_;  ///< output tensor of each node
};

/// Storage for the complete output of a rewrite.
class AutocastAnswer {
 public:
  explicit AutocastAnswer(const AutocastGraph &graph);

  mp_autocast_result_t &view() { return view_; }

 private:
  std::vector<uint8_t> tensor_dtype_, node_dtype_, node_why_;
  std::vector<int32_t> input_cast_, node_because_;
  std::vector<mp_autocast_cast_t> casts_;
  mp_autocast_result_t view_;
};

}  // namespace mpbench
