#include "kernels/gemm/dbias.h"

#include <algorithm>

#include "kernels/gemm/select.h"
#include "kernels/gemm/workspace.h"

namespace mp {

namespace {

/// Partitions the rows into enough parts for a large GPU, but into one chunk if there is no room
/// for the sums of several.
ColumnPartition partition_of(int64_t rows, int64_t columns, size_t room_bytes) {
  constexpr int64_t kParts = 1024, kRowsPerThread = 1;
  const ColumnPartition whole(rows, columns, 1, kRowsPerThread);
  const int64_t room = static_cast<int64_t>(room_bytes / sizeof(float)) / columns;
  const int64_t most = std::min({ColumnPartition::kMaxChunks, kParts / whole.tiles, room});
  return most > 1 ? ColumnPartition(rows, columns, most, kRowsPerThread) : whole;
}

size_t chunk_bytes(const ColumnPartition &partition, int64_t columns) {
  return partition.chunks > 1 ? static_cast<size_t>(partition.chunks * columns) * sizeof(float) : 0;
}

}  // namespace

bool can_fuse_dbias(const Output &out, const GemmPlan &choice) {
  return choice.fuses_dbias && out.d.items == nullptr && wgmma_store_path(out) == StorePath::tma;
}

DbiasPlan plan_dbias(const Output &out, bool fuses_dbias, size_t product_bytes,
                     size_t workspace_bytes) {
  const ColumnPartials subtiles{nullptr, (out.n + 7) / 8 * 8,
                                (out.m + kSubtileRows - 1) / kSubtileRows};
  const int64_t rows = subtiles.rows_per_item * out.batch_count;

  if (fuses_dbias) {
    DbiasPlan plan{partition_of(rows, out.n, SIZE_MAX), subtiles, true, 0, 0, 0, 0};
    WorkspaceLayout layout;
    (void)layout.add(product_bytes);
    plan.partial_bytes = static_cast<size_t>(rows * subtiles.ld) * sizeof(float);
    plan.partials_at = layout.add(plan.partial_bytes);
    plan.chunks_at = layout.add(chunk_bytes(plan.partition, out.n));
    plan.bytes = layout.size();
    if (plan.bytes <= workspace_bytes) return plan;
  }
  // A pass over D can reuse the workspace of the GEMM, which has finished.
  const ColumnPartition partition = partition_of(rows, out.n, workspace_bytes);
  return {partition, subtiles, false, 0, 0, 0, chunk_bytes(partition, out.n)};
}

size_t dbias_workspace_bytes(const Output &out, const GemmPlan &choice) {
  // The workspace query does not include the epilogue, so partial column sums of a large D, an
  // eighth of its size, are not requested.
  constexpr size_t kMaxPartialBytes = size_t{32} << 20;
  const DbiasPlan plan = plan_dbias(out, choice, SIZE_MAX);
  if (plan.partial_bytes <= kMaxPartialBytes) return plan.bytes;
  return plan_dbias(out, false, choice.workspace_bytes, SIZE_MAX).bytes;
}

size_t column_sum_bytes(const Output &x) {
  const DbiasPlan plan = plan_dbias(x, false, 0, SIZE_MAX);
  return static_cast<size_t>(plan.partition.chunks * x.n) * sizeof(float);
}

size_t best_workspace_bytes(const Output &out, const GemmPlan &choice) {
  if (out.epilogue.dbias == nullptr) return choice.workspace_bytes;
  return std::max(choice.workspace_bytes, dbias_workspace_bytes(out, choice));
}

}  // namespace mp
