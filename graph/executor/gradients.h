// Reverse mode: the nodes that compute gradients, appended behind the others.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/executor/graph_data.h"
#include "graph/executor/operation.h"

namespace mp::graph {

/// What Operation::differentiate() writes to.
class Gradients {
 public:
  explicit Gradients(Graph &graph);

  /// Walks from the loss and the seeds back to the parameters.
  /// @return the gradient of each tensor; kNone: it has none, or nobody wants it
  std::vector<int32_t> append_all();

  /// The gradient of an output; kNone: the loss does not depend on it.
  int32_t of(const Node &node, size_t output);
  /// Whether a parameter stands behind an input, or somebody looks at its gradient.
  bool is_wanted(const Node &node, size_t input) const;

  /// A tensor for the gradient of an input, or kNone where it is not wanted.
  int32_t new_if_wanted(const Node &node, size_t input);
  int32_t make(const Node &node, size_t input);
  /// Says that a tensor is the gradient of an input, or a part of it where others add theirs.
  void contribute(const Node &node, size_t input, int32_t gradient);

  /// Appends a node that belongs to `node`, and has its attributes.
  /// @param word  behind the name of `node`
  void append(const Node &node, std::string_view type, std::string_view word,
              std::initializer_list<int32_t> inputs, std::initializer_list<int32_t> outputs);

  Graph &graph() { return graph_; }

 private:
  void append_seeds();
  int32_t sum_of(int32_t tensor);
  /// Root of a chain of views; the tensor itself if it has memory.
  int32_t memory_of(int32_t tensor) const;
  /// Copies a gradient, so that a list of gradients has it once.
  /// @param of  tensor that the copy is the gradient of
  int32_t copy_of(int32_t gradient, int32_t of);
  /// Name of a node that belongs to the producer of a tensor.
  std::string name_behind(int32_t tensor, const char *word) const;

  Graph &graph_;
  std::vector<std::vector<int32_t>> parts_;  ///< of the gradient of each tensor
  std::vector<bool> is_wanted_;
  int32_t current_ = kNone;
};

}  // namespace mp::graph
