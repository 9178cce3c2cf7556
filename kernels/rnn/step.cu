// Cells of a step.  Forward, after the product of h and W_hh: gates, c' and h'.
//
// Backward, before the product of the gates' gradients and W_hh: from dy and the gradients dh and
// dc of the next step, the gradients of the gates (in the slots), and dh and dc for the previous
// step, without the part through W_hh.
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- forward

namespace {

template <int kGates>
MP_DEVICE void load_products(float (&q)[kGates][kVec], const ForwardStep &step, int64_t n,
                             int64_t unit, int valid) {
  MP_UNROLL
  for (int g = 0; g < kGates; g++) load_fp32(q[g], step.q, n, g * step.hidden + unit, valid);
}

template <class Cell>
MP_KERNEL(kRnnThreads, 1)
rnn_step_forward(MP_PARAM(ForwardStep) step) {
  wait_for_previous_kernel();
  for_each_row_run(step.count, step.hidden, [&](int64_t n, int64_t unit, int valid) {
    float q[Cell::kGates][kVec];
    load_products(q, step, n, unit, valid);
    forward_units<Cell>(step, n, unit, valid, q);
  });
}

MP_KERNEL(kRnnThreads, 1)
rnn_reset_h(MP_PARAM(ForwardStep) step) {
  wait_for_previous_kernel();
  for_each_row_run(step.count, step.hidden, [&](int64_t n, int64_t unit, int valid) {
    float p[1][kVec] = {}, q[1][kVec] = {}, h[kVec] = {};
    if (step.order.has(n, step.t)) {
      load_products(q, step, n, unit, valid);
      load_arguments(p, q, step, n, unit, valid);
      load_vector(h, step.dtype, step.h.base, step.h.at(n, unit), valid);
    }
    MP_UNROLL
    for (int i = 0; i < kVec; i++) h[i] = ResetFirstCell::reset(p[0][i], q[0][i], h[i]);
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
    backward_units<Cell>(step, n, unit, valid, nothing, watch);
  });
  watch.finish();
}

MP_KERNEL(kRnnThreads, 1)
rnn_reset_backward(MP_PARAM(BackwardStep) step) {
  wait_for_previous_kernel();
  AmaxTracker watch(step.found_inf, nullptr);
  for_each_row_run(step.count, step.hidden, [&](int64_t n, int64_t unit, int valid) {
    if (!step.order.has(n, step.t)) return;
    float r[kVec], h[kVec], d_reset[kVec], dh[kVec];
    load_vector(r, step.dtype, step.slots.base, step.slots.at(n, unit), valid);
    load_before(h, step, step.dtype, step.h_before, step.h0, n, unit, valid);
    load_fp32(d_reset, step.d_reset_h, n, unit, valid);
    load_fp32(dh, step.dh, n, unit, valid);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) ResetFirstCell::reset_backward(r[i], dh[i], h[i], d_reset[i]);
    store_vector(step.dtype, step.slots.base, step.slots.at(n, unit), r, valid);
    store_fp32(step.dh, n, unit, dh, valid);
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
