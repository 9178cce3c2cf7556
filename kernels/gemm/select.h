// GEMM kernels as data: the table of kernels, their variants, and their tiling of a problem.
//
// problem.h has the functions that capi calls, tuning.h the constants of the predicted times, and
// predict.h the prediction.  All functions are pure.
#pragma once

#include <bit>
#include <span>

#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiles.h"

namespace mp {

/// Kernel families, in the order of the table.
enum class GemmFamily { gemv, wgmma, wmma, simt };

struct GemmKernel {
  GemmFamily family;
  GemmTile tile;
  const char *name;
  int tile_m, tile_n;  ///< see is_tile_extent
  int tile_k;          ///< a power of two
  size_t (*smem_bytes)(bool a_by_k, bool b_by_k);
  bool cluster_along_m;  ///< blocks of a cluster are neighbors along m and share B; else A
  int blocks_per_sm;     ///< concurrent blocks
  /// Blocks sharing an SM that take as long as one block alone on it, whose few warps leave gaps
  /// that others would fill.
  double single_block_slowdown;
  bool ping_pong = false;  ///< wgmma: stores a tile while the next is multiplied
};

/// Returns the table, larger tiles first within a family.  The last row runs every problem, with no
/// workspace.
std::span<const GemmKernel> gemm_kernels();

/// Kernel with a cluster and a split.
struct GemmVariant {
  const GemmKernel *kernel;
  int cluster;
  int split_k;
  const char *name;  ///< static storage
  /// Name if the variant reads copies of A and B; NULL if it never does.  A wgmma kernel keeps its
  /// name, because TMA cannot read misaligned rows otherwise.  A WMMA kernel can, so it has two
  /// names, which differ in time and workspace.
  const char *copied_name;
};

/// Returns all variants, kernel by kernel; allocates in the first call.
std::span<const GemmVariant> gemm_variants();

/// Properties of im2col operands, which replace the matrices A and B.
struct PatchOperands {
  double memory_mb;  ///< data in memory; patches share pixels
  bool is_wgrad;     ///< wgmma: every stage has other coordinates, and blocks of taps
};

/// Ranks the kernels with these tiles, like rank_gemm; may find none.
/// @param patches  NULL: A and B are matrices
int rank_gemm_of(GemmTiles tiles, const GemmProblem &problem, const Device &device,
                 const GemmTuning &tuning, bool aligned, GemmPlan *choices, int capacity,
                 const PatchOperands *patches = nullptr);

/// Finds the plan of a kernel that reads A and B in place, like find_gemm.
bool find_gemm_in_place(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
                        bool aligned, const char *name, GemmPlan *choice, const char **why,
                        const PatchOperands *patches = nullptr);

/// Returns NULL if the device can run this wgmma kernel, else the reason.
const char *why_no_wgmma(const GemmKernel &kernel, const Device &device);
/// Returns NULL if TMA can load A and B, else the reason.  `vectorised`: all rows are aligned.
const char *why_no_tma(const GemmProblem &problem, bool vectorised);

// The following functions are inline and avoid divisions: a selection calls them a hundred times.

/// Rounds up to a multiple of `multiple`, which must be a power of two.
inline int64_t round_up(int64_t elems, int multiple) {
  return (elems + multiple - 1) & -int64_t{multiple};
}

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
  int64_t &paired = kernel.cluster_along_m ? tiles.m : tiles.n;
  paired = round_up(paired, cluster);
  return tiles;
}

/// Returns the elements of k per slice: complete k-tiles, so that only the last has a remainder.
inline int64_t slice_elems(const GemmKernel &kernel, int64_t k, int split_k) {
  return round_up((k + split_k - 1) / split_k, kernel.tile_k);
}

/// Returns whether all rows of A and B, of every item, are 16-byte aligned if the first one is.
inline bool has_vector_rows(const GemmProblem &p) {
  return (p.a.ld | p.b.ld | p.a.stride | p.b.stride) % 8 == 0;
}

}  // namespace mp
