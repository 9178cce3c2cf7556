// The GEMM kernels as data, and kernel selection: which variants can run a shape, in the order of
// their predicted times.  Store paths and tensor maps of Hopper kernels, for selection and launch.
//
// plan.h has the functions that capi calls, tuning.h the constants of the predicted times, cost.h
// the prediction.
#pragma once

#include <bit>
#include <span>

#include "base/workspace_layout.h"
#include "kernels/gemm/plan.h"
#include "kernels/gemm/tiles.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

struct GemmKernel {
  GemmFamily family;
  GemmTile tile;
  const char *name;
  int tile_m, tile_n;  ///< see is_tile_extent
  int tile_k;          ///< a power of two
  size_t (*smem_bytes)(bool a_by_k, bool b_by_k);
  /// Blocks of a cluster are neighbors along m and share B; else A.
  bool cluster_along_m = false;
  int blocks_per_sm = 1;  ///< concurrent blocks
  /// Blocks sharing an SM that take as long as one block alone on it, whose few warps leave gaps
  /// that others would fill.
  double single_block_slowdown = 1;
  bool ping_pong = false;  ///< wgmma: stores a tile while the next is multiplied
};

/// Returns the table, in the order of the tiles.  The last row runs every problem, with no
/// workspace.
std::span<const GemmKernel> gemm_kernels();
inline const GemmKernel &kernel_of(GemmTile tile) {
  return gemm_kernels()[static_cast<size_t>(tile)];
}

/// A kernel with a cluster size and a number of slices of k.
struct GemmVariant {
  const GemmKernel *kernel;
  int multicast;  ///< GemmPlan::multicast
  int split_k;
  int parts;         ///< GemmPlan::parts
  const char *name;  ///< static storage
  /// Name with copies of A and B; NULL if the kernel never reads copies.  A Hopper kernel has one
  /// name, because TMA has no other way to unaligned rows; WMMA has two ways, which differ in time
  /// and workspace.
  const char *copied_name;
};

/// Returns the number of clusters of `blocks` blocks, one block per SM, that run at a time, at
/// least 1; on the host target, a worker runs all blocks of a cluster.
///
/// Estimate: a cluster runs within one GPC.  The 132 SMs of an H100 belong to 8 GPCs of up to 18
/// (NVIDIA H100 whitepaper); equal GPCs are assumed, and at least 8 SMs in each.
inline int64_t clusters_at_a_time(const Device &device, int blocks) {
  constexpr int kNumGpcs = 8, kMinSms = 8;
  if (device.target == MP_TARGET_HOST) return device.num_sms;
  const int sms = device.num_sms < kNumGpcs * kMinSms ? kMinSms : device.num_sms / kNumGpcs;
  const int64_t fit = device.num_sms / sms * (sms / blocks) + device.num_sms % sms / blocks;
  return fit > 1 ? fit : 1;
}

/// All variants, kernel by kernel; the first call allocates.
std::span<const GemmVariant> gemm_variants();

/// Properties of a convolution that its product of matrices lacks.
struct ConvTraits {
  double memory_mb;        ///< operands in memory, where patches share pixels
  bool is_wgrad;           ///< Hopper: every stage has its own positions, and blocks of taps
  bool has_stride_phases;  ///< strided dgrad: rows of a subtile are not adjacent in dx
  int64_t empty_items;     ///< batch items without a main loop: k is that of the others
  StorePath store;         ///< Hopper: without a split
};

/// Ranks the variants with these tiles that read A and B in place; may be empty.
/// @param conv  NULL: A and B are matrices, not patches of an image
std::vector<RankedGemm> rank_in_place(GemmTiles tiles, const GemmShape &, const PlanRequest &,
                                      const ConvTraits *conv = nullptr);
/// Makes the plan of an entry of rank_gemm.
GemmPlan plan_ranked(const RankedGemm &, const GemmShape &, const PlanRequest &);
/// Makes the plan of a variant that reads A and B in place.
GemmPlan plan_variant(const GemmVariant &, const GemmShape &, const PlanRequest &,
                      const ConvTraits *conv = nullptr);
/// plan_named_gemm of a kernel that reads A and B in place.
bool plan_named_in_place(const GemmShape &, const PlanRequest &, const char *name, GemmPlan *plan,
                         const char **why, const ConvTraits *conv = nullptr);

/// Returns whether the kernel loads A and B through TMA.
inline bool uses_tma(const GemmKernel &kernel) {
  return kernel.family == GemmFamily::wgmma || kernel.family == GemmFamily::thin;
}
/// NULL if the device runs this Hopper kernel, else the reason.
const char *why_no_wgmma(const GemmKernel &kernel, const Device &device);
/// NULL if TMA can load A and B, else the reason.  `vectorized`: all their rows are 16-byte
/// aligned.
const char *why_no_tma(const GemmShape &shape, bool vectorized);

// ---------------------------------------------------------------------------- parts of a plan

/// Copies of the operands whose ld or stride is not a multiple of 8.  None for operands of FP32,
/// behind pointers, misaligned or too large to be counted.
AlignedCopies aligned_copies(const GemmShape &);
GemmShape with_copies(const GemmShape &, const AlignedCopies &);

/// @param can_fuse       GemmPlan::can_fuse_dbias
/// @param product_bytes  workspace of the product, which precedes the subtile sums
DbiasPlan plan_dbias(const OutputShape &, bool can_fuse, size_t product_bytes,
                     size_t workspace_bytes);

/// @param num_partials  GemmPlan::num_partials()
GemmWorkspace gemm_workspace(const GemmKernel &, const OutputShape &, int num_partials,
                             const AlignedCopies &);

/// Returns the first entry of a ranking that needs at most this workspace; one exists for any
/// amount.
template <class Ranking>
const auto &first_that_fits(const Ranking &ranked, size_t workspace_bytes) {
  auto entry = ranked.begin();
  while (entry->workspace_bytes > workspace_bytes) ++entry;
  return *entry;
}

/// Returns make_plan(entry) for the first entries of a ranking within this workspace.
template <class Ranking, class MakePlan>
auto first_plans(const Ranking &ranked, size_t workspace_bytes, int32_t max_count,
                 const MakePlan &make_plan) {
  std::vector<decltype(make_plan(ranked[0]))> plans;
  for (const auto &entry : ranked) {
    if (static_cast<int64_t>(plans.size()) >= max_count) break;
    if (entry.workspace_bytes <= workspace_bytes) plans.push_back(make_plan(entry));
  }
  return plans;
}

// ---------------------------------------------------------------------------- tiles

// Inline and mostly free of divisions: a ranking calls these a hundred times.

/// Returns whether `extent` is a power of two, or three times one.
constexpr bool is_tile_extent(int extent) {
  const unsigned bits = static_cast<unsigned>(extent);
  return std::has_single_bit(bits) || (bits % 3 == 0 && std::has_single_bit(bits / 3));
}
/// Returns the number of tiles of that extent, rounded up.
inline int64_t tiles_in(int64_t elems, int extent) {
  const int shift = std::countr_zero(static_cast<unsigned>(extent));
  const uint64_t count = static_cast<uint64_t>(elems + extent - 1) >> shift;
  return static_cast<int64_t>(extent >> shift == 1 ? count : count / 3);
}

/// Tiles of one batch item, a multiple of the cluster along its direction.
struct TileCounts {
  int64_t m, n;
};
inline TileCounts tile_counts(const GemmKernel &kernel, int cluster, int64_t m, int64_t n) {
  TileCounts tiles{tiles_in(m, kernel.tile_m), tiles_in(n, kernel.tile_n)};
  int64_t &clustered = kernel.cluster_along_m ? tiles.m : tiles.n;
  clustered = align_up(clustered, cluster);
  return tiles;
}

/// Returns the elements of k per slice: complete k-tiles, so that only the last has a remainder.
inline int64_t k_per_slice(const GemmKernel &kernel, int64_t k, int split_k) {
  return tiles_in((k + split_k - 1) / split_k, kernel.tile_k) * kernel.tile_k;
}

/// Every row of A and B, of every item, starts 16-byte aligned if the first does.
inline bool has_vector_rows(const GemmShape &s) {
  return (s.a.ld | s.b.ld | s.a.stride | s.b.stride) % 8 == 0;
}
/// A and B start 16-byte aligned.
inline bool is_aligned(const GemmShape &s) {
  return s.a.alignment == 16 && s.b.alignment == 16;
}

// ---------------------------------------------------------------------------- store paths

// Ways to store the tiles of a Hopper kernel (wgmma_epilogue.h), and tensor maps of D and of the
// epilogue source.

/// Condition of the fast TMA store, for kernel and cost model: alpha, bias and ReLU only.
/// @param whole_units     TMA stores every column of a row in units of 16 bytes
/// @param sums_subtiles   the epilogue stores column sums of subtiles
MP_HD constexpr bool is_fast_store(bool whole_units, EpilogueSource source,
                                   mp_activation_t activation, bool has_statistics,
                                   bool sums_subtiles) {
  return whole_units && source == EpilogueSource::none &&
         (activation == MP_ACT_NONE || activation == MP_ACT_RELU) && !has_statistics &&
         !sums_subtiles;
}
bool is_fast_store(const OutputShape &);

/// Condition of the direct store, for kernel and cost model: every row of an fp32 matrix begins at
/// a pair.
/// @param address  any number with the alignment of the matrix
MP_HD constexpr bool has_aligned_pairs(uintptr_t address, int64_t ld) {
  return address % (2 * sizeof(float)) == 0 && ld % 2 == 0;
}
bool can_store_directly(const OutputShape &);

EpilogueSource epilogue_source(const OutputShape &);
/// Store path of one product or batch without a split.
StorePath wgmma_store_path(const OutputShape &);
/// Store path of all products of a group.
StorePath wgmma_store_path(const GemmGroup &);
/// C, D and aux aligned for tensor maps, wherever these can exist.
OutputShape aligned_for_tma_store(OutputShape);
/// 16-bit D with tensor maps is stored by TMA, fp32 D with alpha and beta directly, and the rest
/// staged.
StorePath store_path_with(const OutputShape &, bool has_maps);

/// Output of a split main loop in place of `out`: dense fp32 partial sums.
OutputShape split_k_output(const OutputShape &out);

// ---------------------------------------------------------------------------- tensor maps

/// Rows of `cols` elements, `rows` of them per batch item, in boxes of 64 columns.
TensorMapSpec wgmma_matrix_spec(const Operand &, mp_dtype_t, int64_t rows, int64_t cols,
                                int64_t batch_count, int box_rows);
/// A matrix of the size of D, in boxes of one subtile (wgmma_tma_store.h).
TensorMapSpec wgmma_subtile_spec(const Output &, const Operand &);
/// C or aux, whichever the epilogue reads or writes.
Operand wgmma_source_operand(const Output &);

// ---------------------------------------------------------------------------- table of products

/// The table of a group or batch by pointers: a header, followed by the entries (wgmma_args.h).
constexpr size_t kWgmmaTableHeaderBytes = 256, kWgmmaItemBytes = 512;
/// mp_gemm_grouped: products in the parameters of one launch that fills the table.
constexpr int kWgmmaProductsPerLaunch = 320;
constexpr int64_t kWgmmaItemsPerBlock = 512;  ///< in the kernel that fills a table

constexpr size_t wgmma_table_bytes(int64_t items) {
  return kWgmmaTableHeaderBytes + static_cast<size_t>(items) * kWgmmaItemBytes;
}

}  // namespace mp
