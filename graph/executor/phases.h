// When nodes run.
//
// One list of nodes serves both modes.  In training the loss is computed together with its
// gradient, so a node that depends on the loss follows that backward node, in both modes.
#pragma once

#include "graph/executor/graph_data.h"

namespace mp::graph {

enum class Phase {
  forward,
  loss,        ///< inference alone: backward computes the loss with its gradient
  after_loss,  ///< inference: the forward pass; training: the backward pass
  backward
};
constexpr size_t kPhases = 4;

Phase phase_of(const Graph &graph, const Node &node);

/// Returns whether a node computes the gradient of the loss, and in training the loss itself.
bool computes_loss(const Graph &graph, const Node &node);

/// Marks the nodes that depend on the loss, and moves them behind the node of its gradient.
void defer_readers_of_loss(Graph &graph);

/// Fails with MP_ERROR_INTERNAL if a node reads a tensor that no earlier node of the same mode has
/// written.
void require_order(const Graph &graph);

}  // namespace mp::graph
