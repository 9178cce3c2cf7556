// How long a choice will take: the time of the busiest SM, unless moving the data takes longer.
//
//     us = launches launch_us
//        + max(starts start_us + waves (tile_us + k_us slice_k) + epilogues, l2 MB of all tiles, dram MB of
//              the matrices)
//        + what copies of A and B, a split and dbias add
//
// Blocks are dealt out evenly, so the busiest SM has ceil(blocks / SMs) tiles, one per wave: a full
// last wave beats a nearly empty one.  A tile that hangs over the edge of D costs a whole one.  Blocks that
// share an SM share its time; too few to fill it wait for their latencies.  A split makes more
// and shorter tiles, and pays for partial sums.  How a tile comes out of the SM, with its epilogue, is
// predict_epilogue.h's; kernels that alternate hide it behind the products of the next tile.
//
// What a choice does is counted first (GemmLoad) and then priced with the constants of tuning.h:
// every price is linear in them, which is how mptune fits them to times that it measured.
#pragma once

#include "kernels/gemm/aligned_copies.h"
#include "kernels/gemm/predict_epilogue.h"
#include "kernels/gemm/tuning.h"

namespace mp {

constexpr double kElemsPerK = 1024;  ///< the unit of slice_k and k_us

struct GemmLoad {
  double launches;         ///< passes, one behind the other
  double starts;           ///< blocks that the busiest SM begins, one after the other
  double waves;            ///< tiles of the busiest SM, one after the other
  double slice_k;          ///< of k in each, in 1024 elements
  bool is_clustered;       ///< in clusters of two
  double scalar_elems;     ///< in 2^20: that a tile loads one by one for 1024 of k
  double producer_stages;  ///< per tile of wgrad by wgmma, issued by two threads; else 0
  double producer_loads;   ///< per stage
  double l2_mb;            ///< operands read by all tiles
  double dram_mb;          ///< the matrices, once
  double partial_mb;       ///< partial sums, for each time that all of them are written or read
  double copied_mb;        ///< of A and B, into aligned rows first
  EpilogueCost epilogue;   ///< of one tile
  double epilogues;     ///< of them, of the busiest SM: 1 where a pass behind a split is all of it
  bool ping_pong;       ///< where all but the last hide
  double post_pass_mb;  ///< what passes behind the main loop's move: the sum of a split, dbias
};

/// Of one tile on one SM; slice_k in 1024 elements.
inline double tile_us(const KernelTuning &kernel, double slice_k, double slowdown = 1) {
  return kernel.tile_us + kernel.k_us * slowdown * slice_k;
}

/// Of a choice for `problem`, whose A and B are 16-byte aligned.
GemmLoad load_of(const GemmPlan &choice, const GemmProblem &problem, const Device &device);

/// Of the products of one tile of that load.
double main_us(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel);
SmTime sm_time(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel);

double predicted_us(const GemmLoad &load, const ClassTuning &device, const KernelTuning &kernel);

/// Counts what the choices for one kernel and cluster do; the split is what they differ by.
/// `vectorised`: every row of A and B is 16-byte aligned.  `copies`: that were made for `problem` to read.
class GemmCounter {
 public:
  GemmCounter(const GemmKernel &kernel, int cluster, const GemmProblem &problem,
              const Device &device, bool vectorised, const AlignedCopies &copies,
              const PatchOperands *patches = nullptr);

  GemmLoad load(int split_k) const;

 private:
  void add_split(GemmLoad &load, int split_k) const;
  /// A gemv kernel's matrix is dealt out evenly: 2^20 of its elements are a wave, and what takes the
  /// place of slice_k is the number of vectors.
  void count_gemv(const GemmProblem &problem);

  const GemmKernel &kernel_;
  int64_t k_;
  double tiles_;      ///< of all batch items
  double at_a_time_;  ///< of them, on the device
  double num_sms_;
  double l2_mb_;                 ///< what L2 keeps
  bool shares_sms_;              ///< several blocks run on an SM
  bool is_producer_bound_;       ///< GemmLoad::producer_stages
  double d_mb_;                  ///< D in fp32
  double epilogue_mb_;           ///< D, C and aux
  EpilogueCost share_;           ///< of an SM in the epilogue of all of D
  EpilogueCost slice_epilogue_;  ///< of a tile of wgmma where k is split
  DbiasPass dbias_, split_dbias_;
  GemmLoad common_;
};

}  // namespace mp
