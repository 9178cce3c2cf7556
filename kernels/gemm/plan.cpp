// Parts of a plan that depend on the shape alone: copies, dbias, workspace.
#include "kernels/gemm/plan.h"

#include <algorithm>

#include "base/workspace_layout.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/wgmma_store.h"

namespace mp {

// ---------------------------------------------------------------------------- copies

namespace {

AlignedCopy copy_of(const MatrixLayout &x, int64_t rows, int64_t cols, int64_t batch_count) {
  AlignedCopy copy{rows, cols, x.stride != 0 ? batch_count : 1, align_up(cols, 8), 0};
  if ((x.ld | x.stride) % 8 == 0) return copy;
  copy.bytes = static_cast<size_t>(align_up(copy.rows * copy.ld * copy.count * 2, 256));
  return copy;
}

/// Bytes of the copies fit into 63 bits.
bool can_be_counted(const GemmShape &s) {
  constexpr double kMax = 0x1p60;
  const double items = s.out.batch_count, k = static_cast<double>(s.k) + 8;
  return items * k * (static_cast<double>(s.out.m) + 8) < kMax &&
         items * k * (static_cast<double>(s.out.n) + 8) < kMax;
}

MatrixLayout layout_of(const MatrixLayout &x, const AlignedCopy &copy) {
  if (copy.bytes == 0) return x;
  return {.ld = copy.ld, .stride = x.stride != 0 ? copy.rows * copy.ld : 0};
}

}  // namespace

AlignedCopies aligned_copies(const GemmShape &s) {
  if (s.dtype_ab == MP_FP32 || s.k == 0 || s.out.items == ItemAccess::pointers || !is_aligned(s) ||
      !can_be_counted(s))
    return {};
  const bool a_by_k = s.op_a == MP_OP_N, b_by_k = s.op_b == MP_OP_T;
  const int64_t m = s.out.m, n = s.out.n, items = s.out.batch_count;
  return {copy_of(s.a, a_by_k ? m : s.k, a_by_k ? s.k : m, items),
          copy_of(s.b, b_by_k ? n : s.k, b_by_k ? s.k : n, items)};
}

GemmShape with_copies(const GemmShape &shape, const AlignedCopies &copies) {
  GemmShape copied = shape;
  copied.a = layout_of(shape.a, copies.a);
  copied.b = layout_of(shape.b, copies.b);
  return copied;
}

// ---------------------------------------------------------------------------- dbias

namespace {

/// Enough chunks for a large GPU; one chunk if there is no room for the sums of several.
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

DbiasPlan plan_dbias(const OutputShape &out, bool can_fuse, size_t product_bytes,
                     size_t workspace_bytes) {
  const ColumnPartials subtiles{nullptr, align_up(out.n, 8),
                                (out.m + kSubtileRows - 1) / kSubtileRows};
  const int64_t rows = subtiles.rows_per_item * out.batch_count;

  if (can_fuse) {
    DbiasPlan plan{partition_of(rows, out.n, SIZE_MAX), subtiles, true, 0, 0, 0, 0};
    WorkspaceLayout layout;
    (void)layout.add(product_bytes);
    plan.partial_bytes = static_cast<size_t>(rows * subtiles.ld) * sizeof(float);
    plan.partials_at = layout.add(plan.partial_bytes);
    plan.chunks_at = layout.add(chunk_bytes(plan.partition, out.n));
    plan.bytes = layout.size();
    if (plan.bytes <= workspace_bytes) return plan;
  }
  // A pass over D reuses the workspace of the product.
  const ColumnPartition partition = partition_of(rows, out.n, workspace_bytes);
  return {partition, subtiles, false, 0, 0, 0, chunk_bytes(partition, out.n)};
}

DbiasPlan plan_column_sum(const OutputShape &x, size_t workspace_bytes) {
  return plan_dbias(x, false, 0, workspace_bytes);
}

size_t column_sum_bytes(const OutputShape &x) {
  return static_cast<size_t>(plan_column_sum(x, SIZE_MAX).partition.chunks * x.n) * sizeof(float);
}

size_t dbias_workspace_bytes(const OutputShape &out, const GemmPlan &plan) {
  // A workspace query has no epilogue and does not request an eighth of a large D.
  constexpr size_t kMaxPartialBytes = size_t{32} << 20;
  const DbiasPlan dbias = plan_dbias(out, plan.can_fuse_dbias, plan.workspace.bytes, SIZE_MAX);
  if (dbias.partial_bytes <= kMaxPartialBytes) return dbias.bytes;
  return plan_dbias(out, false, plan.workspace.bytes, SIZE_MAX).bytes;
}

size_t best_workspace_bytes(const OutputShape &out, const GemmPlan &plan) {
  if (!out.epilogue.has_dbias) return plan.workspace.bytes;
  return std::max(plan.workspace.bytes, dbias_workspace_bytes(out, plan));
}

// ---------------------------------------------------------------------------- workspace

GemmWorkspace gemm_workspace(const GemmKernel &kernel, const OutputShape &out, int slices,
                             const AlignedCopies &copies) {
  const size_t sums = slices > 1 ? sizeof(float) * static_cast<size_t>(slices) *
                                       static_cast<size_t>(out.batch_count) *
                                       static_cast<size_t>(out.m) * static_cast<size_t>(out.n)
                                 : 0;
  if (kernel.family != GemmFamily::wgmma) return {0, copies.bytes(), copies.bytes() + sums};
  const bool has_table = out.items != ItemAccess::strided;
  WorkspaceLayout layout;
  (void)layout.add(copies.bytes());
  GemmWorkspace w{};
  w.table = layout.add(has_table ? wgmma_table_bytes(out.batch_count) : 0);
  w.slices = layout.add(sums);
  w.bytes = layout.size();
  return w;
}

}  // namespace mp
