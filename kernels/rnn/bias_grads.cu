// Bias gradients, from the column sums of slots over all rows.
#include "kernels/rnn/rows.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

MP_DEVICE void put(const BiasGrads &args, float *to, float sum, AmaxTracker &watch) {
  if (to == nullptr) return;
  *to = args.accumulate ? *to + sum : sum;
  watch.see(MP_FP32, *to);
}

MP_KERNEL(kRnnThreads, 1)
rnn_bias_grads(MP_PARAM(BiasGrads) args) {
  wait_for_previous_kernel();
  AmaxTracker watch(args.found_inf, args.amax);
  const int64_t rows = args.gates * args.hidden, elements = args.directions * rows;
  for (int64_t i = block_index() * kRnnThreads + thread_index(); i < elements;
       i += grid_size() * kRnnThreads) {
    const int64_t direction = i / rows, row = i - direction * rows;
    const int64_t unit_of_n = row - (args.gates - 1) * args.hidden;
    const bool is_apart = args.n_is_apart && unit_of_n >= 0;
    const float sum = args.sums[i];
    const float sum_hh = is_apart ? args.sums[elements + direction * args.hidden + unit_of_n] : sum;
    float *const b_ih = args.b_ih[direction], *const b_hh = args.b_hh[direction];
    put(args, b_ih != nullptr ? b_ih + row : nullptr, sum, watch);
    put(args, b_hh != nullptr ? b_hh + row : nullptr, sum_hh, watch);
  }
  watch.finish();
}

}  // namespace

void launch_bias_grads(const Device &device, const BiasGrads &args, mp_stream_t stream) {
  const int64_t elements = args.directions * args.gates * args.hidden;
  launch("rnn_bias_grads", rnn_bias_grads, device,
         {.num_blocks = min_of(ceil_div<int64_t>(elements, kRnnThreads), kMaxBlocks),
          .num_threads = kRnnThreads,
          .uses_pdl = true},
         stream, args);
}

}  // namespace mp::MP_TARGET
