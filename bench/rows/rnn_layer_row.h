// Row of one pass of a recurrent layer, with the time of its GEMMs alone.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/rnn_shapes.h"
#include "figures.h"

namespace mpbench {

/// torch's layer, which always multiplies its input by W_ih, and mpcore's with that GEMM too.
struct BesideTorch {
  std::string what;  ///< calls that both make
  PeerResult own, torch;
};

struct RnnLayerRow {
  RnnShape shape;
  Figures figures;  ///< operations count only the GEMMs
  int64_t reserve_bytes;
  std::optional<PeerResult> products;  ///< the GEMMs in sequence, interleaved with the layer
  std::optional<int64_t> peer_reserve_bytes = {};
  std::optional<BesideTorch> torch = {};
};

/// Time of the layer / time of its GEMMs: above 1 the cells add time, below 1 the layer saves time.
double time_over_products(const RnnLayerRow &row);

std::string heading_of(const RnnLayerRow &row);
std::string line_of(const RnnLayerRow &row, const std::optional<Peak> &peak);
Json json_of(const RnnLayerRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
