// mp_column_sum, and dbias[col] = sum of D over rows and batch items: fp32, in the order of
// DbiasPlan (plan.h).
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/simt/columns.h"

namespace mp::MP_TARGET {

namespace {

[[maybe_unused]] constexpr int kThreads = ColumnPartition::kThreads;
constexpr int kRowsAtOnce = 4;
static_assert(kSubtileRows % kRowsAtOnce == 0);

struct ColumnSumArgs {
  Output out;
  ColumnPartition partition;
  ColumnPartials subtiles;
  float *sums;  ///< [chunk][column]; dbias itself if there is a single chunk
};

/// Sums 16 rows of D and adds the result to `sum`.
template <class T>
MP_DEVICE void add_subtile(const ColumnSumArgs &args, int64_t subtile, const RowsOfThread &rows,
                           float (&sum)[kVec]) {
  const Output &out = args.out;
  const int64_t item = subtile / args.subtiles.rows_per_item;
  const int64_t row = (subtile - item * args.subtiles.rows_per_item) * kSubtileRows;
  const T *const d =
      static_cast<const T *>(item_address(out.d, out.dtype, item)) + row * out.d.ld + rows.column;
  float of_subtile[kVec] = {};
  MP_NO_UNROLL
  for (int first = 0; first < kSubtileRows; first += kRowsAtOnce) {
    float x[kRowsAtOnce][kVec];
    load_rows(x, d + first * out.d.ld, out.d.ld, 1, out.m - row - first, rows.valid);
    add_rows(of_subtile, x);
  }
  unroll<kVec>([&](int i) { sum[i] += of_subtile[i]; });
}

/// Adds partial column sums that the GEMM kernel stored.
MP_DEVICE void add_column_partials(const ColumnPartials &subtiles, const RowsOfThread &rows,
                                   int64_t end, float (&sum)[kVec]) {
  for (int64_t row = rows.first; row < end; row += kRowsAtOnce * rows.stride) {
    float x[kRowsAtOnce][kVec];
    load_rows(x, subtiles.base + row * subtiles.ld + rows.column, rows.stride * subtiles.ld,
              rows.stride, end - row, rows.valid);
    add_rows(sum, x);
  }
}

MP_KERNEL(kThreads, 2)
column_sum(MP_PARAM(ColumnSumArgs) args) {
  const Output &out = args.out;
  for_each_part(
      args.partition, args.subtiles.rows_per_item * out.batch_count, [&](const Part &part) {
        const RowsOfThread rows = rows_of_thread(args.partition, out.n, part);
        float sum[kVec] = {};
        if (rows.valid > 0 && args.subtiles.base != nullptr)
          add_column_partials(args.subtiles, rows, part.end, sum);
        else if (rows.valid > 0)
          with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
            for (int64_t subtile = rows.first; subtile < part.end; subtile += rows.stride)
              add_subtile<T>(args, subtile, rows, sum);
          });
        combine_rows(sum, args.partition, out.n, part.tile, [&](int64_t column, float total) {
          args.sums[part.chunk * out.n + column] = total;
        });
      });
}

MP_KERNEL(kThreads, 1)
column_sum_chunks(MP_PARAM(ColumnSumArgs) args) {
  const int64_t n = args.out.n;
  combine_chunks<float>(
      args.partition.chunks, n,
      [&](int64_t chunk, int64_t column) { return args.sums[chunk * n + column]; },
      [&](int64_t column, float total) { args.out.epilogue.dbias[column] = total; });
}

struct ColumnTotalsArgs {
  Output sums;  ///< one row
  int64_t chunks;
  const float *of_chunks;  ///< [chunk][column]
};

MP_KERNEL(kThreads, 1)
column_totals(MP_PARAM(ColumnTotalsArgs) args) {
  wait_for_previous_kernel();  // EpilogueWriter reads *scale
  const int64_t n = args.sums.n;
  EpilogueWriter writer(args.sums, 0);
  combine_chunks<float>(
      args.chunks, n,
      [&](int64_t chunk, int64_t column) { return args.of_chunks[chunk * n + column]; },
      [&](int64_t column, float total) {
        float sum[1] = {total};
        writer.write(0, column, sum, 1);
      });
  if (warp_index() == 0) writer.finish();
}

}  // namespace

ColumnPartials column_partials(const std::optional<DbiasPlan> &plan, void *workspace) {
  if (!plan) return {};
  ColumnPartials subtiles = plan->subtiles;
  if (plan->in_epilogue)
    subtiles.base =
        reinterpret_cast<float *>(static_cast<std::byte *>(workspace) + plan->partials_at);
  return subtiles;
}

void launch_column_sum(const Device &device, const Output &out, const DbiasPlan &plan,
                       void *workspace, mp_stream_t stream) {
  ColumnSumArgs args{out, plan.partition, column_partials(plan, workspace), out.epilogue.dbias};
  const bool in_chunks = args.partition.chunks > 1;
  if (in_chunks)
    args.sums = reinterpret_cast<float *>(static_cast<std::byte *>(workspace) + plan.chunks_at);
  launch_parts("column_sum", column_sum, device, args, stream);
  if (in_chunks)
    launch_combine("column_sum_chunks", column_sum_chunks, device, out.n, args, stream);
}

void sum_columns(const Device &device, const Output &x, const Output &sums, void *workspace,
                 mp_stream_t stream) {
  const DbiasPlan plan = plan_column_sum(shape_of(x), SIZE_MAX);
  float *const of_chunks = static_cast<float *>(workspace);
  if (x.m > 0)
    launch_parts("column_sum", column_sum, device,
                 ColumnSumArgs{x, plan.partition, plan.subtiles, of_chunks}, stream);
  launch_combine("column_totals", column_totals, device, sums.n,
                 ColumnTotalsArgs{sums, plan.partition.chunks, of_chunks}, stream);
}

}  // namespace mp::MP_TARGET
