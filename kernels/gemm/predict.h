// Predicted time of a plan: the time of the busiest SM, or of memory traffic if that is longer.
//
//     us = launches launch_us
//        + max(starts start_us + waves (tile_us + k_us slice_k) + epilogues,
//              l2 MB of all tiles, dram MB of the matrices)
//        + copies of A and B, split-k and dbias
//
// Tiles are distributed evenly, so the busiest SM computes ceil(blocks / SMs) tiles, one per wave:
// a full last wave is better than a nearly empty one.  A tile that extends beyond D costs as much
// as a full tile.  Blocks that share an SM share its time; too few blocks expose their latencies.
// Split-k makes more and shorter tiles and pays for partial sums.  predict_epilogue.h models the
// epilogue, which ping-pong kernels overlap with the main loop of the next tile.
//
// The work of a plan is counted first (GemmLoad) and then priced with the constants of tuning.h.
// All prices are linear in the constants, so mptune can fit them to measured times.
#pragma once

#include "kernels/gemm/aligned_copies.h"
#include "kernels/gemm/predict_epilogue.h"
#include "kernels/gemm/tuning.h"

namespace mp {

constexpr double kElemsPerK = 1024;  ///< the unit of slice_k and k_us

/// Work of a plan.
struct GemmLoad {
  double launches;         ///< consecutive kernel launches
  double starts;           ///< blocks that the busiest SM starts, one after the other
  double waves;            ///< tiles of the busiest SM, one after the other
  double slice_k;          ///< k of each tile, in 1024 elements
  bool is_clustered;       ///< runs in clusters of two blocks
  double scalar_elems;     ///< 2^20 elements that a tile loads one by one per 1024 of k
  double producer_stages;  ///< wgrad on wgmma, with two producer threads: stages per tile; else 0
  double producer_loads;   ///< TMA loads per stage
  double l2_mb;            ///< operands read by all tiles
  double dram_mb;          ///< matrices, each counted once
  double partial_mb;       ///< partial sums, counted for each time that all are written or read
  double copied_mb;        ///< aligned copies of A and B
  EpilogueCost epilogue;   ///< cost of one epilogue
  double epilogues;        ///< epilogues of the busiest SM; 1 if only the split-k sum has one
  bool ping_pong;          ///< main loops hide all epilogues but the last
  double post_pass_mb;     ///< passes after the main loop: split-k sum, dbias
};

/// Returns the time of one tile on one SM; slice_k in 1024 elements.
inline double tile_us(const KernelTuning &kernel, double slice_k, double slowdown = 1) {
  return kernel.tile_us + kernel.k_us * slowdown * slice_k;
}

/// Counts the work of a plan for `problem`, whose A and B are 16-byte aligned.
GemmLoad load_of(const GemmPlan &choice, const GemmProblem &problem, const Device &device);

/// Returns the time of the main loop of one tile.
double main_us(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel);
SmTime sm_time(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel);

double predicted_us(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel);

/// Counts the work of all plans for one kernel and cluster, which differ only in split-k.
/// `copies`: the copies that `problem` reads.  `vectorised`: every row of A and B is 16-byte
/// aligned.
class GemmCounter {
 public:
  GemmCounter(const GemmKernel &kernel, int cluster, const GemmProblem &problem,
              const Device &device, bool vectorised, const AlignedCopies &copies,
              const PatchOperands *patches = nullptr);

  GemmLoad load(int split_k) const;

 private:
  void add_split(GemmLoad &load, int split_k) const;
  /// Counts the work of a gemv kernel.  The matrix is distributed evenly: a wave is 2^20 of its
  /// elements, and slice_k is the number of vectors.
  void count_gemv(const GemmProblem &problem);

  const GemmKernel &kernel_;
  int64_t k_;
  double tiles_;      ///< tiles of all batch items
  double at_a_time_;  ///< tiles that run concurrently
  double num_sms_;
  double l2_mb_;                 ///< capacity of L2
  bool shares_sms_;              ///< several blocks run on an SM
  bool is_producer_bound_;       ///< GemmLoad::producer_stages applies
  double d_mb_;                  ///< D in fp32
  double epilogue_mb_;           ///< D, C and aux
  EpilogueCost share_;           ///< an SM's share of the epilogue of D
  EpilogueCost slice_epilogue_;  ///< wgmma: epilogue of a tile if k is split
  DbiasPass dbias_, split_dbias_;
  GemmLoad common_;
};

}  // namespace mp
