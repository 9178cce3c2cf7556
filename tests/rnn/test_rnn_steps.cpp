// Forward steps within derived bounds: every step is recomputed in fp64 from the library's h and c
// of the previous step, so errors do not accumulate.
//
// The bound depends on the operands (running_error.h): sums of products in any order, the logistic
// function and tanh with an error of 2.5 ulp (kernels/simt/logistic.h) and slopes of at most 1/4
// and 1, and one rounding to the type of h.
#include "rnn_run.h"
#include "tests/support/named_plan.h"
#include "tests/support/running_error.h"

using namespace mptest;

namespace {

constexpr double kUlps = 2.5 * 2.0;  // in units of the unit roundoff u

Bounded logistic(const Bounded &a) {
  const double s = 1.0 / (1.0 + std::exp(-a.value));
  return {s, 0.25 * a.error + kUlps * unit_roundoff(MP_FP32) * s};
}
Bounded tanh_of(const Bounded &a) {
  const double t = std::tanh(a.value);
  return {t, a.error + kUlps * unit_roundoff(MP_FP32) * std::fabs(t)};
}

struct Before {
  Values h, c;  ///< states of one sequence
};

class Step {
 public:
  Step(const RnnCase &c, const RnnData &data, int64_t t, int64_t n, const Before &before)
      : c_(c), w_(data.weights[0]), x_(data.x.data() + c.x_at(t, n)), before_(before) {}

  /// New h and c of a unit.
  struct Result {
    Bounded h, c;
  };
  Result unit(int64_t j) const {
    const auto a = [&](int64_t gate) { return p(gate, j) + q(gate, j, before_.h); };
    const Bounded h = before_.h[static_cast<size_t>(j)];
    switch (c_.desc.cell) {
      case MP_RNN_TANH:
        return {tanh_of(a(0)), {}};
      case MP_RNN_RELU: {
        const Bounded sum = a(0);
        return {{std::max(sum.value, 0.0), sum.error}, {}};
      }
      case MP_RNN_LSTM: {
        const Bounded i = logistic(a(0)), f = logistic(a(1)), g = tanh_of(a(2));
        const Bounded c = f * Bounded(before_.c[static_cast<size_t>(j)]) + i * g;
        return {logistic(a(3)) * tanh_of(c), c};
      }
      default: {
        const Bounded r = logistic(a(0)), z = logistic(a(1));
        const Bounded n = tanh_of(p(2, j) + r * q(2, j, before_.h));
        return {(Bounded(1.0) - z) * n + z * h, {}};
      }
    }
  }

 private:
  Bounded p(int64_t gate, int64_t j) const {
    return dot(x_, w_.w_ih, gate * c_.hidden() + j, c_.desc.input_size) + bias(w_.b_ih, gate, j);
  }
  Bounded q(int64_t gate, int64_t j, const Values &h) const {
    return dot(h.data(), w_.w_hh, gate * c_.hidden() + j, c_.hidden()) + bias(w_.b_hh, gate, j);
  }
  Bounded bias(const Values &b, int64_t gate, int64_t j) const {
    return b[static_cast<size_t>(gate * c_.hidden() + j)];
  }
  static Bounded dot(const double *v, const Values &w, int64_t row, int64_t k) {
    BoundedSum sum;
    for (int64_t i = 0; i < k; ++i) sum.add(v[i] * w[static_cast<size_t>(row * k + i)]);
    return sum.total();
  }

  const RnnCase &c_;
  const RnnWeights &w_;
  const double *const x_;
  const Before &before_;
};

/// Returns c of every step, which is c_n of a run that ends there.
std::vector<Values> cells_of(const RnnCase &c, const RnnData &data) {
  std::vector<Values> cells = {data.c0};
  for (int32_t t = 1; t <= c.desc.timesteps && c.is_lstm(); ++t) {
    RnnCase shorter = c;
    shorter.lengths.assign(static_cast<size_t>(c.desc.batch), t);
    RnnRun run(shorter, data);
    require_ok(run.forward_training());
    cells.push_back(run.result().cn);
  }
  return cells;
}

Values of_sequence(const Values &states, const RnnCase &c, int64_t n) {
  if (states.empty()) return {};
  const auto begin = states.begin() + n * c.hidden();
  return {begin, begin + c.hidden()};
}

void check_steps(const RnnCase &c, uint64_t seed) {
  const RnnData data = real_data(c, seed);
  RnnRun run(c, data);
  require_ok(run.forward_training());
  const Values y = run.result().y;
  const std::vector<Values> cells = cells_of(c, data);
  int64_t wrong_h = 0, wrong_c = 0;
  for (int64_t t = 0; t < c.desc.timesteps; ++t) {
    const Values h_before = t == 0 ? data.h0
                                   : Values(y.begin() + static_cast<int64_t>(c.y_at(t - 1, 0)),
                                            y.begin() + static_cast<int64_t>(c.y_at(t, 0)));
    for (int64_t n = 0; n < c.desc.batch; ++n) {
      const Before before{
          of_sequence(h_before, c, n),
          c.is_lstm() ? of_sequence(cells[static_cast<size_t>(t)], c, n) : Values{}};
      const Step step(c, data, t, n, before);
      for (int64_t j = 0; j < c.hidden(); ++j) {
        const Step::Result wanted = step.unit(j);
        wrong_h += !within(wanted.h, y[c.y_at(t, n) + static_cast<size_t>(j)], c.desc.dtype);
        if (!c.is_lstm()) continue;
        const Values &after = cells[static_cast<size_t>(t + 1)];
        wrong_c += !within(wanted.c, after[static_cast<size_t>(n * c.hidden() + j)]);
      }
    }
  }
  CAPTURE(c.desc.cell, mp_dtype_name(c.desc.dtype), c.desc.hidden_size);
  CHECK(wrong_h == 0);
  CHECK(wrong_c == 0);
}

/// Checks a network without rows: final states and their gradients are copies of the initial ones,
/// or 0 if these are not passed; gradients of weights are 0 or, if accumulated, unchanged.
void check_without_rows(const RnnCase &c) {
  RnnData data = real_data(c, 13);
  data.dw = data.weights;
  RnnRun run(c, data), inference(c, data);
  if (!c.packed && c.layout != RnnLayout::kPadded)
    for (mp_rnn_tensors_t *const t : {&run.tensors, &inference.tensors}) {
      t->x = t->dy = t->y = t->dx = nullptr;
      t->reserve = nullptr, t->reserve_bytes = 0;
    }
  run.train();
  expect_none(run.damage(), "");
  require_ok(inference.forward_inference());
  expect_none(inference.damage(), "");
  const RnnResult got = run.result(), inferred = inference.result();
  const auto copied = [](const Values &to, const Values &from) {
    return equal(to, from.empty() ? Values(to.size(), 0.0) : from);
  };
  CHECK((copied(got.hn, data.h0) && copied(got.cn, data.c0)));
  CHECK((copied(inferred.hn, data.h0) && copied(inferred.cn, data.c0)));
  CHECK((copied(got.dh0, data.dhn) && copied(got.dc0, data.dcn)));
  for (size_t i = 0; i < got.dw.size(); ++i)
    for (const RnnPart &part : kRnnParts)
      CHECK(copied(got.dw[i].*part.values,
                   c.has(MP_RNN_FLAG_ACCUMULATE) ? data.weights[i].*part.values : Values{}));
}

}  // namespace

TEST_CASE("rnn: every step is within its bound", "[rnn]") {
  uint64_t seed = 0;
  for (const mp_rnn_cell_t cell : {MP_RNN_TANH, MP_RNN_RELU, MP_RNN_LSTM, MP_RNN_GRU})
    for (const mp_dtype_t dtype : kDtypes)
      for (const int32_t hidden : {8, 33, 136}) {
        RnnCase c = make_rnn(cell, 5, 7, 19, hidden, dtype);
        for (const char *const kernel : kernels_of(c)) {
          c.desc.plan = named_plan(kernel);
          check_steps(c, ++seed);
        }
      }
}

TEST_CASE("rnn: rows that are not 16-byte aligned give the same bits with wgmma", "[rnn][short]") {
  // W_ih is omitted, because its product has other kernels for unaligned rows.
  constexpr int32_t kHidden = 136;
  int ran = 0;
  for (const RnnCell &cell : kRnnCells)
    for (const mp_dtype_t dtype : kHalfTypes) {
      RnnCase dense = make_rnn(cell.cell, 20, 3, kHidden, kHidden, dtype,
                               cell.flags | uint32_t{MP_RNN_FLAG_SKIP_INPUT});
      dense.desc.plan = named_plan("rnn_fused_wgmma");
      if (!is_supported("rnn_fused_wgmma", dense)) continue;
      ran++;
      RnnCase padded = dense;
      padded.layout = RnnLayout::kPadded;
      const RnnData data = real_data(dense, 9);
      CAPTURE(cell.cell, dtype);
      const RnnResult wanted = train(dense, data), got = train(padded, data);
      CHECK(equal(got.y, wanted.y));
      CHECK(equal(got.cn, wanted.cn));
      CHECK(equal(got.dx, wanted.dx));
      CHECK(equal(got.dc0, wanted.dc0));
    }
  if (ran == 0) skip("no wgmma on this device");
}

TEST_CASE("rnn: without steps or sequences, states are copied", "[rnn][short]") {
  for (const RnnCell &cell : kRnnCells)
    for (const uint32_t flags : {0u, uint32_t{MP_RNN_FLAG_ACCUMULATE}})
      for (const auto &[batch, steps] : {std::pair{3, 0}, {0, 3}, {3, 5}})
        for (const bool has_states : {true, false}) {
          CAPTURE(cell.cell, cell.flags, flags, batch, steps, has_states);
          RnnCase c = make_rnn(cell.cell, batch, steps, 4, 8, MP_FP16, cell.flags | flags, 2);
          c.desc.dtype_dw = MP_FP16;
          c.states = has_states;
          c.packed = batch > 0 && steps > 0;
          if (c.packed) c.lengths = {0, 0, 0};
          check_without_rows(c);
          if (steps > 0) continue;
          c.layout = RnnLayout::kPadded;  // products of a batch of 0 steps
          check_without_rows(c);
        }
}

TEST_CASE("rnn: the reserve has the size of gates, c and h", "[rnn][short]") {
  struct Kept {
    mp_rnn_cell_t cell;
    uint32_t flags;
    size_t half, full;  ///< bytes per step, sequence, unit, layer and direction
  };
  struct Shape {
    int32_t layers, batch, timesteps, input, hidden;
    uint32_t flags;
  };
  constexpr uint32_t kBoth = MP_RNN_FLAG_BIDIRECTIONAL;
  for (const Kept &kept : {Kept{MP_RNN_TANH, 0, 4, 8},
                           {MP_RNN_RELU, MP_RNN_FLAG_NO_BIAS, 4, 8},
                           {MP_RNN_LSTM, MP_RNN_FLAG_ACCUMULATE, 14, 24},
                           {MP_RNN_GRU, 0, 10, 20},
                           {MP_RNN_GRU, MP_RNN_FLAG_RESET_FIRST, 10, 20}})
    for (const mp_dtype_t dtype : kDtypes)
      for (const Shape &s : {Shape{1, 1, 1, 1, 1, 0},
                             {2, 2, 3, 6, 4, kBoth},
                             {3, 5, 7, 300, 33, 0},
                             {1, 64, 50, 256, 512, kBoth},
                             {65535, 1, 1, 1, 1, kBoth},
                             {4, 1 << 12, 1 << 16, 8, 1 << 11, kBoth},
                             {2, 0, 3, 6, 4, kBoth},
                             {2, 2, 0, 6, 4, 0}}) {
        CAPTURE(kept.cell, kept.flags, dtype, s.layers, s.batch, s.timesteps, s.hidden);
        const RnnCase c = make_rnn(kept.cell, s.batch, s.timesteps, s.input, s.hidden, dtype,
                                   kept.flags | s.flags, s.layers);
        mp_rnn_sizes_t sizes;
        MP_INIT_STRUCT(&sizes);
        require_ok(mp_rnn_get_sizes(context(), &c.desc, &sizes));
        const size_t wanted = static_cast<size_t>(c.states_size()) *
                              static_cast<size_t>(s.timesteps) *
                              (dtype == MP_FP32 ? kept.full : kept.half);
        CHECK(sizes.reserve_bytes >= wanted);
        CHECK(sizes.reserve_bytes < wanted + 256);
        CHECK(sizes.gates == static_cast<uint32_t>(c.gates()));
        CHECK(sizes.directions == static_cast<uint32_t>(c.directions()));
        CHECK(sizes.num_weights == static_cast<uint32_t>(c.num_weights()));
      }
}
