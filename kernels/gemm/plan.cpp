// Parts of a plan that depend on the shape alone: copies, dbias, workspace, store path.
#include "kernels/gemm/plan.h"

#include <algorithm>

#include "base/workspace_layout.h"
#include "kernels/gemm/select.h"

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
  if (!is_half(s.dtype_ab) || s.k == 0 || s.out.items == ItemAccess::pointers || !is_aligned(s) ||
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

GemmWorkspace gemm_workspace(const GemmKernel &kernel, const OutputShape &out, int num_partials,
                             const AlignedCopies &copies) {
  const size_t sums = num_partials > 1 ? sizeof(float) * static_cast<size_t>(num_partials) *
                                             static_cast<size_t>(out.batch_count) *
                                             static_cast<size_t>(out.m) * static_cast<size_t>(out.n)
                                       : 0;
  if (kernel.family != GemmFamily::wgmma) return {0, copies.bytes(), copies.bytes() + sums};
  const bool has_table = out.items != ItemAccess::strided;
  WorkspaceLayout layout;
  (void)layout.add(copies.bytes());
  GemmWorkspace w{};
  w.table = layout.add(has_table ? wgmma_table_bytes(out.batch_count) : 0);
  w.partial_sums = layout.add(sums);
  w.bytes = layout.size();
  return w;
}

// ---------------------------------------------------------------------------- store paths

namespace {

/// Returns whether TMA can store `cols` columns of a matrix of the size of D.
bool has_map(const OutputShape &out, const MatrixLayout &x, int64_t cols) {
  const TensorMapSpec spec = wgmma_matrix_spec({nullptr, nullptr, x.ld, x.stride}, out.dtype, out.m,
                                               cols, out.batch_count, kSubtileRows);
  return x.alignment == 16 && why_no_tensor_layout(spec) == nullptr;
}

/// D lacks some columns of the product: padding of the taps of wgrad.
bool has_column_gaps(const OutputShape &out) {
  return out.d.ld < out.n;
}

}  // namespace

bool is_fast_store(const OutputShape &out) {
  const EpilogueShape &e = out.epilogue;
  return is_fast_store(has_column_gaps(out) || out.n % 8 == 0, epilogue_source(out), e.activation,
                       e.has_amax || e.has_found_inf, e.has_dbias);
}

bool can_store_directly(const OutputShape &out) {
  const auto is_aligned = [](const MatrixLayout &x) {
    return has_aligned_pairs(static_cast<uintptr_t>(x.alignment), x.ld | x.stride);
  };
  return out.n % 2 == 0 && is_aligned(out.d) && (!out.reads_c || is_aligned(out.c));
}

EpilogueSource epilogue_source(const OutputShape &out) {
  const EpilogueShape &e = out.epilogue;
  if (out.reads_c) return e.has_aux ? EpilogueSource::several : EpilogueSource::c;
  if (!e.has_aux) return EpilogueSource::none;
  return reads_aux(e.activation) ? EpilogueSource::aux_read : EpilogueSource::aux_written;
}

StorePath store_path_with(const OutputShape &out, bool has_maps) {
  const EpilogueShape &e = out.epilogue;
  if (out.dtype == MP_FP32) {
    const bool is_linear = !e.has_bias && !e.has_aux && e.activation == MP_ACT_NONE;
    return is_linear ? StorePath::direct : StorePath::staged;
  }
  // A subtile also contains the columns that D lacks.
  const bool reads_gaps = has_column_gaps(out) && (e.has_bias || e.has_amax || e.has_found_inf);
  return has_maps && !reads_gaps ? StorePath::tma : StorePath::staged;
}

StorePath wgmma_store_path(const OutputShape &out) {
  const EpilogueSource source = epilogue_source(out);
  const MatrixLayout &beside = source == EpilogueSource::c ? out.c : out.epilogue.aux;
  // Only a batch with strides has a map of C or aux.
  const bool has_source = source == EpilogueSource::none ||
                          (source != EpilogueSource::several && out.items == ItemAccess::strided &&
                           has_map(out, beside, out.n));
  return store_path_with(out, has_source && has_map(out, out.d, std::min(out.n, out.d.ld)));
}

StorePath wgmma_store_path(const GemmGroup &group) {
  const OutputShape common = shape_of(group.common.out);
  bool have_maps = epilogue_source(common) == EpilogueSource::none;
  for (int64_t i = 0; have_maps && i < group.count; i++) {
    const OutputShape out = shape_of(item_problem(group, group.items[i]).out);
    have_maps = has_map(out, out.d, out.n);
  }
  return store_path_with(common, have_maps);
}

OutputShape aligned_for_tma_store(OutputShape out) {
  for (MatrixLayout *const x : {&out.c, &out.d, &out.epilogue.aux}) {
    x->alignment = 16;
    x->ld = align_up(x->ld, 8);
    x->stride = align_up(x->stride, 8);
  }
  return out;
}

OutputShape split_k_output(const OutputShape &out) {
  OutputShape sums{};
  sums.m = out.m;
  sums.n = out.n;
  sums.batch_count = out.batch_count;
  sums.dtype = MP_FP32;
  sums.d = {.ld = out.n, .stride = out.batch_count > 1 ? out.m * out.n : 0};
  return sums;
}

// ---------------------------------------------------------------------------- tensor maps

TensorMapSpec wgmma_matrix_spec(const Operand &x, mp_dtype_t dtype, int64_t rows, int64_t cols,
                                int64_t batch_count, int box_rows) {
  return {.base = x.base,
          .dtype = dtype,
          // A matrix that all items share is one item.
          .extent = {cols, rows, x.stride != 0 ? batch_count : 1},
          .stride = {x.ld, x.stride},
          .box = {64, box_rows},
          .swizzle_128 = true};
}

TensorMapSpec wgmma_subtile_spec(const Output &out, const Operand &x) {
  return wgmma_matrix_spec(x, out.dtype, out.m, out.n, out.batch_count, kSubtileRows);
}

Operand wgmma_source_operand(const Output &out) {
  const Epilogue &e = out.epilogue;
  return e.aux == nullptr ? out.c : Operand{e.aux, nullptr, e.ld_aux, e.stride_aux};
}

}  // namespace mp
