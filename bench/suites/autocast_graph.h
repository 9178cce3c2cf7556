// Graphs that mp_autocast_rewrite is timed on: as large as one likes, of the operations of a network.
#pragma once

#include <cstdint>
#include <vector>

#include "mpcore.h"

namespace mpbench {

enum class GraphShape {
  kChain,  ///< each node reads the one before it: neighbours of the graph are neighbours in memory
  kRandom  ///< each node reads any one before it: they are not
};

const char *name_of(GraphShape shape);

class AutocastGraph {
 public:
  AutocastGraph(GraphShape shape, int32_t nodes);

  /// Points into this graph.
  mp_autocast_graph_t view() const;
  int32_t num_tensors() const { return static_cast<int32_t>(tensor_dtype_.size()); }
  int32_t num_inputs() const { return static_cast<int32_t>(input_tensor_.size()); }

 private:
  /// Returns the tensor.
  int32_t add_tensor(int32_t producer, mp_tensor_role_t role);
  void add_node(const char *op, const std::vector<int32_t> &inputs);

  std::vector<const char *> node_op_;
  std::vector<int32_t> first_input_{0}, input_tensor_, tensor_producer_;
  std::vector<uint8_t> tensor_dtype_, tensor_role_;
  std::vector<int32_t> output_;  ///< of each node
};

/// Room for all that a rewrite of that graph says.
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
