// Kernels of a step and of the rows of all steps.
//
// Forward, after the product of h and W_hh: gates, c' and h'.
//
// Backward, before the product of the gates' gradients and W_hh: from dy and the gradients dh and
// dc of the next step, the gradients of the gates (in the slots), and dh and dc for the previous
// step, without the part through W_hh.
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- forward

namespace {

using Access = AnyAccess;

template <int kGates>
MP_DEVICE void load_products(float (&q)[kGates][kVec], const ForwardStep &step, int64_t n,
                             int64_t unit, int valid) {
  unroll<kGates>([&](int g) { load_row<Access>(q[g], step.q, n, g * step.hidden + unit, valid); });
}

template <class Cell>
MP_KERNEL(kRowRunThreads, 1)
rnn_step_forward(MP_PARAM(ForwardStep) step) {
  wait_for_previous_kernel();
  for_each_row_run(step.count, step.hidden, [&](int64_t n, int64_t unit, int valid) {
    float q[Cell::kGates][kVec];
    ForwardInputs<Cell, Access> in;
    load_products(q, step, n, unit, valid);
    in.load(step, n, unit, valid);
    forward_units(step, n, unit, valid, in, q);
  });
}

MP_KERNEL(kRowRunThreads, 1)
rnn_reset_h(MP_PARAM(ForwardStep) step) {
  wait_for_previous_kernel();
  for_each_row_run(step.count, step.hidden, [&](int64_t n, int64_t unit, int valid) {
    GateInputs<1, Access> gates{};
    float q[1][kVec] = {}, h[kVec] = {};
    if (step.order.has(n, step.t)) {
      load_products(q, step, n, unit, valid);
      gates.load(step, n, unit, valid);
      load_vector(h, step.dtype, step.h.base, step.h.at(n, unit), valid);
      gates.finish(step, q);
    }
    unroll<kVec>([&](int i) { h[i] = ResetFirstCell::reset(gates.p[0][i], q[0][i], h[i]); });
    store_vector(step.dtype, step.reset_h.base, step.reset_h.at(n, unit), h, valid);
  });
}

}  // namespace

void launch_step_forward(const Device &device, const ForwardStep &step, mp_stream_t stream) {
  with_cell(step.cell, step.flags, [&](auto cell) {
    launch_row_runs("rnn_step_forward", rnn_step_forward<decltype(cell)>, device, step.count,
                    step.hidden, kBlocksOfStep, step, stream);
  });
}

void launch_reset_h(const Device &device, const ForwardStep &step, mp_stream_t stream) {
  launch_row_runs("rnn_reset_h", rnn_reset_h, device, step.count, step.hidden, kBlocksOfStep, step,
                  stream);
}

// ---------------------------------------------------------------------------- backward

namespace {

template <class Cell>
MP_KERNEL(kRowRunThreads, 1)
rnn_step_backward(MP_PARAM(BackwardStep) step) {
  wait_for_previous_kernel();
  AmaxTracker watch(step.found_inf, nullptr);
  for_each_row_run(step.count, step.hidden, [&](int64_t n, int64_t unit, int valid) {
    const float nothing[kVec] = {};  // dh already includes the product
    BackwardInputs<Cell, Access> in;
    in.load(step, n, unit, valid);
    backward_units(step, n, unit, valid, in, nothing, watch);
  });
  watch.finish();
}

MP_KERNEL(kRowRunThreads, 1)
rnn_reset_backward(MP_PARAM(BackwardStep) step) {
  wait_for_previous_kernel();
  AmaxTracker watch(step.found_inf, nullptr);
  for_each_row_run(step.count, step.hidden, [&](int64_t n, int64_t unit, int valid) {
    if (!step.order.has(n, step.t)) return;
    BackwardInputs<ResetFirstCell, Access> before;
    float r[kVec], h[kVec], d_reset[kVec], dh[kVec];
    load_vector(r, step.dtype, step.slots.base, step.slots.at(n, unit), valid);
    before.load_h_before(step, n, unit, valid);
    load_row<Access>(d_reset, step.d_reset_h, n, unit, valid);
    load_row<Access>(dh, step.dh, n, unit, valid);
    Access::widen(h, step.dtype, before.h);
    unroll<kVec>([&](int i) { ResetFirstCell::reset_backward(r[i], dh[i], h[i], d_reset[i]); });
    store_vector(step.dtype, step.slots.base, step.slots.at(n, unit), r, valid);
    store_row<Access>(step.dh, n, unit, dh, valid);
    watch.see(step.dtype, r, valid);
  });
  watch.finish();
}

}  // namespace

void launch_step_backward(const Device &device, const BackwardStep &step, mp_stream_t stream) {
  with_cell(step.cell, step.flags, [&](auto cell) {
    launch_row_runs("rnn_step_backward", rnn_step_backward<decltype(cell)>, device, step.count,
                    step.hidden, kBlocksOfStep, step, stream);
  });
}

void launch_reset_backward(const Device &device, const BackwardStep &step, mp_stream_t stream) {
  launch_row_runs("rnn_reset_backward", rnn_reset_backward, device, step.count, step.hidden,
                  kBlocksOfStep, step, stream);
}

// ---------------------------------------------------------------------------- rows of all steps

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
MP_DEVICE const void *source_of(const GatherRows &args, const RangeCoord &coord, int64_t *row_at) {
  const int32_t t = args.range.t + coord.step;
  *row_at = 0;
  if (!args.order.has(coord.n, t)) return nullptr;
  if (args.before && (coord.n >= args.count_before || args.order.is_first(coord.n, t))) {
    *row_at = coord.n * args.columns;
    return args.initial;
  }
  *row_at = coord.step * args.from_step + coord.n * args.from_row + coord.part * args.columns;
  return args.from;
}

MP_KERNEL(kRowRunThreads, 1)
rnn_gather_rows(MP_PARAM(GatherRows) args) {
  wait_for_previous_kernel();
  const int64_t rows = args.range.steps * args.range.count * args.range.parts;
  for_each_row_run(rows, args.columns, [&](int64_t row, int64_t column, int valid) {
    const RangeCoord coord(args.range, row);
    int64_t at;
    const void *const from = source_of(args, coord, &at);
    float x[kVec] = {};
    if (from != nullptr) load_vector(x, args.dtype, from, at + column, valid);
    args.dropout.apply(x, args.range.t + coord.step, coord.n, coord.part, column);
    store_vector(args.dtype, args.to, row * args.columns + column, x, valid);
  });
}

MP_KERNEL(kRowRunThreads, 1)
rnn_sum_gates(MP_PARAM(SumGates) args) {
  wait_for_previous_kernel();
  AmaxTracker watch(args.found_inf, nullptr);
  const int64_t rows = args.range.steps * args.range.count;
  for_each_row_run(rows, args.hidden, [&](int64_t row, int64_t unit, int valid) {
    const RangeCoord coord(args.range, row);
    float sum[kVec] = {};
    for (int64_t i = 0; i < args.summands; i++) {
      float x[kVec];
      load_vector(x, args.dtype, args.slots, row * args.ld_slots + i * args.hidden + unit, valid);
      unroll<kVec>([&](int j) { sum[j] += x[j]; });
    }
    store_vector(args.dtype, args.dx, coord.step * args.dx_step + coord.n * args.dx_row + unit, sum,
                 valid);
    watch.see(args.dtype, sum, valid);
  });
  watch.finish();
}

MP_DEVICE void put(const BiasGrads &args, float *to, float sum, AmaxTracker &watch) {
  if (to == nullptr) return;
  *to = args.accumulate ? *to + sum : sum;
  watch.see<float>(*to);
}

MP_KERNEL(kRowRunThreads, 1)
rnn_bias_grads(MP_PARAM(BiasGrads) args) {
  wait_for_previous_kernel();
  AmaxTracker watch(args.found_inf, args.amax);
  const int64_t rows = args.gates * args.hidden, elements = args.directions * rows;
  for_each_row_run(elements, 1, [&](int64_t i, int64_t, int) {
    const int64_t direction = i / rows, row = i - direction * rows;
    const int64_t unit_of_n = row - (args.gates - 1) * args.hidden;
    const bool is_apart = args.n_is_apart && unit_of_n >= 0;
    const float sum = args.sums[i];
    const float sum_hh = is_apart ? args.sums[elements + direction * args.hidden + unit_of_n] : sum;
    float *const b_ih = args.b_ih[direction], *const b_hh = args.b_hh[direction];
    put(args, b_ih != nullptr ? b_ih + row : nullptr, sum, watch);
    put(args, b_hh != nullptr ? b_hh + row : nullptr, sum_hh, watch);
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

void launch_bias_grads(const Device &device, const BiasGrads &args, mp_stream_t stream) {
  launch_row_runs("rnn_bias_grads", rnn_bias_grads, device,
                  args.directions * args.gates * args.hidden, 1, kBlocksOfAllRows, args, stream);
}

}  // namespace mp::MP_TARGET
