// Plan of dbias, the column sums of D.  Pure: selection computes its cost, launches its addresses.
//
// Rows are summed in groups of 16 (kSubtileRows) from the start of each matrix, the group sums in
// chunks of a ColumnPartition, and finally the chunks.  A kernel that stores subtiles of 16 rows
// (wgmma_tma_store.h) writes the group sums to the workspace if there is room.  Otherwise a pass
// over D computes them.  The order of additions is the same, so both give equal bits.
#pragma once

#include <optional>

#include "base/column_partition.h"
#include "kernels/gemm/problem.h"
#include "kernels/gemm/wgmma_store.h"

namespace mp {

/// Partial column sums over 16 rows each: a matrix with separate rows for each batch item.
struct ColumnPartials {
  float *base;  ///< NULL if the pass over D computes them
  int64_t ld;
  int64_t rows_per_item;
};

struct DbiasPlan {
  ColumnPartition partition;  ///< partition of the partial column sums
  ColumnPartials subtiles;    ///< partial column sums; base is not set
  bool in_epilogue;           ///< the GEMM kernel stores the partial column sums
  size_t partials_at, chunks_at;
  size_t partial_bytes;
  size_t bytes;  ///< total workspace; includes the GEMM's own if in_epilogue
};

/// Returns whether the kernel of `choice` can store partial column sums.
bool can_fuse_dbias(const Output &, const GemmPlan &choice);

/// @param fuses_dbias    result of can_fuse_dbias
/// @param product_bytes  workspace of the GEMM itself, which precedes the partial column sums
DbiasPlan plan_dbias(const Output &, bool fuses_dbias, size_t product_bytes,
                     size_t workspace_bytes);
inline DbiasPlan plan_dbias(const Output &out, const GemmPlan &choice, size_t workspace_bytes) {
  return plan_dbias(out, can_fuse_dbias(out, choice), choice.workspace_bytes, workspace_bytes);
}
/// Returns the plan, or nullopt if `out` has no dbias.
inline std::optional<DbiasPlan> dbias_of(const Output &out, const GemmPlan &choice,
                                         size_t workspace_bytes) {
  if (out.epilogue.dbias == nullptr) return std::nullopt;
  return plan_dbias(out, choice, workspace_bytes);
}

/// Returns the preferred workspace of `choice`, including dbias if `out` has one.
size_t best_workspace_bytes(const Output &out, const GemmPlan &choice);

}  // namespace mp
