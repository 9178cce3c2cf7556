// Host side of every wgmma launch: arguments, tensor maps and store path.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/tensor_map.h"

namespace mp::MP_TARGET {

/// Returns the problem, schedule and slices of k, without maps and workspace.
WgmmaArgs plan_wgmma(const GemmPlan &, const GemmArgs &);

/// Returns the map of A (B) for the full batch, with the boxes of the kernel.  Requires k > 0.
TensorMap wgmma_map_a(const GemmProblem &, const GemmPlan &);
TensorMap wgmma_map_b(const GemmProblem &, const GemmPlan &);

/// Sets the store path of D (wgmma_store.h) and its tensor maps.
void plan_wgmma_store(const TensorMapSpec &d, const TensorMapSpec *source_map, WgmmaArgs *);
/// Replaces `d` by the partial sums of the slices, for launch_split_k_sum.
void plan_wgmma_slices(const Output &d, float *partial_sums, WgmmaArgs *);

/// Returns the arguments of one launch for a group, without clusters and split-k: store path,
/// templates for the maps of the entries, and the address of the table, which the caller fills.
/// @param store  wgmma_store_path of the group
WgmmaArgs plan_wgmma_group(const Device &, const GemmProblem &common, int64_t count,
                           StorePath store, const GemmPlan &, std::byte *workspace);

/// Launches only the kernel, like launch_wmma.
void launch_wgmma_kernel(const GemmPlan &, const Device &, const WgmmaArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
