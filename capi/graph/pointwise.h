// Which function of one element a node is, for those that compute it on the way.
#pragma once

#include "capi/graph/graph.h"

namespace mp::graph {

/// MP_ACT_NONE where the node is no activation.
mp_activation_t activation_of(const Node &node);
/// Of a node that multiplies its first input with the derivative at its second; else MP_ACT_NONE.
mp_activation_t derivative_of(const Node &node);

}  // namespace mp::graph
