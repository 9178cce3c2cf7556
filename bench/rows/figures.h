// Results common to the rows of GEMMs and convolutions.
#pragma once

#include "row.h"

namespace mpbench {

/// Fastest of the peer's algorithms for a problem.
struct BestChoice {
  int64_t choice, of;  ///< position (1 = the peer's first choice) and count
  PeerWorkspace workspace;
  PeerResult result;
};

/// Times with FP32 operands, the alternative to mixed precision.
struct Baselines {
  std::optional<PeerResult> fp32;  ///< TF32 disabled
  std::optional<PeerResult> tf32;  ///< TF32 allowed
};

/// Times of each contestant alone for some seconds, after a warm-up of the same length.
struct SustainedResult {
  Timing own;
  std::optional<Timing> peer = {};  ///< the algorithm that it ranks first
};

/// Quality of kernel selection over all kernels that can run the problem.
struct RankResult {
  int64_t position, count;  ///< predicted rank of the fastest, from 1
  std::string fastest;
  double chosen_us, fastest_us;
};

struct Figures {
  mp_dtype_t dtype, out_dtype;
  float beta;
  double flop, min_bytes;  ///< each operand counted once; flop 0 = there are no products
  std::string kernel;
  double predicted_us = 0;  ///< predicted by the cost model; 0 = unknown
  int64_t workspace_bytes;
  int64_t sets;  ///< number of operand sets, used cyclically
  Timing timing = {};
  std::optional<PeerResult> peer = {};  ///< the algorithm that it ranks first
  std::optional<PeerWorkspace> peer_workspace = {};
  std::optional<BestChoice> peer_best = {};
  Baselines baselines = {};
  std::optional<RankResult> rank = {};
  std::optional<SustainedResult> sustained = {};
  std::optional<Counts> counts = {};  ///< replace all times and values derived from them

  double teraflops() const { return 1e-3 * timing.giga_per_s(flop); }
};

Fields figures_fields(const Figures &figures, const std::optional<Peak> &peak);

}  // namespace mpbench
