// What a rewrite did, to be read: as text, as JSON, and as a picture.
#pragma once

#include <string>

#include "graph/rewrite/assign_precision.h"
#include "graph/rewrite/casts.h"
#include "mpcore.h"

namespace mp::autocast {

/// A graph before or after its rewrite.
struct Rewritten {
  const mp_autocast_graph_t &graph;
  mp_dtype_t low;
  const char *disabled_reason;  ///< why nothing was changed; else nullptr, and the others are there
  const PrecisionAssignment *painting;  ///< nullptr: before the rewrite
  const Casts *casts;
};

std::string report(const Rewritten &rewritten, mp_autocast_form_t form);

}  // namespace mp::autocast
