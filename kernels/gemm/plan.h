// The plan of a GEMM: kernel, split, copies, store path, workspace and predicted time, decided
// once.
//
// Selection (select*.cpp, plan.cpp) makes plans from shapes; launches follow them and decide
// nothing again.  Only the store path may change: kernels replace direct by staged if D requires it
// (WgmmaEpilogue::path).  All functions are pure.  Every problem has a plan for any workspace and
// any alignment of its operands, though perhaps a slower one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/workspace_layout.h"
#include "kernels/gemm/problem.h"

namespace mp {

/// One row of the kernel table (kernels/gemm/select.h).
struct GemmKernel;
/// A kernel with a cluster size and a number of slices of k (kernels/gemm/select.h).
struct GemmVariant;
/// The constants of the predicted times (kernels/gemm/tuning.h).
struct GemmTuning;
const GemmTuning &builtin_gemm_tuning();

/// Returns whether the constants were never measured on the architecture of `device`.
bool is_estimated(const GemmTuning &tuning, const Device &device);

// ---------------------------------------------------------------------------- parts

/// Method by which a Hopper kernel stores a tile of D (wgmma_epilogue.h).
enum class StorePath {
  tma,     ///< 16-bit D, through staging buffers
  direct,  ///< fp32 D with alpha and beta, from registers
  staged   ///< everything else, in vectors of 16 bytes through shared memory
};

/// The matrix beside D that an epilogue reads or writes element by element.
enum class EpilogueSource { none, c, aux_read, aux_written, several };

/// A copy of A or B with 16-byte aligned rows: TMA reads no others, and WMMA kernels load others
/// element by element.
struct AlignedCopy {
  int64_t rows, cols;
  int64_t count;  ///< matrices
  int64_t ld;     ///< row length of the copy, whose matrices are contiguous
  size_t bytes;   ///< in workspace, a multiple of 256; 0 = no copy
};

struct AlignedCopies {
  AlignedCopy a, b;
  size_t bytes() const { return a.bytes + b.bytes; }
  double mb() const { return static_cast<double>(bytes()) * 1e-6; }
  int launches() const { return (a.bytes != 0) + (b.bytes != 0); }
};

/// Rows of a subtile, which one warp stores at a time; it has 64 columns.
constexpr int kSubtileRows = 16;

/// Column sums of subtiles of 16 rows: one matrix, in which each batch item has its own rows.
struct ColumnPartials {
  float *base;  ///< NULL = the pass over D computes them
  int64_t ld;
  int64_t rows_per_item;
};

/// dbias, the column sums of D: subtiles of 16 rows, then chunks of subtiles, then the chunks.
///
/// A kernel that stores subtiles by TMA leaves their sums in workspace if there is room; else the
/// pass over D computes them.  The order of summation, and so every bit, is the same.
struct DbiasPlan {
  ColumnPartition partition;  ///< partition of the subtile sums
  ColumnPartials subtiles;    ///< base is NULL
  bool in_epilogue;           ///< the kernel stores the subtile sums
  size_t partials_at, chunks_at;
  size_t partial_bytes;
  size_t bytes;  ///< workspace; with in_epilogue including that of the product
};

/// Offsets in workspace.
struct GemmWorkspace {
  size_t table;         ///< Hopper: header and entries of batch items behind pointers, or of groups
  size_t partial_sums;  ///< partial sums of split-k (epilogue.h)
  size_t bytes;         ///< in all; the copies are at offset 0
};

/// Work of the epilogue of one tile; elements and operations in units of 2^20.
struct EpilogueCost {
  double tma_store_elems, direct_store_elems, staged_store_elems;  ///< Hopper: of D, by StorePath
  double source_mb;                                                ///< C and aux
  double ops;                                                      ///< instructions
};

/// Work of a plan, counted in units that have a price in tuning.h.
///
/// The predicted time is linear in every price, so mptune can fit the prices to measured times.
struct PlanCost {
  double launches;  ///< kernels, one after the other
  double starts;    ///< blocks that the busiest SM starts one after the other
  double waves;     ///< main loops of the busiest SM, one per tile
  double slice_k;   ///< k of each tile, in 1024 elements
  bool is_clustered;
  double scalar_elems;     ///< 2^20 elements that a tile loads one by one per 1024 of k
  double producer_stages;  ///< Hopper wgrad: stages per tile, issued by two threads; else 0
  double producer_loads;   ///< per stage
  double l2_mb;            ///< operands read by all tiles
  double dram_mb;          ///< every matrix once
  double partial_mb;       ///< partial sums, once per read or write
  double copied_mb;        ///< copies of A and B
  EpilogueCost epilogue;
  double epilogues;     ///< per busiest SM; 1 if a pass after a split is the epilogue
  double cluster_sums;  ///< per busiest SM: tiles whose slices a cluster adds; 0 for thin kernels
  bool ping_pong;       ///< the main loop of the next tile hides all but the last epilogue
  double post_pass_mb;  ///< moved by passes after the main loop: split-k sum, dbias
};

// ---------------------------------------------------------------------------- plan

struct GemmPlan {
  const GemmKernel *kernel;
  int32_t split_k;  ///< slices of k; 1 = no split
  /// Slices that the blocks of a cluster compute and add in distributed shared memory; 1 = none.
  int32_t parts = 1;
  int32_t multicast = 1;  ///< blocks of a cluster that share an operand; 1 = none
  const char *name;       ///< static storage, e.g. "wgmma_64x128x64_s8_k32_p8"
  StorePath store;        ///< Hopper kernels; sums of slices: staged from clusters, else direct
  EpilogueSource source = EpilogueSource::none;
  AlignedCopies copies{};
  GemmWorkspace workspace;
  bool can_fuse_dbias = false;           ///< the kernel can store subtile sums
  std::optional<DbiasPlan> dbias{};      ///< for the workspace of the request
  const GemmKernel *fallback = nullptr;  ///< for misaligned items behind pointers; else NULL
  double predicted_us;
  PlanCost cost{};
  int32_t num_sms = 0;  ///< SMs for which gemv chooses its partial sums

  // Better plans that the request rules out; 0 = not evaluated.
  size_t best_workspace_bytes = 0;  ///< workspace of the fastest plan
  double best_us = 0;               ///< time of the fastest plan
  double mapped_us = 0;             ///< if TMA could store D
  double aligned_us = 0;            ///< if A and B lacked the property that slow_path_reason names

  /// Returns the number of partial sums of D in workspace, which a second kernel adds; 1 = none.
  /// For example, "_k32_p8" has 32 slices of k, in clusters of 8 blocks: 4 partial sums.
  int32_t num_partials() const { return split_k / parts; }
};

struct PlanRequest {
  const Device &device;
  const GemmTuning &tuning;
  size_t workspace_bytes = SIZE_MAX;  ///< limit
};

/// An entry of a ranking.
struct RankedGemm {
  const GemmVariant *variant;
  bool reads_copies;  ///< aligned copies of A and B
  float predicted_us;
  size_t workspace_bytes;
  const char *name;
};

/// Returns every variant that can run `shape`, fastest first, whatever workspace it needs; never
/// empty.
std::vector<RankedGemm> rank_gemm(const GemmShape &, const PlanRequest &);

/// Returns the plans of the first entries of rank_gemm within the workspace of the request.
std::vector<GemmPlan> fastest_gemm_plans(const GemmShape &, const PlanRequest &, int32_t max_count);

/// Returns the fastest plan within the workspace of the request.
/// @param measured  kernel to use instead, if it can run within the workspace; or NULL.  The plan
///                  keeps the predicted times of better plans, which advice in the log names.
GemmPlan plan_gemm(const GemmShape &, const PlanRequest &, const char *measured = nullptr);
GemmPlan plan_gemm(const RaggedShape &, const PlanRequest &);

/// Makes the plan of a named kernel whatever workspace it needs.
/// @return false if the kernel cannot run the shape, and the reason in *why, e.g. "requires sm_90";
///         NULL if the name is unknown
bool plan_named_gemm(const GemmShape &, const PlanRequest &, const char *name, GemmPlan *plan,
                     const char **why);
bool plan_named_gemm(const RaggedShape &, const PlanRequest &, const char *name, GemmPlan *plan,
                     const char **why);

/// Makes the fastest plan that runs a whole group in one launch within the workspace of the
/// request.
/// @param kernel  NULL = any
/// @return false if no kernel can
bool plan_gemm_grouped(const GemmGroup &, const PlanRequest &, const char *kernel, GemmPlan *plan);

/// Returns the best plan within the workspace of the request whose bits do not depend on the number
/// of rows; gemv and thin kernels are excluded.
GemmPlan plan_for_any_rows(const GemmShape &, const PlanRequest &);
/// Returns a plan with the kernel of `planned` for another row count or alignment, or the best plan
/// if that kernel cannot run the problem.
GemmPlan adapt_plan(const GemmShape &, const GemmPlan &planned, const PlanRequest &);

/// All kernel names, in the order of the table.
std::span<const char *const> gemm_names();

// ---------------------------------------------------------------------------- for people

/// A term of a predicted time.
struct CostPart {
  const char *name;
  double us;
};
/// Returns the terms of predicted_us: of tiles and traffic, which overlap, the longer one counts.
std::vector<CostPart> cost_parts(const GemmPlan &, const Device &, const GemmTuning &);
/// Returns "tma", "direct", "staged", or "general" for kernels before Hopper.
const char *store_path_name(const GemmPlan &);
/// Returns "none" for NULL.
const char *name_of(const GemmKernel *);

// ---------------------------------------------------------------------------- workspace

/// Returns the workspace with which dbias of an epilogue that is not yet known is fastest.
size_t dbias_workspace_bytes(const OutputShape &, const GemmPlan &);
/// Returns the workspace of the plan and, if `out` has a dbias, of dbias.
size_t best_workspace_bytes(const OutputShape &, const GemmPlan &);

/// Plans column sums of a matrix that no kernel of this call has computed.
DbiasPlan plan_column_sum(const OutputShape &x, size_t workspace_bytes);
/// Returns the workspace of mp_column_sum.
size_t column_sum_bytes(const OutputShape &x);

}  // namespace mp
