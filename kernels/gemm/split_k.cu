// Behind a split main loop: add the slices in order and apply the epilogue.
//
// Every element of D is summed in one order, whatever order the slices were computed in: bitwise reproducible.
// Few slices one thread adds up, 0, 1, 2...  Many are dealt to the warps of a block, so that most of their loads are
// under way together; a warp's share are neighbours, and the sums of the shares are added in their order.
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/partial_sums.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;
constexpr int kSlicesAtOnce = 8;  // whose loads are in flight together

struct SplitKArgs {
  Output out;
  int32_t split_k;
  int32_t shares;  ///< 1, or kWarps: what the slices of an element are dealt to
  const float *partial_sums;
  int64_t blocks_per_item;
  const uint32_t *skip_if;
};

/// Of the slices first .. end.
MP_DEVICE void sum_slices(const SplitKArgs &args, int first, int end, int64_t item, int64_t row,
                          int64_t col, int valid, float (&sum)[kQuad]) {
  const Output &out = args.out;
  for (int slice = first; slice < end; slice += kSlicesAtOnce) {
    float parts[kSlicesAtOnce][kQuad];
    load_rows(parts, partial_sum(args.partial_sums, out, slice, item, row, col), slice_elems(out),
              1, end - slice, valid);
    MP_UNROLL
    for (int s = 0; s < kSlicesAtOnce; s++) {
      MP_UNROLL
      for (int i = 0; i < kQuad; i++) sum[i] += parts[s][i];
    }
  }
}

/// Adds the shares of all warps up, in those of the first.
MP_DEVICE void sum_shares(Quad *shares, float (&sum)[kQuad]) {
  shares[thread_index()] = {sum[0], sum[1], sum[2], sum[3]};
  block_sync();
  if (thread_index() < kWarpSize) {
    MP_UNROLL
    for (int w = 1; w < kWarps; w++) {
      const Quad share = shares[w * kWarpSize + thread_index()];
      MP_UNROLL
      for (int i = 0; i < kQuad; i++) sum[i] += share.x[i];
    }
  }
  block_sync();  // before the next ones come
}

MP_KERNEL(kThreads, 2)
split_k_sum(MP_PARAM(SplitKArgs) args) {
  MP_SHARED(Quad, shares, [kThreads]);
  wait_for_previous_kernel();
  if (args.skip_if != nullptr && *args.skip_if != 0) return;
  const Output &out = args.out;
  const int64_t item = block_index() / args.blocks_per_item;
  const int64_t quads_per_row = ceil_div<int64_t>(out.n, kQuad), quads = out.m * quads_per_row;
  const int at_once = kThreads / args.shares, share = thread_index() / at_once;
  const int slices = ceil_div(args.split_k, args.shares);
  EpilogueWriter writer(out, item);
  for (int64_t first = block_index() % args.blocks_per_item * at_once; first < quads;
       first += args.blocks_per_item * at_once) {
    const int64_t quad = first + thread_index() % at_once;
    const int64_t row = quad / quads_per_row, col = quad % quads_per_row * kQuad;
    const int valid = quad < quads ? static_cast<int>(min_of<int64_t>(out.n - col, kQuad)) : 0;
    float sum[kQuad] = {};
    if (valid > 0)
      sum_slices(args, share * slices, min_of((share + 1) * slices, args.split_k), item, row, col,
                 valid, sum);
    if (args.shares > 1) sum_shares(shares, sum);
    if (share == 0 && valid > 0) writer.write(row, col, sum, valid);
  }
  writer.finish();
}

}  // namespace

void launch_split_k_sum(const Device &device, const Output &out, int32_t split_k,
                        const float *partial_sums, mp_stream_t stream, const uint32_t *skip_if) {
  const int32_t shares = split_k > kSlicesAtOnce ? kWarps : 1;
  const int64_t quads = out.m * ceil_div<int64_t>(out.n, kQuad);
  const int64_t most = max_of<int64_t>(kMaxBlocks / out.batch_count, 1);
  const SplitKArgs args{out,
                        split_k,
                        shares,
                        partial_sums,
                        min_of(ceil_div<int64_t>(quads, kThreads / shares), most),
                        skip_if};
  launch("split_k_sum", split_k_sum, device,
         {.num_blocks = args.blocks_per_item * out.batch_count,
          .num_threads = kThreads,
          .starts_early = true},
         stream, args);
}

}  // namespace mp::MP_TARGET
