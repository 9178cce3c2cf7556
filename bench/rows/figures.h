// Results common to the rows of GEMMs and convolutions.
#pragma once

#include <optional>
#include <string>

#include "bench/timing/counts.h"
#include "row.h"

namespace mpbench {

struct Figures {
  mp_dtype_t dtype, out_dtype;
  float beta;
  double flop, min_bytes;  ///< each operand counted once
  std::string kernel;
  double predicted_us;  ///< predicted by the cost model; 0 = unknown
  int64_t workspace_bytes;
  int64_t sets;  ///< number of operand sets, used cyclically
  Timing timing;
  std::optional<PeerResult> peer;  ///< the algorithm that it ranks first
  std::optional<PeerWorkspace> peer_workspace;
  std::optional<BestChoice> peer_best;
  Baselines baselines;
  std::optional<RankResult> rank;
  std::optional<SustainedResult> sustained;
  std::optional<Counts> counts = {};  ///< replace all times and values derived from them

  double teraflops() const { return 1e-3 * timing.giga_per_s(flop); }
};

std::string figures_heading(const Figures &figures);
std::string figures_text(const Figures &figures, const std::optional<Peak> &peak);
void add_figures(Json &json, const Figures &figures, const std::optional<Peak> &peak);

}  // namespace mpbench
