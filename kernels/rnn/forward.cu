// Schedule of the forward pass.
//
// Each layer and direction alternates between two parts: the product of W_ih with the inputs of a
// chunk of steps, and the steps of that chunk, each the product of h and W_hh followed by the cell.
#include <vector>

#include "kernels/rnn/fused.h"
#include "kernels/rnn/schedule.h"

namespace mp::MP_TARGET {

namespace {

/// Forward pass of one direction of one layer.
class ForwardWalk {
 public:
  ForwardWalk(const RnnSchedule &schedule, int64_t layer, int64_t direction)
      : f_(schedule), layer_(layer), direction_(direction) {
    set_states();
    const int64_t hidden = s_.hidden_size;
    const RowMatrix q = q_rows();
    inputs_.set_b(weights_.w_ih);
    recurrent_.set_a(h_[0]);
    recurrent_.set_b(weights_.w_hh);
    recurrent_.set_d(q);
    candidate_.set_a(reset_h_rows());
    candidate_.set_b(f_.elements(weights_.w_hh, 2 * hidden * hidden));
    candidate_.set_d({static_cast<float *>(q.base) + 2 * hidden, q.ld});
  }

  void begin() const {
    const int64_t elements = f_.state_elements();
    f_.copy_or_clear(h_[0].base, f_.state(f_.t.h0, layer_, direction_), elements * s_.elem_bytes());
    if (s_.cell == MP_RNN_LSTM)
      f_.copy_or_clear(c_.base, f_.state(f_.t.c0, layer_, direction_),
                       elements * int64_t{sizeof(float)});
  }

  /// Computes p for steps [done, done + steps), in the order of the direction.
  void begin_chunk(int32_t done, int32_t steps) {
    first_ = direction_ == 0 ? done : s_.timesteps - done - steps;
    if (!s_.skips_input(layer_)) multiply_inputs(steps);
  }

  /// Runs the i-th step by GEMMs and kernels for the cell.
  void run_step(int32_t i) {
    const ForwardStep args = step_args(i);
    if (args.count == 0) return;
    recurrent_.problem.out.m = args.count;
    recurrent_.run();
    if (s_.resets_first()) {
      launch_reset_h(f_.device, args, f_.stream);
      candidate_.problem.out.m = args.count;
      candidate_.run();
    }
    launch_step_forward(f_.device, args, f_.stream);
  }

  ForwardStep step_args(int32_t i) const {
    const int32_t step = f_.step_of(direction_, i);
    ForwardStep args{};
    static_cast<StepCommon &>(args) = f_.common(direction_, step);
    if (!s_.has(MP_RNN_FLAG_NO_BIAS)) {
      args.b_ih = weights_.b_ih;
      args.b_hh = weights_.b_hh;
    }
    if (s_.skips_input(layer_)) {
      args.x = f_.rows_of(source(), step, 0);
    } else {
      const int64_t row = f_.first_row(step) - f_.first_row(first_);
      args.p = {p_ + row * s_.gate_rows, s_.gate_rows};
    }
    args.q = q_rows();
    args.h = h_[i % 2];
    args.h_next = h_[(i + 1) % 2];
    args.c = c_;
    args.reset_h = reset_h_rows();
    if (is_training_) {
      args.slots = f_.slot_rows(layer_, direction_, step);
      args.saved_c = f_.saved_c_rows(layer_, direction_, step);
      args.saved_h = f_.saved_h_rows(layer_, direction_, step);
    }
    const int64_t column = direction_ * s_.hidden_size;
    if (layer_ == s_.layers - 1) {
      args.y = f_.rows_of(f_.outside(f_.t.y, s_.y_step, s_.y_row), step, column);
    } else if (!is_training_) {
      const void *const outputs = f_.region(f_.layout.outputs[layer_ % 2]);
      args.y = f_.rows_of(f_.inside(outputs), step, column);
    }
    return args;
  }

  const void *w_hh() const { return weights_.w_hh; }

 private:
  /// h and c are computed in hn and cn if the caller gave these.  A fused step reads all of h while
  /// it writes the next h, so h alternates between two buffers and the last step writes hn.
  void set_states() {
    const int64_t elements = f_.state_elements(), hidden = s_.hidden_size;
    void *const own = f_.elements(f_.region(f_.layout.h), direction_ * 2 * elements);
    void *const wanted = f_.t.hn != nullptr ? f_.state(f_.t.hn, layer_, direction_) : own;
    void *const other = is_fused_ ? f_.elements(own, elements) : wanted;
    const int last = s_.timesteps % 2;
    h_[last] = {wanted, hidden};
    h_[1 - last] = {other, hidden};
    c_ = {f_.t.cn != nullptr ? f_.state(f_.t.cn, layer_, direction_)
                             : f_.floats(f_.layout.c, direction_ * elements),
          hidden};
    p_ = f_.floats(f_.layout.p, direction_ * rnn_chunk_steps(s_) * s_.batch * s_.gate_rows);
  }

  RowMatrix q_rows() const { return {f_.region(f_.layout.q), s_.gate_rows}; }
  RowMatrix reset_h_rows() const { return {f_.region(f_.layout.reset_h), s_.hidden_size}; }

  /// Returns the input of the layer.
  StepTensor source() const {
    if (layer_ == 0) return f_.outside(f_.t.x, s_.x_step, s_.x_row);
    return f_.inside(is_training_ ? f_.saved_h(layer_ - 1)
                                  : f_.region(f_.layout.outputs[(layer_ - 1) % 2]));
  }

  /// Computes p for `steps` steps from first_ on.
  void multiply_inputs(int32_t steps) {
    StepTensor a = source();
    if (is_training_ && s_.drops(layer_))
      a = dropped(a, steps);
    else
      a.base = f_.rows_of(a, first_, 0).base;
    inputs_.set_rows(a, {p_, s_.batch * s_.gate_rows, s_.gate_rows}, first_, steps);
    inputs_.run();
  }

  StepTensor dropped(const StepTensor &from, int32_t steps) const {
    GatherRows gather = f_.gather_args(direction_, first_, steps, s_.hidden_size, s_.directions);
    gather.dropout = f_.dropout(layer_);
    f_.gather(gather, from, 0);
    return f_.inside(gather.to);
  }

  const RnnSchedule &f_;
  const int64_t layer_, direction_;
  const RnnShape &s_ = f_.s;
  const bool is_training_ = f_.problem.pass == RnnPass::training;
  const bool is_fused_ = f_.problem.plan->kernel != RnnKernel::steps;
  const mp_rnn_weights_t &weights_ = f_.weights(layer_, direction_);
  RnnMultiplier inputs_{f_, RnnProduct::inputs, layer_};
  RnnMultiplier recurrent_{f_, RnnProduct::recurrent, layer_};
  RnnMultiplier candidate_{f_, RnnProduct::candidate, layer_};
  RowMatrix h_[2], c_;  ///< h_[i % 2] is the input of step i
  float *p_ = nullptr;
  int32_t first_ = 0;  ///< first time step of the chunk
};

// ---------------------------------------------------------------------------- a layer

using Walks = std::vector<ForwardWalk>;

void run_fused(const RnnSchedule &f, const Walks &walks, int32_t i, bool follows_step) {
  FusedForward args{};
  args.directions = f.s.directions;
  args.rows = f.s.batch;
  args.follows_step = follows_step;
  for (size_t d = 0; d < walks.size(); d++) {
    args.steps[d] = walks[d].step_args(i);
    args.w_hh[d] = walks[d].w_hh();
  }
  const bool by_tma = f.problem.plan->kernel == RnnKernel::fused_wgmma && has_maps(args);
  (by_tma ? launch_fused_wgmma_forward : launch_fused_forward)(f.problem.plan->device, args,
                                                               f.stream);
}

void run_layer(const RnnSchedule &f, int64_t layer) {
  Walks walks;
  walks.reserve(static_cast<size_t>(f.s.directions));
  for (int64_t direction = 0; direction < f.s.directions; direction++)
    walks.emplace_back(f, layer, direction).begin();
  const int32_t timesteps = f.s.timesteps, chunk = static_cast<int32_t>(rnn_chunk_steps(f.s));
  for (int32_t done = 0; done < timesteps; done += chunk) {
    const int32_t end = min_of(done + chunk, timesteps);
    for (ForwardWalk &walk : walks) walk.begin_chunk(done, end - done);
    for (int32_t i = done; i < end; i++) {
      if (f.problem.plan->kernel != RnnKernel::steps)
        run_fused(f, walks, i, i > done);
      else
        for (ForwardWalk &walk : walks) walk.run_step(i);
    }
  }
}

}  // namespace

void rnn_forward(const Device &device, const RnnProblem &problem, mp_stream_t stream) {
  const RnnSchedule schedule(device, problem, stream);
  for (int64_t layer = 0; layer < problem.shape.layers; layer++) run_layer(schedule, layer);
}

}  // namespace mp::MP_TARGET
