// Row of a training step through mp_graph_* and by the same calls without a graph.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/perceptron_shape.h"
#include "row.h"

namespace mpbench {

/// Times of both forms, measured interleaved.
struct GraphBesideHand {
  Timing graph, by_hand;

  /// Ratio of the graph's time to the time without it, per round.
  Quartiles ratio() const { return ratio_between(graph, by_hand); }
};

struct GraphRow {
  PerceptronShape shape;
  mp_dtype_t dtype;  ///< compute type; other than fp32: mixed precision
  int64_t launches;
  GraphBesideHand whole;
  /// Host time until the calls return.  Empty on the host target, where the calls compute
  /// synchronously.
  std::optional<GraphBesideHand> host;
};

std::string heading_of(const GraphRow &row);
std::string line_of(const GraphRow &row, const std::optional<Peak> &peak);
Json json_of(const GraphRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
