// Recurrent networks with exact results, compared bit for bit.
//
// RELU cells: W_hh is a signed permutation and a row of W_ih has one nonzero, so h and all
// gradients remain integers that every type represents; the oracle reports their largest magnitude.
// LSTM and GRU: biases of +-infinity make every gate 0, 1 or -1, so c and h are exact too.
#include <algorithm>
#include <numeric>

#include "oracle_rnn.h"
#include "rnn_run.h"
#include "tests/support/any.h"
#include "tests/support/named_plan.h"

using namespace mptest;

namespace {

// ---------------------------------------------------------------------------- exact values

Values signed_permutation(int64_t rows, int64_t columns, Random &random) {
  Values w(static_cast<size_t>(rows * columns));
  std::vector<int64_t> order(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; ++i) {
    if (i % columns == 0) {
      std::iota(order.begin(), order.end(), 0);
      for (size_t j = order.size(); j > 1; --j)
        std::swap(order[j - 1],
                  order[static_cast<size_t>(random.integer(0, static_cast<int64_t>(j) - 1))]);
    }
    const int64_t column = order[static_cast<size_t>(i % columns)];
    w[static_cast<size_t>(i * columns + column)] = random.integer(0, 1) == 0 ? -1.0 : 1.0;
  }
  return w;
}

Values integers(int64_t count, int64_t low, int64_t high, Random &random) {
  return drawn(count, MP_FP32, [&] { return static_cast<double>(random.integer(low, high)); });
}

RnnData exact_data(const RnnCase &c, uint64_t seed) {
  Random random(seed);
  const int64_t rows = int64_t{c.desc.timesteps} * c.desc.batch;
  RnnData data;
  data.x = integers(rows * c.desc.input_size, -1, 1, random);
  data.h0 = integers(c.states ? c.states_size() : 0, -1, 2, random);
  for (int64_t i = 0; i < c.num_weights(); ++i) {
    data.weights.push_back({signed_permutation(c.hidden(), c.inputs(i / c.directions()), random),
                            signed_permutation(c.hidden(), c.hidden(), random),
                            integers(c.hidden(), -1, 1, random),
                            integers(c.hidden(), 0, 1, random)});
    const RnnWeights &w = data.weights.back();
    const auto like = [&](const Values &of) {
      return integers(static_cast<int64_t>(of.size()), -3, 3, random);
    };
    data.dw.push_back({like(w.w_ih), like(w.w_hh), like(w.b_ih), like(w.b_hh)});
  }
  data.dy = integers(rows * c.outputs(), -1, 1, random);
  data.dhn = integers(c.states ? c.states_size() : 0, -1, 1, random);
  hide_padding(c, data.x, c.desc.input_size);
  hide_padding(c, data.dy, c.outputs());
  return data;
}

// ---------------------------------------------------------------------------- cases

std::vector<int32_t> random_lengths(int32_t batch, int32_t timesteps, Random &random) {
  std::vector<int32_t> lengths;
  for (int32_t n = 0; n < batch; ++n) {
    const int32_t some = static_cast<int32_t>(random.integer(0, timesteps));
    lengths.push_back(any(random, {0, 1, timesteps, some, some}));
  }
  return lengths;
}

/// Returns a random RELU network.
RnnCase random_case(uint64_t seed) {
  Random random(seed);
  const int32_t hidden = any(random, {1, 3, 8, 16, 17, 32, 33, 40, 64, 65, 72, 136});
  const int32_t batch = any(random, {1, 2, 3, 7, 16, 17, 33, 64, 130});
  uint32_t flags = 0;
  for (const uint32_t flag : {MP_RNN_FLAG_BIDIRECTIONAL, MP_RNN_FLAG_NO_BIAS,
                              MP_RNN_FLAG_SKIP_INPUT, MP_RNN_FLAG_ACCUMULATE})
    if (random.integer(0, 2) == 0) flags |= flag;
  const int32_t input = flags & MP_RNN_FLAG_SKIP_INPUT ? hidden : any(random, {1, 5, 8, 24, 33});
  const int32_t timesteps = any(random, {1, 2, 3, 5, 6});
  const int32_t layers = any(random, {1, 2, 3});
  RnnCase c =
      make_rnn(MP_RNN_RELU, batch, timesteps, input, hidden, any(random, kDtypes), flags, layers);
  c.states = random.integer(0, 2) != 0;
  c.final_states = random.integer(0, 2) != 0;
  c.offset = random.integer(0, 3) == 0 ? 1 : 0;
  c.layout = any(random, {RnnLayout::kDense, RnnLayout::kPadded, RnnLayout::kBatchMajor});
  if (random.integer(0, 1) != 0) {
    c.lengths = random_lengths(batch, timesteps, random);
    c.packed = random.integer(0, 1) != 0;
    if (c.packed) {
      c.layout = any(random, {RnnLayout::kDense, RnnLayout::kPadded});
      std::sort(c.lengths.rbegin(), c.lengths.rend());
    }
  }
  return c;
}

std::string text(const RnnCase &c) {
  const mp_rnn_desc_t &d = c.desc;
  std::string line = format(
      "cell=%d flags=%u %s dw=%s layers=%d batch=%d timesteps=%d input=%d hidden=%d states=%d "
      "final=%d layout=%d offset=%d packed=%d lengths=",
      d.cell, d.flags, mp_dtype_name(d.dtype), mp_dtype_name(d.dtype_dw), d.layers, d.batch,
      d.timesteps, d.input_size, d.hidden_size, c.states, c.final_states,
      static_cast<int>(c.layout), static_cast<int>(c.offset), c.packed);
  for (const int32_t length : c.lengths) line += format("%d,", length);
  return line;
}

// ---------------------------------------------------------------------------- checks

/// Counts elements that differ from the exact value, which must be representable in the type.
int64_t count_different(const Values &wanted, const Values &got, mp_dtype_t dtype) {
  REQUIRE(got.size() == wanted.size());
  int64_t wrong = 0, not_exact = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    wrong += !same_value(wanted[i], got[i]);
    not_exact += !same_value(wanted[i], round_to(dtype, wanted[i]));
  }
  REQUIRE(not_exact == 0);
  return wrong;
}

/// Checks the kernel that the case names.
void check_results(const RnnCase &c, const RnnData &data, const RnnResult &wanted) {
  const RnnResult got = train(c, data);
  const mp_dtype_t dtype = c.desc.dtype;
  CHECK(count_different(wanted.y, got.y, dtype) == 0);
  CHECK(count_different(wanted.dx, got.dx, dtype) == 0);
  if (c.final_states) {
    CHECK(count_different(wanted.hn, got.hn, dtype) == 0);
    CHECK(count_different(wanted.dh0, got.dh0, dtype) == 0);
  }
  each_weight_gradient(c, wanted, got, [&](const char *name, const Values &a, const Values &b) {
    CAPTURE(name);
    CHECK(count_different(a, b, *name == 'b' ? MP_FP32 : c.desc.dtype_dw) == 0);
  });
  CHECK(got.found_inf == 0.0f);
}

/// Checks every kernel.
void check_exact(RnnCase c, uint64_t seed) {
  const RnnData data = exact_data(c, seed);
  oracle::Rnn oracle(c, data);
  const RnnResult wanted = oracle.run();
  CAPTURE(text(c), seed);
  REQUIRE(oracle.largest() <= std::ldexp(1.0, format_of(c.desc.dtype).digits));
  for (const char *const kernel : kernels_of(c)) {
    c.desc.plan = named_plan(kernel);
    CAPTURE(kernel);
    check_results(c, data, wanted);
  }
}

}  // namespace

// ---------------------------------------------------------------------------- RELU

TEST_CASE("rnn: many integer networks are exact", "[rnn][long]") {
  for (uint64_t seed = 1; seed <= 300; ++seed) check_exact(random_case(seed), seed);
}

TEST_CASE("rnn: integer networks are exact", "[rnn]") {
  for (uint64_t seed = 301; seed <= 380; ++seed) check_exact(random_case(seed), seed);
}

TEST_CASE("rnn: a few integer networks are exact", "[rnn][short]") {
  for (uint64_t seed = 1001; seed <= 1012; ++seed) {
    RnnCase c = random_case(seed);
    if (c.desc.batch <= 33) check_exact(c, seed);
  }
}

TEST_CASE("rnn: more k tiles than pipeline stages are exact", "[rnn][short]") {
  uint64_t seed = 0;
  for (const mp_dtype_t dtype : kHalfTypes)
    for (const int32_t batch : {5, 70})
      for (const int32_t hidden : {201, 264})
        check_exact(make_rnn(MP_RNN_RELU, batch, 3, 24, hidden, dtype, MP_RNN_FLAG_BIDIRECTIONAL),
                    ++seed);
}

TEST_CASE("rnn: inputs added directly to every gate are exact", "[rnn][short]") {
  uint64_t seed = 0;
  for (const mp_dtype_t dtype : kDtypes)
    for (const uint32_t flags : {0u, uint32_t{MP_RNN_FLAG_BIDIRECTIONAL}}) {
      RnnCase c = make_rnn(MP_RNN_RELU, 70, 3, 72, 72, dtype, flags | MP_RNN_FLAG_SKIP_INPUT);
      c.states = c.final_states = false;
      check_exact(c, ++seed);
    }
}

TEST_CASE("rnn: 16-bit weight gradients are exact", "[rnn][short]") {
  uint64_t seed = 0;
  for (const mp_dtype_t dtype : kDtypes)
    for (const mp_dtype_t dtype_dw : kDtypes)
      for (const uint32_t flags : {0u, uint32_t{MP_RNN_FLAG_ACCUMULATE}}) {
        RnnCase c = make_rnn(MP_RNN_RELU, 3, 4, 9, 24, dtype, flags);
        c.desc.dtype_dw = dtype_dw;
        check_exact(c, ++seed);
      }
}

TEST_CASE("rnn: more steps than one W_ih product covers", "[rnn]") {
  for (const uint32_t flags : {0u, uint32_t{MP_RNN_FLAG_BIDIRECTIONAL}}) {
    RnnCase c = make_rnn(MP_RNN_RELU, 900, 5, 8, 8, MP_FP16, flags, 2);
    check_exact(c, 1);
    Random random(2);
    c.lengths = random_lengths(900, 5, random);
    check_exact(c, 3);
  }
}

// ---------------------------------------------------------------------------- saturated gates

namespace {

/// Returns data that saturate every gate and candidate.
RnnData saturated_data(const RnnCase &c, uint64_t seed) {
  RnnData data = real_data(c, seed);
  Random random(seed + 1);
  for (double &value : data.h0) value = static_cast<double>(random.integer(-8, 8));
  for (double &value : data.c0) value = static_cast<double>(random.integer(-8, 8));
  for (RnnWeights &w : data.weights)
    for (double &value : w.b_ih) value = random.integer(0, 1) != 0 ? kInfinity : -kInfinity;
  return data;
}

}  // namespace

TEST_CASE("rnn: saturated LSTM gates are exact", "[rnn][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const uint32_t flags : {0u, uint32_t{MP_RNN_FLAG_BIDIRECTIONAL}}) {
      const RnnCase c = make_rnn(MP_RNN_LSTM, 5, 6, 7, 19, dtype, flags);
      const RnnData data = saturated_data(c, 1);
      CAPTURE(text(c));
      const RnnResult wanted = oracle::Rnn(c, data).forward();
      RnnRun run(c, data);
      require_ok(run.forward_training());
      const RnnResult got = run.result();
      CHECK(count_different(wanted.cn, got.cn, MP_FP32) == 0);
      int64_t wrong =
          0;  // fp32 tanh of an integer has an error of a few ulp, before rounding to the type of h
      for (size_t i = 0; i < got.y.size(); ++i)
        wrong += std::fabs(got.y[i] - wanted.y[i]) >
                 1.01 * unit_roundoff(dtype) + 4.0 * unit_roundoff(MP_FP32);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("rnn: saturated GRU gates are exact in both forms", "[rnn][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const uint32_t flags : {0u, uint32_t{MP_RNN_FLAG_RESET_FIRST}}) {
      const RnnCase c = make_rnn(MP_RNN_GRU, 5, 6, 7, 19, dtype, flags | MP_RNN_FLAG_BIDIRECTIONAL);
      RnnData data = saturated_data(c, 1);
      Random random(3);
      for (double &value : data.dy) value = static_cast<double>(random.integer(-2, 2));
      for (double &value : data.dhn) value = static_cast<double>(random.integer(-2, 2));
      CAPTURE(text(c));
      const RnnResult wanted = oracle::Rnn(c, data).run(), got = train(c, data);
      CHECK(count_different(wanted.y, got.y, dtype) == 0);
      CHECK(count_different(wanted.hn, got.hn, dtype) == 0);
      CHECK(count_different(wanted.dh0, got.dh0, dtype) == 0);
    }
  }
}
