// A training step through mp_graph_* and the same calls by hand.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/perceptron_shape.h"
#include "row.h"

namespace mpbench {

/// Both forms, which took turns.
struct GraphBesideHand {
  Timing graph, by_hand;

  /// Time of the graph / time by hand, round by round.
  Quartiles ratio() const { return ratio_between(graph, by_hand); }
};

struct GraphRow {
  PerceptronShape shape;
  mp_dtype_t dtype;  ///< that products compute in; other than fp32: mixed precision
  int64_t launches;
  GraphBesideHand whole;
  /// Until the calls return.  Empty on the host target, where they do the work of the device themselves.
  std::optional<GraphBesideHand> host;
};

std::string heading_of(const GraphRow &row);
std::string line_of(const GraphRow &row, const std::optional<Peak> &peak);
Json json_of(const GraphRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
