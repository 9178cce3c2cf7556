// Row of one pass of a memory-bound layer.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/layer_shapes.h"
#include "bench/timing/counts.h"
#include "row.h"

namespace mpbench {

struct LayerRow {
  LayerShape shape;
  mp_dtype_t dtype;
  int64_t workspace_bytes;
  int64_t sets;
  Timing timing;
  CopyBeside copy;
  std::optional<PeerResult> peer;
  std::optional<PeerWorkspace> peer_workspace;
  std::optional<Counts> counts = {};  ///< replace times
};

std::string heading_of(const LayerRow &row);
std::string line_of(const LayerRow &row, const std::optional<Peak> &peak);
Json json_of(const LayerRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
