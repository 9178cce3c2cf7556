// Types of nodes and tensors by autocast, and the reports about them.
#pragma once

#include <array>
#include <string>

#include "graph/executor/graph_data.h"

namespace mp::graph {

/// Reports of mp_autocast_explain, indexed by mp_autocast_format_t.
using Reports = std::array<std::string, MP_AUTOCAST_FORMAT_DOT + 1>;

/// Assigns a type to every node and tensor.  One rewrite covers forward and backward nodes, so the
/// types of gradients follow from the same rules.
/// @param policy  nullptr: changes nothing and returns empty reports
Reports cast(Graph &graph, mp_autocast_t policy, mp_context_t context);

}  // namespace mp::graph
