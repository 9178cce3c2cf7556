// The types of a graph by autocast, and what is told of them.
#pragma once

#include <array>
#include <string>

#include "graph/executor/graph_data.h"

namespace mp::graph {

/// The reports of mp_autocast_explain, by mp_autocast_form_t.
using Reports = std::array<std::string, 3>;

/// Gives every node and tensor its type: forward and backward together, as a gradient has no type of its own.
/// @param policy  nullptr: everything stays as it is, and there is no report
Reports cast(Graph &graph, mp_autocast_t policy, mp_context_t context);

}  // namespace mp::graph
