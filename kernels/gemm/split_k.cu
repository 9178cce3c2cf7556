// Sum of the slices after a split main loop, and the epilogue.
//
// Every element of D is summed in a fixed order, whatever the order in which slices were computed:
// results are bitwise reproducible.  Up to eight slices are added by one thread, in the order 0, 1,
// 2..., with all loads in flight together.  More slices are divided into ranges of neighboring
// slices, each of which has one thread per element; the sums of the ranges are added in order.
#include <bit>

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/simt/device.h"
#include "kernels/simt/fast_math.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kLog2MaxRanges = 3;  // a warp has slices of one range
static_assert(kWarpSize << kLog2MaxRanges == kThreads);
constexpr int kSlicesAtOnce = 8;  // slices whose loads are in flight together
/// Three times the number of concurrent blocks, so that less work is left for the last ones.
constexpr int kBlocksPerSm = 9;

struct SplitKArgs {
  Output out;
  int32_t split_k;
  int32_t log2_ranges;  ///< log2 of the number of ranges
  const float *partial_sums;
  int64_t elems_per_partial;
  FastDivisor blocks;         ///< divides by the blocks of a batch item
  FastDivisor quads_per_row;  ///< divides by the quads of a row, of 4 columns each
  int32_t quads;              ///< quads of a batch item
  const uint32_t *cancel_flag;
};

/// Adds `count` slices, the first of which is at x, to `sum`.
template <int kAtOnce>
MP_DEVICE void add_slices(const SplitKArgs &args, const float *x, int count, int valid,
                          float (&sum)[kQuad]) {
  for (int slice = 0; slice < count; slice += kAtOnce) {
    float parts[kAtOnce][kQuad];
    load_rows(parts, x + slice * args.elems_per_partial, args.elems_per_partial, 1, count - slice,
              valid);
    unroll<kAtOnce, kQuad>([&](int s, int i) { sum[i] += parts[s][i]; });
  }
}

/// Adds the sums of all ranges, in the threads of the first.  A range has `step` threads.
MP_DEVICE void add_ranges(Quad *range_sums, int step, float (&sum)[kQuad]) {
  range_sums[thread_index()] = {sum[0], sum[1], sum[2], sum[3]};
  block_sync();
  if (thread_index() < step) {
    for (int other = thread_index() + step; other < kThreads; other += step) {
      const Quad quad = range_sums[other];
      unroll<kQuad>([&](int i) { sum[i] += quad.x[i]; });
    }
  }
  block_sync();  // before the next sums are stored
}

MP_KERNEL(kThreads, 3)
split_k_sum(MP_PARAM(SplitKArgs) args) {
  MP_SHARED(Quad, range_sums, [kThreads]);
  wait_for_previous_kernel();
  if (args.cancel_flag != nullptr && *args.cancel_flag != 0) return;
  const Output &out = args.out;
  const Quotient block = args.blocks.divide(static_cast<int32_t>(block_index()));
  const int64_t item = block.quotient;
  const int at_once = kThreads >> args.log2_ranges;
  const int range = thread_index() / kWarpSize >> (kLog2MaxRanges - args.log2_ranges);
  const int slices = ((args.split_k - 1) >> args.log2_ranges) + 1, first_slice = range * slices;
  const int count = min_of(args.split_k - first_slice, slices);
  EpilogueWriter writer(out, item);
  for (int64_t first = int64_t{block.remainder} * at_once; first < args.quads;
       first += int64_t{args.blocks.divisor} * at_once) {
    const int64_t quad = first + thread_index() % at_once;
    const bool is_present = quad < args.quads;
    const Quotient at = args.quads_per_row.divide(is_present ? static_cast<int32_t>(quad) : 0);
    const int64_t row = at.quotient, col = int64_t{at.remainder} * kQuad;
    const int valid = is_present ? static_cast<int>(min_of<int64_t>(out.n - col, kQuad)) : 0;
    float sum[kQuad] = {};
    if (is_present) {
      const float *const x = partial_sum(args.partial_sums, out, first_slice, item, row, col);
      if (count <= 2)
        add_slices<2>(args, x, count, valid, sum);
      else if (count <= 4)
        add_slices<4>(args, x, count, valid, sum);
      else
        add_slices<kSlicesAtOnce>(args, x, count, valid, sum);
    }
    if (args.log2_ranges > 0) add_ranges(range_sums, at_once, sum);
    if (is_present && range == 0) writer.write(row, col, sum, valid);
  }
  writer.finish();
}

}  // namespace

void launch_split_k_sum(const Device &device, const Output &out, int32_t split_k,
                        const float *partial_sums, mp_stream_t stream,
                        const uint32_t *cancel_flag) {
  const int32_t log2_ranges = min_of<int32_t>(
      std::bit_width(static_cast<uint32_t>(split_k - 1) / kSlicesAtOnce), kLog2MaxRanges);
  const int64_t quads_per_row = ceil_div<int64_t>(out.n, kQuad), quads = out.m * quads_per_row;
  const int64_t most = max_of<int64_t>(device.num_sms * kBlocksPerSm / out.batch_count, 1);
  const int64_t blocks_per_item = min_of(ceil_div<int64_t>(quads, kThreads >> log2_ranges), most);
  const SplitKArgs args{out,
                        split_k,
                        log2_ranges,
                        partial_sums,
                        elems_per_partial(out),
                        fast_divisor(blocks_per_item),
                        fast_divisor(quads_per_row),
                        static_cast<int32_t>(quads),
                        cancel_flag};
  launch(
      "split_k_sum", split_k_sum, device,
      {.num_blocks = blocks_per_item * out.batch_count, .num_threads = kThreads, .uses_pdl = true},
      stream, args);
}

}  // namespace mp::MP_TARGET
