// Phases of nodes.
//
// One list of nodes serves both modes.  In training, the loss is computed together with its
// gradient.  A node that depends on the loss therefore follows that backward node, in both modes.
#pragma once

#include "graph/executor/graph_data.h"

namespace mp::graph {

enum class Phase {
  forward,
  loss,        ///< inference only: backward computes the loss with its gradient
  after_loss,  ///< part of forward in inference, of backward in training
  backward
};
constexpr size_t kPhases = 4;

Phase phase_of(const Graph &graph, const Node &node);

/// Returns whether a node computes the gradient of the loss and, in training, the loss itself.
bool computes_loss(const Graph &graph, const Node &node);

/// Marks the nodes that depend on the loss, and moves them after the node of its gradient.
void defer_readers_of_loss(Graph &graph);

/// Fails with MP_ERROR_INTERNAL if a node reads a tensor before it is written in the same mode.
void require_order(const Graph &graph);

}  // namespace mp::graph
