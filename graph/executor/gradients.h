// Reverse-mode differentiation: appends the nodes that compute gradients.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/executor/graph_data.h"
#include "graph/executor/operation.h"

namespace mp::graph {

/// Target of Operation::differentiate.
class Gradients {
 public:
  explicit Gradients(Graph &graph);

  /// Differentiates from the loss and the seeds back to the parameters.
  /// @return the gradient of each tensor, or kNone if it has none or none is needed
  std::vector<int32_t> append_all();

  /// Returns the gradient of an output, or kNone if the loss does not depend on it.
  int32_t of(const Node &node, size_t output);
  /// Returns whether the gradient of an input is needed: for a parameter, or because it is kept.
  bool is_wanted(const Node &node, size_t input) const;

  /// Adds a tensor for the gradient of an input; returns kNone if the gradient is not needed.
  int32_t new_if_wanted(const Node &node, size_t input);
  int32_t make(const Node &node, size_t input);
  /// Adds a tensor to the gradient of an input, which may have several contributions.
  void contribute(const Node &node, size_t input, int32_t gradient);

  /// Appends the node that computes the gradient of an input, if it is needed, from the gradient of
  /// output 0 and `others`.
  void append_gradient(const Node &node, size_t input, std::string_view type, std::string_view word,
                       std::initializer_list<int32_t> others);
  /// Appends a node that belongs to `node` and has its attributes.
  /// @param word  suffix of the new node's name, after the name of `node`
  void append(const Node &node, std::string_view type, std::string_view word,
              const std::vector<int32_t> &inputs, const std::vector<int32_t> &outputs);

  Graph &graph() { return graph_; }

 private:
  void append_seeds();
  int32_t sum_of(int32_t tensor);
  /// Returns the root of a chain of views, or the tensor itself if it has memory.
  int32_t memory_of(int32_t tensor) const;
  /// Copies a gradient, so that a list of gradients contains it only once.
  /// @param of  tensor whose gradient is copied
  int32_t copy_of(int32_t gradient, int32_t of);
  /// Returns the name of a node that belongs to the producer of a tensor.
  std::string name_after(int32_t tensor, const char *word) const;

  Graph &graph_;
  std::vector<std::vector<int32_t>> parts_;  ///< contributions to the gradient of each tensor
  std::vector<bool> is_wanted_;
  int32_t current_ = kNone;
};

}  // namespace mp::graph
