// Memory plan: offsets of all tensors in one block, where activations share memory over time.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/executor/emitter.h"
#include "graph/executor/graph_data.h"

namespace mp::graph {

/// Offsets, indexed by Place; kNowhere if bound externally or not in memory.
struct Layout {
  static constexpr size_t kNowhere = ~size_t{0};
  std::vector<size_t> offset;
  size_t bytes = 0;
  size_t workspace_offset = 0;
  /// Views: the place whose memory each place uses, or the place itself.  Indexed by Place.
  std::vector<Place> same_as;
  size_t parameters = 0, copies = 0, gradients = 0, states = 0, activations = 0,
         activations_unshared = 0;

  /// Returns the root of a chain of views, or the place itself.
  Place root_of(Place place) const {
    while (same_as[place] != place) place = same_as[place];
    return place;
  }
};

/// Plans the memory of a graph.
/// @param emitted    all launches, for buffers other than tensors
/// @param gradients  gradient of each tensor, or kNone
Layout lay_out(const Graph &graph, const Emitter &emitted, const std::vector<int32_t> &gradients);

}  // namespace mp::graph
