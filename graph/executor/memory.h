// Where tensors lie: one block of memory, in which activations follow one another.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/executor/emitter.h"
#include "graph/executor/graph_data.h"

namespace mp::graph {

/// Offsets by Place; kNowhere: bound from outside, or not in memory at all.
struct Layout {
  static constexpr size_t kNowhere = ~size_t{0};
  std::vector<size_t> offset;
  size_t bytes = 0;
  size_t workspace_offset = 0;
  /// Places that are another's, under another shape: views.  By Place; itself where it is none.
  std::vector<Place> same_as;
  size_t parameters = 0, copies = 0, gradients = 0, states = 0, activations = 0,
         activations_alone = 0;

  /// What a view is a view of, in the end; itself where it is none.
  Place root_of(Place place) const {
    while (same_as[place] != place) place = same_as[place];
    return place;
  }
};

/// @param emitted    all launches, for what they need beside tensors
/// @param gradients  of each tensor; kNone where it has none
Layout lay_out(const Graph &graph, const Emitter &emitted, const std::vector<int32_t> &gradients);

}  // namespace mp::graph
