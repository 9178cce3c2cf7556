// Launch arguments of the Hopper kernels, from a plan: tile scheduler, tensor maps, store path.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/tensor_map.h"

namespace mp::MP_TARGET {

/// Problem, scheduler and slices of k, without maps and workspace.
WgmmaArgs make_wgmma_args(const GemmPlan &, const GemmArgs &);

/// Maps of the whole batch, in boxes of the kernel's tile.  k > 0.
TensorMap wgmma_map_a(const GemmProblem &, const GemmPlan &);
TensorMap wgmma_map_b(const GemmProblem &, const GemmPlan &);

/// Sets the store path of the plan, and its maps if that is TMA.
void set_wgmma_store(const GemmPlan &, const TensorMapSpec &d, const TensorMapSpec &source,
                     WgmmaArgs *);
/// Sets the destination of split-k: partial sums of each slice in place of `d`, for
/// launch_split_k_sum.
void set_wgmma_slices(const Output &d, float *partial_sums, WgmmaArgs *);

/// Arguments of one launch for the products of a group: store path, patterns of the maps of a
/// product, and the address of the table, which is not yet filled.
WgmmaArgs make_wgmma_group_args(const Device &, const GemmProblem &common, int64_t count,
                                const GemmPlan &, std::byte *workspace);

/// The kernel alone, as launch_wmma.
void launch_wgmma_kernel(const GemmPlan &, const Device &, const WgmmaArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
