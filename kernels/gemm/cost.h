// The cost model: counts the work of a plan and prices it with the constants of tuning.h.
//
//     us = launches launch_us
//        + max(starts start_us + waves (tile_us + k_us slice_k) + epilogues
//                  + sums in clusters,
//              l2 MB of all tiles, dram MB of the matrices)
//        + copies of A and B, split-k sum, dbias
//
// The busiest SM computes ceil(tiles / SMs) tiles, one per wave: a full last wave beats a nearly
// empty one.  A tile that extends beyond D costs a whole tile.  Blocks that share an SM share its
// time; too few of them leave latencies exposed.  A split makes more and shorter tiles, and adds
// partial sums.
#pragma once

#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"

namespace mp {

constexpr double kElemsPerK = 1024;  ///< the unit of slice_k and k_us
constexpr double kMb = 1e-6;         ///< MB per byte

// ---------------------------------------------------------------------------- prices

/// Main loop of one tile on one SM; slice_k in 1024 elements.
inline double tile_us(const KernelTuning &kernel, double slice_k, double slowdown = 1) {
  return kernel.tile_us + kernel.k_us * slowdown * slice_k;
}

/// Main loop of one tile of that cost.
double main_us(const PlanCost &cost, const ClassTuning &device, const KernelTuning &kernel);
/// Epilogue of one tile.  A class without constants for store paths has them in TILE_US.
double epilogue_us(const EpilogueCost &epilogue, const ClassTuning &device);

/// Main loops and epilogues in the critical path of an SM.
struct SmTime {
  double mains, epilogues;
};
/// Critical path of an SM that runs `mains` main loops and `epilogues` epilogues, those without a
/// main loop last.  Ping-pong: two warpgroups alternate, so two tiles take as long as both main
/// loops, or as one main loop and its epilogue.  The last epilogue is exposed.
SmTime sm_time(bool ping_pong, double mains, double epilogues, double main_us, double epilogue_us);
SmTime sm_time(const PlanCost &cost, const ClassTuning &device, const KernelTuning &kernel);

double predicted_us(const PlanCost &cost, const ClassTuning &device, const KernelTuning &kernel);

// ---------------------------------------------------------------------------- counts

/// Epilogue of one tile; `path`: of a Hopper kernel.
EpilogueCost epilogue_cost(const GemmKernel &kernel, const OutputShape &out, StorePath path);

/// Cost of the pass that computes dbias.
struct DbiasPass {
  double launches;
  double mb;  ///< traffic, at the rate of all SMs
};
DbiasPass count_dbias(const OutputShape &out, const DbiasPlan &plan, const Device &device);

/// One shape on one device, with copies of its operands or in place.
struct SelectionInput {
  SelectionInput(const GemmShape &shape, const PlanRequest &request,
                 const AlignedCopies &copies = {}, const ConvTraits *conv = nullptr)
      : shape(with_copies(shape, copies)),
        device(request.device),
        tuning(request.tuning.of(class_of(request.device))),
        vectorized(is_aligned(shape) && has_vector_rows(this->shape)),
        copies(copies),
        conv(conv),
        store(conv != nullptr ? conv->store : wgmma_store_path(shape.out)) {}
  const GemmShape shape;
  const Device &device;
  const ClassTuning &tuning;
  const bool vectorized;  ///< every row of A and B is 16-byte aligned
  const AlignedCopies copies;
  const ConvTraits *const conv;
  const StorePath store;  ///< Hopper kernels without a split

  /// Returns whether the kernel can store column sums of subtiles: those that it stores by TMA are
  /// 16 neighboring rows of D.
  bool can_fuse_dbias(const GemmKernel &kernel) const {
    return kernel.family == GemmFamily::wgmma && store == StorePath::tma &&
           shape.out.items == ItemAccess::strided && (conv == nullptr || !conv->has_stride_phases);
  }
};

/// Counts the work of the plans for one kernel and cluster, which differ in their split.
class CostCounter {
 public:
  CostCounter(const GemmKernel &kernel, int cluster, const SelectionInput &input);

  /// @param parts  GemmPlan::parts
  PlanCost count(int split_k, int parts) const;

 private:
  /// Returns how many of the tiles the busiest SM computes.
  double waves(double tiles, double at_a_time) const;
  /// Adds the partial sums in workspace and their pass; `epilogue`: of a tile of a Hopper kernel,
  /// which stores them.
  void add_partials(PlanCost &cost, int num_partials, const EpilogueCost &epilogue) const;
  /// Adds sums of slices in clusters, each of which has one tile: nothing hides its epilogue.
  void add_cluster_sums(PlanCost &cost, int num_partials, int parts) const;
  /// A wave of a gemv kernel has 2^20 elements of the matrix; slice_k is the number of vectors.
  void count_gemv(const GemmShape &shape);

  const GemmKernel &kernel_;
  const SelectionInput &input_;
  double tiles_;      ///< in all batch items
  double mains_;      ///< tiles with a main loop
  double at_a_time_;  ///< tiles that the device computes concurrently
  double num_sms_;
  double l2_mb_;  ///< capacity
  bool is_host_;
  bool shares_sms_;                              ///< several blocks run on an SM
  bool is_producer_bound_;                       ///< PlanCost::producer_stages
  double d_mb_;                                  ///< D in fp32
  double epilogue_mb_;                           ///< D, C and aux
  EpilogueCost share_;                           ///< share of an SM in the epilogue of all of D
  EpilogueCost slice_epilogue_;                  ///< Hopper: epilogue of a tile with a split
  EpilogueCost staged_epilogue_, staged_slice_;  ///< Hopper: of a tile that a cluster adds
  double sums_mb_;                               ///< Hopper: fp32 sums of a tile
  DbiasPass dbias_, split_dbias_;
  PlanCost common_;
};

}  // namespace mp
