// dbias[col] = sum of D over rows and batch items, in fp32 and a fixed order: in chunks of rows, whose sums
// wait in workspace for a second pass, or all at once where there is no room for them.
#include "kernels/gemm/gemm.h"
#include "kernels/simt/columns.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = ColumnPartition::kThreads;
constexpr int kRowsAtOnce = 4;

struct ColumnSumArgs {
  Output out;
  ColumnPartition partition;
  float *sums;  ///< [chunk][column]; of the only chunk, dbias itself
};

/// Adds rows first, first + rows.stride... below `end` of one batch item.
template <class T>
MP_DEVICE void add_rows(const Output &out, int64_t item, const RowsOfThread &rows, int64_t first,
                        int64_t end, float (&sum)[kVec]) {
  const T *const d = static_cast<const T *>(item_address(out.d, out.dtype, item)) + rows.column;
  for (int64_t row = first; row < end; row += kRowsAtOnce * rows.stride) {
    float x[kRowsAtOnce][kVec];
    load_rows(x, d + row * out.d.ld, rows.stride * out.d.ld, rows.stride, end - row, rows.valid);
    MP_UNROLL
    for (int r = 0; r < kRowsAtOnce; r++) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) sum[i] += x[r][i];
    }
  }
}

/// Rows are counted through all batch items; a part may have rows of several.
template <class T>
MP_DEVICE void add_items(const Output &out, const RowsOfThread &rows, int64_t end,
                         float (&sum)[kVec]) {
  for (int64_t row = rows.first; row < end;) {
    const int64_t item = row / out.m, begin = item * out.m;
    const int64_t end_of_item = min_of(begin + out.m, end);
    add_rows<T>(out, item, rows, row - begin, end_of_item - begin, sum);
    row += ceil_div(end_of_item - row, rows.stride) * rows.stride;
  }
}

MP_KERNEL(kThreads, 2)
column_sum(MP_PARAM(ColumnSumArgs) args) {
  const Output &out = args.out;
  for_each_part(args.partition, out.m * out.batch_count, [&](const Part &part) {
    const RowsOfThread rows = rows_of_thread(args.partition, out.n, part);
    float sum[kVec] = {};
    if (rows.valid > 0)
      with_type(out.dtype, [&](auto type) {
        add_items<typename decltype(type)::type>(out, rows, part.end, sum);
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

}  // namespace

void launch_column_sum(const Device &device, const Output &out, const Workspace &workspace,
                       mp_stream_t stream) {
  ColumnSumArgs args{out, dbias_partition(out, workspace.bytes), out.epilogue.dbias};
  const bool in_chunks = args.partition.chunks > 1;
  if (in_chunks) args.sums = static_cast<float *>(workspace.ptr);
  launch_parts("column_sum", column_sum, device, args, stream);
  if (in_chunks)
    launch_combine("column_sum_chunks", column_sum_chunks, device, out.n, args, stream);
}

}  // namespace mp::MP_TARGET
