// One pass of a whole recurrent layer, beside the time of its GEMMs alone.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/rnn_shapes.h"
#include "figures.h"

namespace mpbench {

/// torch's layer, which cannot do without a product of its input, and mpcore's with that product too.
struct BesideTorch {
  std::string what;  ///< calls that both have made
  PeerResult own, torch;
};

struct RnnLayerRow {
  RnnShape shape;
  Figures figures;  ///< operations are those of the GEMMs
  int64_t reserve_bytes;
  std::optional<PeerResult> products;  ///< the GEMMs one after the other, in turns with the layer
  std::optional<int64_t> peer_reserve_bytes = {};
  std::optional<BesideTorch> torch = {};
};

/// Time of the layer / time of its GEMMs: what the cells add, above 1, or what is saved, below.
double time_over_products(const RnnLayerRow &row);

std::string heading_of(const RnnLayerRow &row);
std::string line_of(const RnnLayerRow &row, const std::optional<Peak> &peak);
Json json_of(const RnnLayerRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
