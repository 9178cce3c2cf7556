// Behind a split main loop: add the slices in order and apply the epilogue.
//
// Every element of D is summed by one thread over slices 0, 1, 2..., whatever order they were
// computed in: bitwise reproducible.
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/partial_sums.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kSlicesAtOnce = 4;  // whose loads are in flight together

struct SplitKArgs {
  Output out;
  int32_t split_k;
  const float *partial_sums;
  int64_t blocks_per_item;
};

MP_DEVICE void sum_slices(const SplitKArgs &args, int64_t item, int64_t row, int64_t col, int valid,
                          float (&sum)[kQuad]) {
  const Output &out = args.out;
  MP_UNROLL
  for (int i = 0; i < kQuad; i++) sum[i] = 0.0f;
  for (int slice = 0; slice < args.split_k; slice += kSlicesAtOnce) {
    float parts[kSlicesAtOnce][kQuad];
    load_rows(parts, partial_sum(args.partial_sums, out, slice, item, row, col), slice_elems(out),
              1, args.split_k - slice, valid);
    MP_UNROLL
    for (int s = 0; s < kSlicesAtOnce; s++) {
      MP_UNROLL
      for (int i = 0; i < kQuad; i++) sum[i] += parts[s][i];
    }
  }
}

MP_KERNEL(kThreads, 4)
split_k_sum(MP_PARAM(SplitKArgs) args) {
  wait_for_previous_kernel();
  const Output &out = args.out;
  const int64_t item = block_index() / args.blocks_per_item;
  const int64_t quads_per_row = ceil_div<int64_t>(out.n, kQuad);
  const int64_t step = args.blocks_per_item * kThreads;
  EpilogueWriter writer(out, item);
  for (int64_t quad = block_index() % args.blocks_per_item * kThreads + thread_index();
       quad < out.m * quads_per_row; quad += step) {
    const int64_t row = quad / quads_per_row, col = quad % quads_per_row * kQuad;
    const int valid = static_cast<int>(min_of<int64_t>(out.n - col, kQuad));
    float sum[kQuad];
    sum_slices(args, item, row, col, valid, sum);
    writer.write(row, col, sum, valid);
  }
  writer.finish();
}

}  // namespace

void launch_split_k_sum(const Device &device, const Output &out, int32_t split_k,
                        const float *partial_sums, mp_stream_t stream) {
  const int64_t quads = out.m * ceil_div<int64_t>(out.n, kQuad);
  const int64_t most = max_of<int64_t>(kMaxBlocks / out.batch_count, 1);
  const SplitKArgs args{out, split_k, partial_sums,
                        min_of(ceil_div<int64_t>(quads, kThreads), most)};
  launch("split_k_sum", split_k_sum, device,
         {.num_blocks = args.blocks_per_item * out.batch_count,
          .num_threads = kThreads,
          .starts_early = true},
         stream, args);
}

}  // namespace mp::MP_TARGET
