// How dbias, the column sums of D, comes about.  Pure: selection prices it, the launches find its places.
//
// Rows are summed 16 (kSubtileRows) at a time, counted from the head of each matrix; then these sums, in chunks that a
// ColumnPartition cuts; then the chunks.  A kernel that stores subtiles of 16 rows (wgmma_tma_store.h) leaves
// the first sums in workspace, if there is room; else the pass makes them while it reads D.  The order is
// the same, and so are the bits.
#pragma once

#include <optional>

#include "base/column_partition.h"
#include "kernels/gemm/problem.h"
#include "kernels/gemm/wgmma_store.h"

namespace mp {

/// The sums of 16 rows each: a matrix, of which an item of the batch has rows of its own.
struct ColumnPartials {
  float *base;  ///< NULL where the pass makes them
  int64_t ld;
  int64_t rows_per_item;
};

struct DbiasPlan {
  ColumnPartition partition;  ///< of the sums of 16 rows
  ColumnPartials subtiles;    ///< without their place
  bool in_epilogue;           ///< the kernel leaves them
  size_t partials_at, chunks_at;
  size_t partial_bytes;
  size_t bytes;  ///< of workspace; with in_epilogue what the product needs of it is among them
};

/// Whether the kernel of `choice` can leave the sums of the subtiles that it stores.
bool can_fuse_dbias(const Output &, const GemmPlan &choice);

/// @param fuses_dbias    can_fuse_dbias
/// @param product_bytes  of workspace that the product itself needs: before the sums of subtiles
DbiasPlan plan_dbias(const Output &, bool fuses_dbias, size_t product_bytes,
                     size_t workspace_bytes);
inline DbiasPlan plan_dbias(const Output &out, const GemmPlan &choice, size_t workspace_bytes) {
  return plan_dbias(out, can_fuse_dbias(out, choice), choice.workspace_bytes, workspace_bytes);
}
/// Of an output that may have no dbias.
inline std::optional<DbiasPlan> dbias_of(const Output &out, const GemmPlan &choice,
                                         size_t workspace_bytes) {
  if (out.epilogue.dbias == nullptr) return std::nullopt;
  return plan_dbias(out, choice, workspace_bytes);
}

/// Of the choice and, if `out` has a dbias, of that.
size_t best_workspace_bytes(const Output &out, const GemmPlan &choice);

}  // namespace mp
