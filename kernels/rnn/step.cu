// Cells of a step.  Forward, after the product of h and W_hh: gates, c' and h'.
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
MP_KERNEL(kRnnThreads, 1)
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

MP_KERNEL(kRnnThreads, 1)
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
MP_KERNEL(kRnnThreads, 1)
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

MP_KERNEL(kRnnThreads, 1)
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

}  // namespace mp::MP_TARGET
