// dbias[col] = sum of D over rows and batch items, in fp32 and a fixed order.
//
// A block owns 64 columns: 8 lanes across, in runs of 8, and 32 thread rows down that take every
// 32nd row of D; their sums are then added in order.
#include "kernels/gemm/gemm.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kRunsAcross = 8;
constexpr int kColumns = kRunsAcross * kVec;
constexpr int kRowsDown = kThreads / kRunsAcross;

MP_DEVICE void add_rows(const Output &out, int64_t first_row, int64_t col, int valid,
                        float (&sum)[kVec]) {
  for (int64_t item = 0; item < out.batch_count; item++) {
    const void *const d = item_address(out.d, out.dtype, item);
    for (int64_t row = first_row; row < out.m; row += kRowsDown) {
      float x[kVec];
      load_run(x, out.dtype, d, row * out.d.ld + col, valid);
      MP_UNROLL
      for (int i = 0; i < kVec; i++) sum[i] += x[i];
    }
  }
}

MP_KERNEL(kThreads, 1)
column_sum(MP_PARAM(Output) out) {
  MP_SHARED(float, sums, [kRowsDown][kColumns]);
  const int run = thread_index() % kRunsAcross, down = thread_index() / kRunsAcross;
  const int64_t col0 = block_index() * kColumns;
  const int64_t col = col0 + run * kVec;
  const int valid =
      static_cast<int>(min_of<int64_t>(max_of<int64_t>(out.n - col, 0), int64_t{kVec}));
  float sum[kVec] = {};
  if (valid > 0) add_rows(out, down, col, valid, sum);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) sums[down][run * kVec + i] = sum[i];
  block_sync();
  if (thread_index() >= kColumns || col0 + thread_index() >= out.n) return;
  float total = 0.0f;
  for (int i = 0; i < kRowsDown; i++) total += sums[i][thread_index()];
  out.epilogue.dbias[col0 + thread_index()] = total;
}

}  // namespace

void launch_column_sum(const Device &device, const Output &out, mp_stream_t stream) {
  const int64_t blocks = ceil_div<int64_t>(out.n, kColumns);
  launch("column_sum", column_sum, device, {blocks, kThreads}, stream, out);
}

}  // namespace mp::MP_TARGET
