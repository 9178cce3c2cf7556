// The figures of a GEMM or a convolution: what its row has beside the shape.
#pragma once

#include <optional>
#include <string>

#include "bench/timing/counts.h"
#include "row.h"

namespace mpbench {

struct Figures {
  mp_dtype_t dtype, out_dtype;
  float beta;
  double flop, min_bytes;  ///< every operand once
  std::string kernel;
  double predicted_us;  ///< by the cost model that chose the kernel; 0 = not known
  int64_t workspace_bytes;
  int64_t sets;  ///< of operands, taken in turn
  Timing timing;
  std::optional<PeerResult> peer;  ///< its first choice
  std::optional<PeerWorkspace> peer_workspace;
  std::optional<BestChoice> peer_best;
  Baselines baselines;
  std::optional<RankResult> rank;
  std::optional<SustainedResult> sustained;
  std::optional<Counts> counts = {};  ///< instead of all times, and of what follows from them

  double teraflops() const { return 1e-3 * timing.giga_per_s(flop); }
};

std::string figures_heading(const Figures &figures);
std::string figures_text(const Figures &figures, const std::optional<Peak> &peak);
void add_figures(Json &json, const Figures &figures, const std::optional<Peak> &peak);

}  // namespace mpbench
