// What every launch of a wgmma kernel decides on the host: the tensor maps and how D is stored.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/simt/tensor_map.h"

namespace mp::MP_TARGET {

/// Problem, schedule and slices of k; neither maps nor workspace.
WgmmaArgs plan_wgmma(const GemmPlan &, const GemmArgs &);

/// Of the whole batch, for the boxes of that kernel.  k > 0.
TensorMap wgmma_map_a(const GemmProblem &, const GemmPlan &);
TensorMap wgmma_map_b(const GemmProblem &, const GemmPlan &);

/// How D leaves (wgmma_store.h), with the maps that this takes.
void plan_wgmma_store(const TensorMapSpec &d, const TensorMapSpec *source_map, WgmmaArgs *);
/// Where k is split: the sums of each slice leave in place of `d`, and wait for launch_split_k_sum.
void plan_wgmma_slices(const Output &d, float *partial_sums, WgmmaArgs *);

/// One launch for products of a group, without clusters and splits: how D leaves, maps from which those
/// of a product can be made, and where in workspace the table is, which is to be filled.
/// @param store  wgmma_store_path of all products
WgmmaArgs plan_wgmma_group(const Device &, const GemmProblem &common, int64_t count,
                           StorePath store, const GemmPlan &, std::byte *workspace);

/// The kernel alone, as launch_wmma.
void launch_wgmma_kernel(const GemmPlan &, const Device &, const WgmmaArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
