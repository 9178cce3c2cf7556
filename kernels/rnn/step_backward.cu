// Cell of a backward step, before the product of its gates' gradients and W_hh.
//
// From dy and the gradients dh and dc of the next step, it computes the gradients of the gates (in
// the slots), and dh and dc for the previous step, without the part through W_hh.
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

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
    if (!step.walk.has(n, step.t)) return;
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
