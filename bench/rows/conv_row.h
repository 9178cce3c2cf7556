// One pass of a convolution.
#pragma once

#include <optional>
#include <string>

#include "../conv_shapes.h"
#include "row.h"

namespace mpbench {

struct ConvRow {
  ConvShape shape;
  mp_conv2d_desc_t desc;
  std::string kernel;
  double predicted_us;  ///< by the cost model that chose the kernel
  int64_t workspace_bytes;
  int64_t sets;      ///< of tensors, taken in turn
  double min_bytes;  ///< every tensor once
  Timing timing;
  std::optional<PeerResult> peer;
  std::optional<BestChoice> peer_best;
  Baselines baselines;
  std::optional<RankResult> rank;
};

std::string heading_of(const ConvRow &row);
std::string line_of(const ConvRow &row, const std::optional<Ceiling> &ceiling);
void write_row(JsonWriter &json, const ConvRow &row, const std::optional<Ceiling> &ceiling);

}  // namespace mpbench
