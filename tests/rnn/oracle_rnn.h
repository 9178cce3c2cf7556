// Reference implementation of recurrent networks and their gradients in fp64, from the equations of
// mpcore/rnn.h.
//
// Units and sequences are computed one at a time, without batching: every length has its own loop.
#pragma once

#include <functional>

#include "rnn_case.h"

namespace mptest::oracle {

/// Values of one step that its backward pass reads.
struct RnnStep {
  Values gates, q_n;  ///< [gate][unit]; q_n: h W_n^T + b of GRU
  Values h_before, c_before, h, c;
  std::vector<bool> clipped;
};

class Rnn {
 public:
  /// Returns the mask of element (reading layer, t, n, direction, unit): 0 or 1 / (1 - p).
  using Mask = std::function<double(int64_t, int64_t, int64_t, int64_t, int64_t)>;

  Rnn(const RnnCase &c, const RnnData &data, Mask mask = {})
      : c_(c), data_(data), mask_(std::move(mask)) {}

  /// Returns the largest |h| and gradient of a gate.
  double largest() const { return largest_; }

  RnnResult run() {
    forward();
    backward();
    return result_;
  }
  RnnResult forward() {
    result_ = {};
    steps_.assign(static_cast<size_t>(c_.num_weights() * c_.desc.batch * c_.desc.timesteps), {});
    result_.hn.resize(static_cast<size_t>(c_.states_size()));
    result_.cn.resize(c_.is_lstm() ? static_cast<size_t>(c_.states_size()) : 0);
    Values below = data_.x;
    for (int64_t layer = 0; layer < c_.desc.layers; ++layer) {
      inputs_.push_back(below);
      Values y(static_cast<size_t>(c_.desc.timesteps * c_.desc.batch * c_.outputs()));
      for (int64_t d = 0; d < c_.directions(); ++d)
        for (int64_t n = 0; n < c_.desc.batch; ++n) forward_sequence(layer, d, n, y);
      below = y;
      if (layer + 1 < c_.desc.layers) drop(layer + 1, below);
      result_.y = y;
    }
    return result_;
  }

 private:
  RnnStep &step_at(int64_t layer, int64_t d, int64_t n, int64_t t) {
    const int64_t i = ((layer * c_.directions() + d) * c_.desc.batch + n) * c_.desc.timesteps + t;
    return steps_[static_cast<size_t>(i)];
  }
  const RnnWeights &weights(int64_t layer, int64_t d) const {
    return data_.weights[static_cast<size_t>(layer * c_.directions() + d)];
  }
  double bias(const Values &b, int64_t row) const {
    return c_.has(MP_RNN_FLAG_NO_BIAS) ? 0.0 : b[static_cast<size_t>(row)];
  }
  int64_t step_number(int64_t d, int64_t n, int64_t i) const {
    return d == 0 ? i : c_.length(n) - 1 - i;
  }
  double note(double value) {
    largest_ = std::max(largest_, std::fabs(value));
    return value;
  }
  static double sigmoid(double a) { return 1.0 / (1.0 + std::exp(-a)); }

  void drop(int64_t layer, Values &y) const {
    if (!mask_) return;
    for (int64_t t = 0; t < c_.desc.timesteps; ++t)
      for (int64_t n = 0; n < c_.desc.batch; ++n)
        for (int64_t d = 0; d < c_.directions(); ++d)
          for (int64_t j = 0; j < c_.hidden(); ++j)
            y[c_.y_at(t, n, d) + static_cast<size_t>(j)] *= mask_(layer, t, n, d, j);
  }

  /// Returns the sum over k of v[k] w[row][k].
  static double dot(const double *v, const Values &w, int64_t row, int64_t k) {
    double sum = 0.0;
    for (int64_t i = 0; i < k; ++i) sum += v[i] * w[static_cast<size_t>(row * k + i)];
    return sum;
  }

  void forward_sequence(int64_t layer, int64_t d, int64_t n, Values &y) {
    const int64_t hidden = c_.hidden();
    const size_t at = c_.state_at(layer, d, n);
    Values h(static_cast<size_t>(hidden)), cell(static_cast<size_t>(hidden));
    for (size_t j = 0; j < h.size(); ++j) {
      if (!data_.h0.empty()) h[j] = data_.h0[at + j];
      if (!data_.c0.empty()) cell[j] = data_.c0[at + j];
    }
    for (int64_t i = 0; i < c_.length(n); ++i) {
      const int64_t t = step_number(d, n, i);
      RnnStep &step = step_at(layer, d, n, t);
      step.h_before = h;
      step.c_before = cell;
      forward_step(layer, d, n, t, step);
      h = step.h;
      cell = step.c;
      for (size_t j = 0; j < h.size(); ++j) y[c_.y_at(t, n, d) + j] = note(h[j]);
    }
    for (size_t j = 0; j < h.size(); ++j) {
      result_.hn[at + j] = h[j];
      if (c_.is_lstm()) result_.cn[at + j] = cell[j];
    }
  }

  void forward_step(int64_t layer, int64_t d, int64_t n, int64_t t, RnnStep &step) const {
    const RnnWeights &w = weights(layer, d);
    const int64_t hidden = c_.hidden(), inputs = c_.inputs(layer);
    const double *const x =
        inputs_.back().data() + static_cast<size_t>((t * c_.desc.batch + n) * inputs);
    const bool skips = layer == 0 && c_.has(MP_RNN_FLAG_SKIP_INPUT);
    const auto p = [&](int64_t row) {
      return (skips ? x[row % hidden] : dot(x, w.w_ih, row, inputs)) + bias(w.b_ih, row);
    };
    const auto q = [&](int64_t row, const Values &h) {
      return dot(h.data(), w.w_hh, row, hidden) + bias(w.b_hh, row);
    };
    step.gates.resize(static_cast<size_t>(c_.gate_rows()));
    step.q_n.resize(static_cast<size_t>(hidden));
    step.h.resize(static_cast<size_t>(hidden));
    step.c.resize(static_cast<size_t>(hidden));
    step.clipped.assign(static_cast<size_t>(hidden), false);
    const auto gate = [&](int64_t g, int64_t j) -> double & {
      return step.gates[static_cast<size_t>(g * hidden + j)];
    };
    Values reset(static_cast<size_t>(hidden));
    for (int64_t j = 0; j < hidden && c_.desc.cell == MP_RNN_GRU; ++j) {
      gate(0, j) = sigmoid(p(j) + q(j, step.h_before));
      reset[static_cast<size_t>(j)] = gate(0, j) * step.h_before[static_cast<size_t>(j)];
    }
    for (int64_t j = 0; j < hidden; ++j) {
      const size_t u = static_cast<size_t>(j);
      const auto a = [&](int64_t g) {
        return p(g * hidden + j) + q(g * hidden + j, step.h_before);
      };
      switch (c_.desc.cell) {
        case MP_RNN_TANH:
          step.h[u] = std::tanh(a(0));
          break;
        case MP_RNN_RELU:
          step.h[u] = std::max(a(0), 0.0);
          break;
        case MP_RNN_LSTM: {
          gate(0, j) = sigmoid(a(0)), gate(1, j) = sigmoid(a(1));
          gate(2, j) = std::tanh(a(2)), gate(3, j) = sigmoid(a(3));
          double value = gate(1, j) * step.c_before[u] + gate(0, j) * gate(2, j);
          const double clip = c_.desc.clip;
          if (clip > 0.0 && std::fabs(value) >= clip) {
            value = std::copysign(clip, value);
            step.clipped[u] = true;
          }
          step.c[u] = value;
          step.h[u] = gate(3, j) * std::tanh(value);
          break;
        }
        default: {
          gate(1, j) = sigmoid(a(1));
          if (c_.has(MP_RNN_FLAG_RESET_FIRST)) {
            gate(2, j) = std::tanh(p(2 * hidden + j) + q(2 * hidden + j, reset));
          } else {
            step.q_n[u] = q(2 * hidden + j, step.h_before);
            gate(2, j) = std::tanh(p(2 * hidden + j) + gate(0, j) * step.q_n[u]);
          }
          step.h[u] = (1.0 - gate(1, j)) * gate(2, j) + gate(1, j) * step.h_before[u];
        }
      }
    }
  }

  void backward() {
    const auto zeros = [](int64_t count) { return Values(static_cast<size_t>(count)); };
    for (int64_t i = 0; i < c_.num_weights(); ++i)
      result_.dw.push_back({zeros(c_.gate_rows() * c_.inputs(i / c_.directions())),
                            zeros(c_.gate_rows() * c_.hidden()), zeros(c_.gate_rows()),
                            zeros(c_.gate_rows())});
    result_.dh0.resize(static_cast<size_t>(c_.states_size()));
    result_.dc0.resize(c_.is_lstm() ? static_cast<size_t>(c_.states_size()) : 0);
    Values dy = data_.dy;
    for (int64_t layer = c_.desc.layers - 1; layer >= 0; --layer) {
      Values dx = zeros(c_.desc.timesteps * c_.desc.batch * c_.inputs(layer));
      for (int64_t d = 0; d < c_.directions(); ++d)
        for (int64_t n = 0; n < c_.desc.batch; ++n) backward_sequence(layer, d, n, dy, dx);
      if (layer > 0) drop(layer, dx);
      dy = dx;
    }
    result_.dx = dy;
    if (!c_.has(MP_RNN_FLAG_ACCUMULATE)) return;
    for (size_t i = 0; i < result_.dw.size(); ++i)
      for (const RnnPart &part : kRnnParts) {
        Values &sum = result_.dw[i].*part.values;
        for (size_t j = 0; j < sum.size(); ++j) sum[j] += (data_.dw[i].*part.values)[j];
      }
  }

  void backward_sequence(int64_t layer, int64_t d, int64_t n, const Values &dy, Values &dx) {
    const size_t at = c_.state_at(layer, d, n), hidden = static_cast<size_t>(c_.hidden());
    Values dh(hidden), dc(hidden);
    for (size_t j = 0; j < hidden; ++j) {
      if (!data_.dhn.empty()) dh[j] = data_.dhn[at + j];
      if (!data_.dcn.empty()) dc[j] = data_.dcn[at + j];
    }
    for (int64_t i = c_.length(n) - 1; i >= 0; --i) {
      const int64_t t = step_number(d, n, i);
      for (size_t j = 0; j < hidden; ++j) dh[j] += dy[c_.y_at(t, n, d) + j];
      backward_step(layer, d, n, t, dh, dc, dx);
    }
    for (size_t j = 0; j < hidden; ++j) {
      result_.dh0[at + j] = dh[j];
      if (c_.is_lstm()) result_.dc0[at + j] = dc[j];
    }
  }

  /// Adds the contributions of gradient `grad` of q[row], whose operand was v, to dW_hh, db_hh and
  /// dv.
  void spread(const RnnWeights &w, RnnWeights &dw, int64_t row, double grad, const Values &v,
              Values &dv) {
    const int64_t hidden = c_.hidden();
    dw.b_hh[static_cast<size_t>(row)] += note(grad);
    for (int64_t k = 0; k < hidden; ++k) {
      const size_t i = static_cast<size_t>(row * hidden + k), unit = static_cast<size_t>(k);
      dw.w_hh[i] += grad * v[unit];
      dv[unit] += grad * w.w_hh[i];
    }
  }
  /// Adds the contributions of gradient `grad` of p[row] to dW_ih, db_ih and dx.
  void spread_input(int64_t layer, const RnnWeights &w, RnnWeights &dw, int64_t row, double grad,
                    size_t x_at, Values &dx) const {
    const int64_t inputs = c_.inputs(layer);
    dw.b_ih[static_cast<size_t>(row)] += grad;
    if (layer == 0 && c_.has(MP_RNN_FLAG_SKIP_INPUT)) {
      dx[x_at + static_cast<size_t>(row % c_.hidden())] += grad;
      return;
    }
    const Values &x = inputs_[static_cast<size_t>(layer)];
    for (int64_t k = 0; k < inputs; ++k) {
      const size_t i = static_cast<size_t>(row * inputs + k), from = x_at + static_cast<size_t>(k);
      dw.w_ih[i] += grad * x[from];
      dx[from] += grad * w.w_ih[i];
    }
  }

  void backward_step(int64_t layer, int64_t d, int64_t n, int64_t t, Values &dh, Values &dc,
                     Values &dx) {
    const RnnStep &step = step_at(layer, d, n, t);
    const RnnWeights &w = weights(layer, d);
    RnnWeights &dw = result_.dw[static_cast<size_t>(layer * c_.directions() + d)];
    const int64_t hidden = c_.hidden();
    const size_t x_at = static_cast<size_t>((t * c_.desc.batch + n) * c_.inputs(layer));
    Values dh_before(static_cast<size_t>(hidden)), d_reset(static_cast<size_t>(hidden));
    Values reset(static_cast<size_t>(hidden));
    const auto gate = [&](int64_t g, int64_t j) {
      return step.gates[static_cast<size_t>(g * hidden + j)];
    };
    // The pre-activation p + q of a gate: both summands have the same gradient.
    const auto both = [&](int64_t g, int64_t j, double grad) {
      spread_input(layer, w, dw, g * hidden + j, grad, x_at, dx);
      spread(w, dw, g * hidden + j, grad, step.h_before, dh_before);
    };
    for (int64_t j = 0; j < hidden; ++j) {
      const size_t u = static_cast<size_t>(j);
      switch (c_.desc.cell) {
        case MP_RNN_TANH:
          both(0, j, dh[u] * (1.0 - step.h[u] * step.h[u]));
          break;
        case MP_RNN_RELU:
          both(0, j, step.h[u] > 0.0 ? dh[u] : 0.0);
          break;
        case MP_RNN_LSTM: {
          const double i = gate(0, j), f = gate(1, j), g = gate(2, j), o = gate(3, j);
          const double tanh_c = std::tanh(step.c[u]);
          const double grad_c = step.clipped[u] ? 0.0 : dc[u] + dh[u] * o * (1.0 - tanh_c * tanh_c);
          both(0, j, grad_c * g * i * (1.0 - i));
          both(1, j, grad_c * step.c_before[u] * f * (1.0 - f));
          both(2, j, grad_c * i * (1.0 - g * g));
          both(3, j, dh[u] * tanh_c * o * (1.0 - o));
          dc[u] = grad_c * f;
          break;
        }
        default: {
          const double r = gate(0, j), z = gate(1, j), v = gate(2, j), h = step.h_before[u];
          const double dn = dh[u] * (1.0 - z) * (1.0 - v * v);
          dh_before[u] += dh[u] * z;
          both(1, j, dh[u] * (h - v) * z * (1.0 - z));
          spread_input(layer, w, dw, 2 * hidden + j, dn, x_at, dx);
          if (c_.has(MP_RNN_FLAG_RESET_FIRST)) {
            for (size_t k = 0; k < reset.size(); ++k)
              reset[k] = gate(0, static_cast<int64_t>(k)) * step.h_before[k];
            spread(w, dw, 2 * hidden + j, dn, reset, d_reset);
          } else {
            spread(w, dw, 2 * hidden + j, dn * r, step.h_before, dh_before);
            both(0, j, dn * step.q_n[u] * r * (1.0 - r));
          }
        }
      }
    }
    for (int64_t j = 0; j < hidden && c_.has(MP_RNN_FLAG_RESET_FIRST); ++j) {
      const size_t u = static_cast<size_t>(j);
      const double r = gate(0, j);
      dh_before[u] += d_reset[u] * r;
      both(0, j, d_reset[u] * step.h_before[u] * r * (1.0 - r));
    }
    dh = dh_before;
  }

  const RnnCase &c_;
  const RnnData &data_;
  const Mask mask_;
  std::vector<RnnStep> steps_;
  std::vector<Values> inputs_;  ///< per layer, after dropout
  RnnResult result_;
  double largest_ = 0.0;
};

}  // namespace mptest::oracle
