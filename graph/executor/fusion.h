// What a node can compute on the way for others.
#pragma once

#include "graph/executor/graph_data.h"

namespace mp::graph {

/// Into the epilogues of products: a bias and an activation behind them; a derivative and the gradient of a bias behind
/// the product that makes a gradient.  Into batch normalisation: a relu, and its derivative.
void fuse(Graph &graph);

}  // namespace mp::graph
