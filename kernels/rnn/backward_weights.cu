// Schedule of the backward pass for weights: products and column sums over the rows of all steps.
#include "kernels/rnn/schedule.h"

namespace mp::MP_TARGET {

namespace {

class WeightGrads {
 public:
  WeightGrads(const RnnSchedule &schedule, int64_t layer)
      : f_(schedule), s_(schedule.s), layer_(layer), inputs_(f_.region(f_.layout.inputs)) {}

  void run() const {
    if (!s_.skips_input(layer_)) multiply_inputs();
    for (int64_t direction = 0; direction < s_.directions; direction++) multiply_states(direction);
    if (!s_.has(MP_RNN_FLAG_NO_BIAS)) sum_biases();
  }

 private:
  const mp_rnn_weight_grads_t &grads(int64_t direction) const {
    return f_.t.weight_grads[layer_ * s_.directions + direction];
  }
  template <class T>
  bool wants(T *mp_rnn_weight_grads_t::*w) const {
    return grads(0).*w != nullptr || grads(s_.directions - 1).*w != nullptr;
  }

  /// Computes to = G^T b, where G are the gradients in the slots from `column` on.
  void multiply(RnnProduct kind, int64_t column, const RowMatrix &b, void *to) const {
    RnnMultiplier product(f_, kind, layer_);
    product.problem.k = f_.all_rows();
    product.problem.out.beta = s_.has(MP_RNN_FLAG_ACCUMULATE) ? 1.0f : 0.0f;
    product.set_a({f_.elements(f_.slots(layer_), column), s_.slot_columns});
    product.set_b(b.base);
    product.problem.b.ld = b.ld;
    product.set_d({to, product.problem.out.n});
    product.problem.out.epilogue.found_inf = f_.t.stats.found_inf;
    product.problem.out.epilogue.amax = f_.t.stats.amax;
    product.run();
  }

  // ---- W_ih
  /// Returns the layer's input as one matrix, with zeros after the end of a sequence.
  RowMatrix inputs() const {
    if (layer_ > 0 && !s_.drops(layer_)) return {f_.saved_h(layer_ - 1), s_.outputs()};
    if (layer_ > 0) {
      GatherRows gather = f_.gather_args(0, 0, s_.timesteps, s_.hidden_size, s_.directions);
      gather.dropout = f_.dropout(layer_);
      f_.gather(gather, f_.inside(f_.saved_h(layer_ - 1)), 0);
      return {inputs_, s_.outputs()};
    }
    const StepTensor x = f_.outside(f_.t.x, s_.x_step, s_.x_row);
    const bool follow = f_.is_packed() || s_.timesteps == 1 || x.step == s_.batch * x.row;
    if (follow && f_.t.lengths == nullptr) return {const_cast<void *>(x.base), x.row};
    f_.gather(f_.gather_args(0, 0, s_.timesteps, s_.input_size, 1), x, 0);
    return {inputs_, s_.input_size};
  }

  void multiply_inputs() const {
    if (!wants(&mp_rnn_weight_grads_t::w_ih)) return;
    const RowMatrix x = inputs();
    for (int64_t direction = 0; direction < s_.directions; direction++)
      if (void *const to = grads(direction).w_ih)
        multiply(RnnProduct::weights_ih, slot_column(s_, direction, 0), x, to);
  }

  // ---- W_hh
  /// Returns a matrix with h of the step before each row.
  RowMatrix states_before(int64_t direction) const {
    GatherRows gather = f_.gather_args(direction, 0, s_.timesteps, s_.hidden_size, 1);
    gather.before = true;
    gather.initial = f_.state(f_.t.h0, layer_, direction);
    f_.gather(gather, f_.inside(f_.saved_h(layer_)), direction * s_.hidden_size);
    return {inputs_, s_.hidden_size};
  }

  void multiply_states(int64_t direction) const {
    void *const to = grads(direction).w_hh;
    if (to == nullptr) return;
    const int64_t hidden = s_.hidden_size;
    const RowMatrix h = states_before(direction);
    multiply(RnnProduct::weights_hh, slot_column(s_, direction, 0), h, to);
    if (s_.cell != MP_RNN_GRU) return;
    void *const to_n = advanced(to, 2 * hidden * hidden * dtype_bytes(s_.dtype_dw));
    const int64_t last = slot_column(s_, direction, s_.gates);
    if (!s_.resets_first()) return multiply(RnnProduct::weights_n, last, h, to_n);
    const RowMatrix reset_h{f_.elements(f_.slots(layer_), last), s_.slot_columns};
    multiply(RnnProduct::weights_n, slot_column(s_, direction, 2), reset_h, to_n);
  }

  // ---- biases
  void sum_biases() const {
    if (!wants(&mp_rnn_weight_grads_t::b_ih) && !wants(&mp_rnn_weight_grads_t::b_hh)) return;
    float *const sums = static_cast<float *>(f_.region(f_.layout.sums));
    Output out = rnn_slot_rows(s_);
    out.m = f_.all_rows();
    out.d.base = f_.slots(layer_);
    out.epilogue.dbias = sums;
    launch_column_sum(f_.device, out, plan_column_sum(shape_of(out), f_.layout.sum_chunk_bytes),
                      f_.region(f_.layout.sum_chunks), f_.stream);
    BiasGrads args{};
    args.directions = s_.directions;
    args.gates = s_.gates;
    args.hidden = s_.hidden_size;
    args.n_is_apart = s_.cell == MP_RNN_GRU && !s_.resets_first();
    args.accumulate = s_.has(MP_RNN_FLAG_ACCUMULATE);
    args.sums = sums;
    for (int64_t direction = 0; direction < s_.directions; direction++) {
      args.b_ih[direction] = grads(direction).b_ih;
      args.b_hh[direction] = grads(direction).b_hh;
    }
    args.found_inf = f_.t.stats.found_inf;
    args.amax = f_.t.stats.amax;
    launch_bias_grads(f_.device, args, f_.stream);
  }

  const RnnSchedule &f_;
  const RnnShape &s_;
  const int64_t layer_;
  void *const inputs_;
};

}  // namespace

void rnn_backward_weights(const Device &device, const RnnProblem &problem, mp_stream_t stream) {
  const RnnSchedule schedule(device, problem, stream);
  for (int64_t layer = 0; layer < problem.shape.layers; layer++) WeightGrads(schedule, layer).run();
}

}  // namespace mp::MP_TARGET
