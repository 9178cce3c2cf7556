// Schedule of the backward pass for data.
//
// Layers run from last to first, and each direction from its last step to its first: the cell, and
// the product of its gates' gradients with W_hh.  One product then computes dx of all steps and
// both directions.
#include <vector>

#include "kernels/rnn/fused.h"
#include "kernels/rnn/schedule.h"

namespace mp::MP_TARGET {

namespace {

/// Returns the gradient of a layer's output.
StepTensor dy_of(const RnnSchedule &f, int64_t layer) {
  const RnnShape &s = f.s;
  if (layer == s.layers - 1) return f.outside(f.t.dy, s.y_step, s.y_row);
  return f.inside(f.region(f.layout.dy));
}

/// Backward pass of one direction of one layer.
class BackwardWalk {
 public:
  BackwardWalk(const RnnSchedule &schedule, int64_t layer, int64_t direction)
      : f_(schedule), layer_(layer), direction_(direction) {
    const int64_t first = direction * f_.state_elements(), hidden = s_.hidden_size;
    dh_ = {f_.floats(f_.layout.dh, first), hidden};
    dc_ = {
        f_.t.dc0 != nullptr ? f_.state(f_.t.dc0, layer, direction) : f_.floats(f_.layout.dc, first),
        hidden};
    d_reset_h_ = {f_.region(f_.layout.d_reset_h), hidden};
    recurrent_.set_b(w_hh_);
    recurrent_.set_d(dh_);
    candidate_.set_b(f_.elements(w_hh_, 2 * hidden * hidden));
    candidate_.set_d(s_.resets_first() ? d_reset_h_ : dh_);
  }

  void begin() const {
    const int64_t elements = f_.state_elements();
    const int64_t bytes = elements * int64_t{sizeof(float)};
    if (f_.t.dhn != nullptr)
      cast(f_.device, f_.state(f_.t.dhn, layer_, direction_), s_.dtype, dh_.base, MP_FP32, elements,
           f_.stream);
    else
      f_.copy_or_clear(dh_.base, nullptr, bytes);
    if (s_.cell == MP_RNN_LSTM)
      f_.copy_or_clear(dc_.base, f_.state(f_.t.dcn, layer_, direction_), bytes);
  }

  /// Runs the i-th step of the forward order by kernels for the cell and GEMMs.
  void run_step(int32_t i) {
    const BackwardStep args = step_args(i);
    if (args.count == 0) return;
    launch_step_backward(f_.device, args, f_.stream);
    if (s_.resets_first()) {
      candidate_.problem.out.m = args.count;
      candidate_.set_a({f_.elements(args.slots.base, 2 * s_.hidden_size), args.slots.ld});
      candidate_.run();
      launch_reset_backward(f_.device, args, f_.stream);
    }
    if (i > 0 || f_.t.dh0 != nullptr) multiply_gradients(args);
  }

  /// Adds the product of the step's gate gradients and W_hh to dh of the previous step.
  void multiply_gradients(const BackwardStep &step) {
    recurrent_.problem.out.m = step.count;
    recurrent_.set_a(step.slots);
    recurrent_.run();
    if (s_.cell != MP_RNN_GRU || s_.resets_first()) return;
    candidate_.problem.out.m = step.count;
    candidate_.set_a({f_.elements(step.slots.base, step.last_slot), step.slots.ld});
    candidate_.run();
  }

  /// Converts dh to dh0 after the last step.
  void finish() const {
    if (f_.t.dh0 == nullptr) return;
    cast(f_.device, dh_.base, MP_FP32, f_.state(f_.t.dh0, layer_, direction_), s_.dtype,
         f_.state_elements(), f_.stream);
  }

  BackwardStep step_args(int32_t i) const {
    const int32_t step = f_.step_of(direction_, i), before = f_.step_before(direction_, step);
    BackwardStep args{};
    static_cast<StepCommon &>(args) = f_.common(direction_, step);
    args.slots = f_.slot_rows(layer_, direction_, step);
    args.saved_c = f_.saved_c_rows(layer_, direction_, step);
    args.saved_h = f_.saved_h_rows(layer_, direction_, step);
    if (before >= 0) {
      args.c_before = f_.saved_c_rows(layer_, direction_, before);
      args.h_before = f_.saved_h_rows(layer_, direction_, before);
      args.count_before = f_.count(before);
    }
    args.c0 = {f_.state(f_.t.c0, layer_, direction_), s_.hidden_size};
    args.h0 = {f_.state(f_.t.h0, layer_, direction_), s_.hidden_size};
    args.dy = f_.rows_of(dy_of(f_, layer_), step, direction_ * s_.hidden_size);
    args.dropout = f_.dropout(layer_ + 1);
    args.dh = dh_;
    args.dc = dc_;
    args.d_reset_h = d_reset_h_;
    args.found_inf = f_.t.stats.found_inf;
    return args;
  }

  const void *w_hh() const { return w_hh_; }

 private:
  const RnnSchedule &f_;
  const int64_t layer_, direction_;
  const RnnShape &s_ = f_.s;
  const void *const w_hh_ = f_.weights(layer_, direction_).w_hh;
  RnnMultiplier recurrent_{f_, RnnProduct::recurrent_grad, layer_};
  RnnMultiplier candidate_{f_, RnnProduct::candidate_grad, layer_};
  RowMatrix dh_, dc_, d_reset_h_;
};

using Walks = std::vector<BackwardWalk>;

void run_fused(const RnnSchedule &f, const Walks &walks, int32_t i) {
  FusedBackward args{};
  args.directions = f.s.directions;
  args.rows = f.s.batch;
  args.follows_step = i + 1 < f.s.timesteps;
  args.gate_rows[0] = f.s.backward_rows;
  args.gate_rows[1] = f.s.gate_rows - f.s.backward_rows;
  for (size_t d = 0; d < walks.size(); d++) {
    args.steps[d] = walks[d].step_args(i);
    args.w_hh[d] = walks[d].w_hh();
    if (i + 1 == f.s.timesteps) continue;
    const BackwardStep behind = walks[d].step_args(i + 1);
    args.behind[d] = behind.slots;
    args.count_behind[d] = behind.count;
  }
  const bool by_tma = f.problem.plan->kernel == RnnKernel::fused_wgmma && has_maps(args);
  (by_tma ? launch_fused_wgmma_backward : launch_fused_backward)(f.problem.plan->device, args,
                                                                 f.stream);
}

void run_steps(const RnnSchedule &f, Walks &walks) {
  const bool is_fused = f.problem.plan->kernel != RnnKernel::steps;
  for (BackwardWalk &walk : walks) walk.begin();
  for (int32_t i = f.s.timesteps - 1; i >= 0; i--) {
    if (is_fused)
      run_fused(f, walks, i);
    else
      for (BackwardWalk &walk : walks) walk.run_step(i);
  }
  for (BackwardWalk &walk : walks) {
    if (is_fused && f.t.dh0 != nullptr && f.s.timesteps > 0)
      walk.multiply_gradients(walk.step_args(0));
    walk.finish();
  }
}

// ---------------------------------------------------------------------------- dx

/// Returns W_ih of both directions, concatenated in the workspace.
const void *inputs_weights(const RnnSchedule &f, int64_t layer) {
  if (f.s.directions == 1) return f.weights(layer, 0).w_ih;
  void *const both = f.region(f.layout.w_ih);
  const int64_t elements = f.s.gate_rows * f.s.inputs(layer);
  for (int64_t direction = 0; direction < f.s.directions; direction++)
    f.copy_or_clear(f.elements(both, direction * elements), f.weights(layer, direction).w_ih,
                    elements * f.s.elem_bytes());
  return both;
}

void sum_gates(const RnnSchedule &f, int64_t layer, const StepTensor &dx) {
  const RnnShape &s = f.s;
  SumGates args{};
  args.dtype = s.dtype;
  args.range =
      f.is_packed() ? StepRange{0, 1, f.all_rows(), 1} : StepRange{0, s.timesteps, s.batch, 1};
  args.hidden = s.hidden_size;
  args.summands = s.directions * s.gates;
  args.slots = f.slots(layer);
  args.ld_slots = s.slot_columns;
  args.dx = const_cast<void *>(dx.base);
  args.dx_step = dx.step;
  args.dx_row = dx.row;
  args.found_inf = f.t.stats.found_inf;
  launch_sum_gates(f.device, args, f.stream);
}

void backward_inputs(const RnnSchedule &f, int64_t layer) {
  const RnnShape &s = f.s;
  const StepTensor dx = layer == 0 ? f.outside(f.t.dx, s.x_step, s.x_row) : dy_of(f, layer - 1);
  if (dx.base == nullptr) return;
  if (s.skips_input(layer)) return sum_gates(f, layer, dx);
  RnnMultiplier product(f, RnnProduct::inputs_grad, layer);
  product.set_b(inputs_weights(f, layer));
  product.set_rows({f.slots(layer), s.batch * s.slot_columns, s.slot_columns}, dx, 0, s.timesteps);
  product.problem.out.epilogue.found_inf = f.t.stats.found_inf;
  product.run();
}

}  // namespace

void rnn_backward_data(const Device &device, const RnnProblem &problem, mp_stream_t stream) {
  const RnnSchedule schedule(device, problem, stream);
  for (int64_t layer = problem.shape.layers - 1; layer >= 0; layer--) {
    Walks walks;
    walks.reserve(static_cast<size_t>(problem.shape.directions));
    for (int64_t direction = 0; direction < problem.shape.directions; direction++)
      walks.emplace_back(schedule, layer, direction);
    run_steps(schedule, walks);
    backward_inputs(schedule, layer);
  }
}

}  // namespace mp::MP_TARGET
