// Report of a rewrite: as text, JSON or a DOT graph.
#pragma once

#include <string>

#include "graph/rewrite/assign_precision.h"
#include "graph/rewrite/casts.h"
#include "mpcore.h"

namespace mp::autocast {

/// Graph before or after its rewrite.
struct Rewritten {
  const mp_autocast_graph_t &graph;
  mp_dtype_t low;
  const char *disabled_reason;          ///< reason why nothing changed; nullptr after a rewrite
  const PrecisionAssignment *painting;  ///< nullptr before the rewrite
  const Casts *casts;
};

std::string report(const Rewritten &rewritten, mp_autocast_format_t format);

}  // namespace mp::autocast
