// Operator fusion.
#pragma once

#include "graph/executor/graph_data.h"

namespace mp::graph {

/// Fuses nodes:
///
/// - into the epilogue of a product: bias and activation
/// - into the epilogue of an input-gradient product: activation derivative and bias gradient
/// - into batch normalization: ReLU and its derivative
void fuse(Graph &graph);

}  // namespace mp::graph
