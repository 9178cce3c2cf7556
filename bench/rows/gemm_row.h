// One GEMM of the results, or several of one shape after each other.
#pragma once

#include <optional>
#include <string>

#include "../shapes.h"
#include "row.h"

namespace mpbench {

struct GemmRow {
  Shape shape;
  mp_gemm_desc_t desc;
  std::string kernel;
  double predicted_us;  ///< by the cost model that chose the kernel
  int64_t workspace_bytes;
  int64_t sets;      ///< of operands, taken in turn
  double min_bytes;  ///< every operand once
  Timing timing;
  std::optional<PeerResult> peer;  ///< its first choice
  std::optional<BestChoice> peer_best;
  Baselines baselines;
  std::optional<RankResult> rank;
};

std::string heading_of(const GemmRow &row);
std::string line_of(const GemmRow &row, const std::optional<Ceiling> &ceiling);
void write_row(JsonWriter &json, const GemmRow &row, const std::optional<Ceiling> &ceiling);

/// What does not tell the shape, for rows that tell it otherwise.
std::string figures_heading();
std::string figures_text(const GemmRow &row, const std::optional<Ceiling> &ceiling);
void write_figures(JsonWriter &json, const GemmRow &row, const std::optional<Ceiling> &ceiling);

}  // namespace mpbench
