// Kernels over the rows of all steps: gather into a dense matrix, sum over gates, and bias
// gradients from the column sums of slots.
#include "kernels/rnn/step.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

/// Step, sequence and part of a row of a range.
struct RangeCoord {
  int32_t step;  ///< relative to the first step of the range
  int64_t n, part;

  MP_DEVICE RangeCoord(const StepRange &range, int64_t row) {
    const int64_t sequence = row / range.parts;
    part = row - sequence * range.parts;
    step = static_cast<int32_t>(sequence / range.count);
    n = sequence - step * range.count;
  }
};

/// Returns the tensor of the row to copy and its offset; NULL = zeros.
MP_DEVICE const void *source_of(const GatherRows &args, const RangeCoord &place, int64_t *row_at) {
  const int32_t t = args.range.t + place.step;
  *row_at = 0;
  if (!args.order.has(place.n, t)) return nullptr;
  if (args.before && (place.n >= args.count_before || args.order.is_first(place.n, t))) {
    *row_at = place.n * args.columns;
    return args.initial;
  }
  *row_at = place.step * args.from_step + place.n * args.from_row + place.part * args.columns;
  return args.from;
}

MP_KERNEL(kRnnThreads, 1)
rnn_gather_rows(MP_PARAM(GatherRows) args) {
  wait_for_previous_kernel();
  const int64_t rows = args.range.steps * args.range.count * args.range.parts;
  for_each_row_run(rows, args.columns, [&](int64_t row, int64_t column, int valid) {
    const RangeCoord place(args.range, row);
    int64_t at;
    const void *const from = source_of(args, place, &at);
    float x[kVec] = {};
    if (from != nullptr) load_vector(x, args.dtype, from, at + column, valid);
    args.dropout.apply(x, args.range.t + place.step, place.n, place.part, column);
    store_vector(args.dtype, args.to, row * args.columns + column, x, valid);
  });
}

MP_KERNEL(kRnnThreads, 1)
rnn_sum_gates(MP_PARAM(SumGates) args) {
  wait_for_previous_kernel();
  AmaxTracker watch(args.found_inf, nullptr);
  const int64_t rows = args.range.steps * args.range.count;
  for_each_row_run(rows, args.hidden, [&](int64_t row, int64_t unit, int valid) {
    const RangeCoord place(args.range, row);
    float sum[kVec] = {};
    for (int64_t i = 0; i < args.summands; i++) {
      float x[kVec];
      load_vector(x, args.dtype, args.slots, row * args.ld_slots + i * args.hidden + unit, valid);
      unroll<kVec>([&](int j) { sum[j] += x[j]; });
    }
    store_vector(args.dtype, args.dx, place.step * args.dx_step + place.n * args.dx_row + unit, sum,
                 valid);
    watch.see(args.dtype, sum, valid);
  });
  watch.finish();
}

}  // namespace

void launch_gather_rows(const Device &device, const GatherRows &args, mp_stream_t stream) {
  launch_row_runs("rnn_gather_rows", rnn_gather_rows, device,
                  args.range.steps * args.range.count * args.range.parts, args.columns,
                  kBlocksOfAllRows, args, stream);
}

void launch_sum_gates(const Device &device, const SumGates &args, mp_stream_t stream) {
  launch_row_runs("rnn_sum_gates", rnn_sum_gates, device, args.range.steps * args.range.count,
                  args.hidden, kBlocksOfAllRows, args, stream);
}

// ---------------------------------------------------------------------------- bias gradients

namespace {

MP_DEVICE void put(const BiasGrads &args, float *to, float sum, AmaxTracker &watch) {
  if (to == nullptr) return;
  *to = args.accumulate ? *to + sum : sum;
  watch.see<float>(*to);
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
