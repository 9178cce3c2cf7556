// Cell of a forward step, after the product of h and W_hh: gates, c' and h'.
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

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
    if (step.walk.has(n, step.t)) {
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

}  // namespace mp::MP_TARGET
