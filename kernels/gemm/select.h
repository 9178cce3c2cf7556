// The GEMM kernels as data: which there are, and how each cuts a problem into tiles.
//
// See problem.h for the functions that capi calls, tuning.h for the constants of the predicted
// times, predict.h for the prediction.  All of it is pure.
#pragma once

#include <bit>
#include <span>

#include "kernels/gemm/problem.h"
#include "kernels/gemm/tiles.h"

namespace mp {

/// In the order of the table.
enum class GemmFamily { gemv, wgmma, wmma, simt };

struct GemmKernel {
  GemmFamily family;
  GemmTile tile;
  const char *name;
  int tile_m, tile_n;  ///< is_tile_extent
  int tile_k;          ///< a power of two
  size_t (*smem_bytes)(bool a_by_k, bool b_by_k);
  bool cluster_along_m;  ///< blocks of a cluster are neighbors in m and share B; else they share A
  int blocks_per_sm;     ///< concurrent blocks
  /// A block alone on its SM takes as long as this many that share it: its few warps leave gaps
  /// that others would fill.
  double single_block_slowdown;
  bool ping_pong = false;  ///< wgmma: a tile leaves while the next is multiplied
};

/// Larger tiles first within a family; the last row runs everything, without workspace.
std::span<const GemmKernel> gemm_kernels();

/// One way to run a kernel.
struct GemmVariant {
  const GemmKernel *kernel;
  int cluster;
  int split_k;
  const char *name;  ///< static storage
  /// Where it reads copies of A and B, made first; NULL if it never does.  TMA has no other way to rows that are not
  /// aligned, so that the name of a wgmma kernel stays the same.  WMMA has two ways, which differ in time and workspace.
  const char *copied_name;
};

/// All of them, kernel by kernel; allocates when it is first called.
std::span<const GemmVariant> gemm_variants();

/// What A and B are read from where they are no matrices but patches of an image.
struct PatchOperands {
  double memory_mb;  ///< patches share pixels
  bool is_wgrad;     ///< wgmma: every stage has other places, and blocks of taps
};

/// rank_gemm among the kernels with these tiles; may find none.
/// @param patches  NULL: the matrices themselves
int rank_gemm_of(GemmTiles tiles, const GemmProblem &problem, const Device &device,
                 const GemmTuning &tuning, bool aligned, GemmPlan *choices, int capacity,
                 const PatchOperands *patches = nullptr);

/// find_gemm of a kernel that reads A and B where they are.
bool find_gemm_in_place(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
                        bool aligned, const char *name, GemmPlan *choice, const char **why,
                        const PatchOperands *patches = nullptr);

/// NULL if the device runs this wgmma kernel, else why not.
const char *why_no_wgmma(const GemmKernel &kernel, const Device &device);
/// NULL if TMA can load A and B, else why not.  `vectorised`: all their rows are 16-byte aligned.
const char *why_no_tma(const GemmProblem &problem, bool vectorised);

// The rest is inline, and free of divisions where it can be: every mp_gemm asks it a hundred times.

/// `multiple`: a power of two.
inline int64_t round_up(int64_t elems, int multiple) {
  return (elems + multiple - 1) & -int64_t{multiple};
}

/// A power of two, or three times one.
constexpr bool is_tile_extent(int extent) {
  const unsigned bits = static_cast<unsigned>(extent);
  return std::has_single_bit(bits) || (bits % 3 == 0 && std::has_single_bit(bits / 3));
}
/// Tiles of that extent, rounded up.
inline int64_t tiles_in(int64_t elems, int extent) {
  const int shift = std::countr_zero(static_cast<unsigned>(extent));
  const uint64_t count = static_cast<uint64_t>(elems + extent - 1) >> shift;
  return static_cast<int64_t>(extent >> shift == 1 ? count : count / 3);
}

/// Tiles of one batch item; in the direction in which a cluster's blocks are neighbours, whole
/// clusters.
struct TileCounts {
  int64_t m, n;
};
inline TileCounts tile_counts(const GemmKernel &kernel, int cluster, int64_t m, int64_t n) {
  TileCounts tiles{tiles_in(m, kernel.tile_m), tiles_in(n, kernel.tile_n)};
  int64_t &paired = kernel.cluster_along_m ? tiles.m : tiles.n;
  paired = round_up(paired, cluster);
  return tiles;
}

/// Elements of k per slice: whole k-tiles, so that only the last slice has a residue.
inline int64_t slice_elems(const GemmKernel &kernel, int64_t k, int split_k) {
  return round_up((k + split_k - 1) / split_k, kernel.tile_k);
}

/// Every row of A and B, of every item, starts 16-byte aligned if the first does.
inline bool has_vector_rows(const GemmProblem &p) {
  return (p.a.ld | p.b.ld | p.a.stride | p.b.stride) % 8 == 0;
}

}  // namespace mp
