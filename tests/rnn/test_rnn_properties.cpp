// Properties of recurrent networks that do not depend on values; non-finite values; edge cases.
#include <algorithm>
#include <functional>

#include "rnn_run.h"
#include "tests/support/named_plan.h"
#include "tests/support/tally.h"

using namespace mptest;

namespace {

/// Calls visit(case) for every cell, type and kernel, with two layers in both directions.
template <class Visit>
void each_case(Visit visit) {
  for (const RnnCell &cell : kRnnCells)
    for (const mp_dtype_t dtype : kDtypes) {
      RnnCase c =
          make_rnn(cell.cell, 6, 12, 10, 24, dtype, cell.flags | MP_RNN_FLAG_BIDIRECTIONAL, 2);
      for (const char *const kernel : kernels_of(c)) {
        RnnCase with_kernel = c;
        with_kernel.desc.plan = named_plan(kernel);
        CAPTURE(cell.cell, cell.flags, mp_dtype_name(dtype), kernel);
        visit(with_kernel);
      }
    }
}

RnnResult infer(const RnnCase &c, const RnnData &data) {
  RnnRun run(c, data);
  run.tensors.reserve = nullptr;
  require_ok(run.forward_inference());
  expect_none(run.damage(), "");
  return run.result();
}

void check_equal(const RnnResult &got, const RnnResult &wanted,
                 std::initializer_list<Values RnnResult::*> members) {
  for (const auto member : members) CHECK(equal(got.*member, wanted.*member));
}

/// Counts different elements except those for which is_skipped(row, column).
template <class Skipped>
int64_t count_other(const Values &wanted, const Values &got, int64_t columns, Skipped is_skipped) {
  int64_t other = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i);
    other += !is_skipped(at / columns, at % columns) && !same_value(wanted[i], got[i]);
  }
  return other;
}

/// Rearranges rows of `columns` elements into [t][n] with other extents.
Values rearranged(const Values &values, int64_t timesteps, int64_t batch, int64_t columns,
                  const std::function<int64_t(int64_t, int64_t)> &row_of) {
  Values result;
  for (int64_t t = 0; t < timesteps; ++t)
    for (int64_t n = 0; n < batch; ++n) {
      const auto begin = values.begin() + row_of(t, n) * columns;
      result.insert(result.end(), begin, begin + columns);
    }
  return result;
}

}  // namespace

// ---------------------------------------------------------------------------- equal bits

TEST_CASE("rnn: repeated calls and inference give the same bits", "[rnn][short]") {
  each_case([](RnnCase &c) {
    c.lengths = {12, 3, 0, 7, 1, 12};
    const RnnData data = real_data(c, 1);
    const RnnResult first = train(c, data), second = train(c, data), inferred = infer(c, data);
    check_same(c, first, second);
    check_equal(inferred, first, {&RnnResult::y, &RnnResult::hn, &RnnResult::cn});
  });
}

TEST_CASE("rnn: additional padding changes no bit", "[rnn][short]") {
  each_case([](RnnCase &c) {
    c.lengths = {12, 3, 0, 7, 1, 12};
    const RnnData data = real_data(c, 2);
    RnnCase longer = c;
    longer.desc.timesteps = 17;
    RnnData padded = data;
    padded.x.resize(static_cast<size_t>(17 * 6 * c.desc.input_size), kNaN);
    padded.dy.resize(static_cast<size_t>(17 * 6 * c.outputs()), kNaN);
    RnnResult wanted = train(c, data);
    const RnnResult got = train(longer, padded);
    wanted.y.resize(got.y.size());
    wanted.dx.resize(got.dx.size());
    check_equal(got, wanted,
                {&RnnResult::y, &RnnResult::hn, &RnnResult::cn, &RnnResult::dx, &RnnResult::dh0,
                 &RnnResult::dc0});
  });
}

TEST_CASE("rnn: a permuted batch gives permuted results", "[rnn][short]") {
  constexpr int64_t kOrder[] = {4, 0, 5, 2, 1, 3};
  each_case([&](RnnCase &c) {
    c.lengths = {12, 3, 0, 7, 1, 12};
    const RnnData data = real_data(c, 3);
    RnnCase other = c;
    for (size_t n = 0; n < 6; ++n) other.lengths[n] = c.lengths[static_cast<size_t>(kOrder[n])];
    const auto permute = [&](const Values &values, int64_t steps, int64_t columns) {
      if (values.empty()) return values;
      return rearranged(values, steps, 6, columns,
                        [&](int64_t t, int64_t n) { return t * 6 + kOrder[n]; });
    };
    RnnData permuted = data;
    permuted.x = permute(data.x, 12, c.desc.input_size);
    permuted.dy = permute(data.dy, 12, c.outputs());
    for (Values *state : {&permuted.h0, &permuted.c0, &permuted.dhn, &permuted.dcn})
      *state = permute(*state, c.num_weights(), c.hidden());
    const RnnResult wanted = train(c, data), got = train(other, permuted);
    CHECK(equal(got.y, permute(wanted.y, 12, c.outputs())));
    CHECK(equal(got.dx, permute(wanted.dx, 12, c.desc.input_size)));
    CHECK(equal(got.hn, permute(wanted.hn, c.num_weights(), c.hidden())));
    CHECK(equal(got.dh0, permute(wanted.dh0, c.num_weights(), c.hidden())));
  });
}

TEST_CASE("rnn: a sequence has the same bits in any batch with wgmma", "[rnn][short]") {
  // W_ih is omitted, because its product has different kernels for few and for many rows.
  constexpr int32_t kSteps = 3, kHidden = 136, kBatch = 70;
  int ran = 0;
  for (const RnnCell &cell : kRnnCells) {
    RnnCase many = make_rnn(cell.cell, kBatch, kSteps, kHidden, kHidden, MP_BF16,
                            cell.flags | uint32_t{MP_RNN_FLAG_SKIP_INPUT});
    many.desc.plan = named_plan("rnn_fused_wgmma");
    many.states = many.final_states = false;
    if (!is_supported("rnn_fused_wgmma", many)) continue;
    ran++;
    RnnCase one = many;
    one.desc.batch = 1;
    const RnnData data = real_data(many, 9);
    RnnData alone = data;
    const auto last = [](const Values &values) {
      return rearranged(values, kSteps, 1, kHidden,
                        [](int64_t t, int64_t) { return t * kBatch + kBatch - 1; });
    };
    alone.x = last(data.x);
    alone.dy = last(data.dy);
    CAPTURE(cell.cell);
    const RnnResult wanted = train(many, data), got = train(one, alone);
    CHECK(equal(got.y, last(wanted.y)));
    CHECK(equal(got.dx, last(wanted.dx)));
  }
  if (ran == 0) skip("no wgmma on this device");
}

TEST_CASE("rnn: consecutive windows that pass on h and c give the same bits", "[rnn][short]") {
  for (const RnnCell &cell : kRnnCells)
    for (const mp_dtype_t dtype : kDtypes) {
      RnnCase c = make_rnn(cell.cell, 12, 18, 10, 24, dtype, cell.flags, 2);
      c.desc.plan = named_plan(kernels_of(c).back());
      CAPTURE(cell.cell, cell.flags, mp_dtype_name(dtype));
      const RnnData data = real_data(c, 4);
      const RnnResult whole = infer(c, data);
      RnnCase window = c;
      RnnData part = data;
      Values y;
      RnnResult last;
      for (int32_t begin = 0; begin < 18; begin += window.desc.timesteps) {
        window.desc.timesteps = begin == 0 ? 7 : 11;
        part.x.assign(
            data.x.begin() + static_cast<int64_t>(c.x_at(begin, 0)),
            data.x.begin() + static_cast<int64_t>(c.x_at(begin + window.desc.timesteps, 0)));
        part.dy.resize(static_cast<size_t>(window.desc.timesteps * 12 * c.outputs()));
        last = infer(window, part);
        y.insert(y.end(), last.y.begin(), last.y.end());
        part.h0 = last.hn;
        part.c0 = last.cn;
        if (begin != 0) break;
      }
      CHECK(equal(y, whole.y));
      CHECK(equal(last.hn, whole.hn));
      CHECK(equal(last.cn, whole.cn));
    }
}

TEST_CASE("rnn: packed and padded batches give the same bits", "[rnn][short]") {
  each_case([](RnnCase &c) {
    c.lengths = {12, 12, 7, 3, 1, 0};
    c.desc.dropout = 0.5f;
    const RnnData data = real_data(c, 6);
    RnnCase packed = c;
    packed.packed = true;
    const RnnResult wanted = train(c, data), got = train(packed, data);
    check_equal(got, wanted,
                {&RnnResult::y, &RnnResult::hn, &RnnResult::cn, &RnnResult::dx, &RnnResult::dh0});
  });
}

TEST_CASE("rnn: dropout depends on its seed and offset", "[rnn][short]") {
  RnnCase c = make_rnn(MP_RNN_GRU, 6, 8, 10, 24, MP_FP16, 0, 2);
  const RnnData data = real_data(c, 7);
  const auto y = [&] {
    RnnRun run(c, data);
    require_ok(run.forward_training());
    return run.result().y;
  };
  const Values undropped = y();
  c.desc.dropout = 0.5f;
  const Values seed_0 = y();
  CHECK(!equal(seed_0, undropped));
  CHECK(equal(infer(c, data).y, undropped));
  c.desc.dropout_seed = 1;
  CHECK(!equal(y(), seed_0));
  c.desc.dropout_seed = 0;
  c.has_dropout_offset = true;
  CHECK(equal(y(), seed_0));
  c.dropout_offset = 1;
  CHECK(!equal(y(), seed_0));
}

// ---------------------------------------------------------------------------- non-finite values

TEST_CASE("rnn: a NaN in a sequence does not reach other sequences", "[rnn][short]") {
  each_case([](RnnCase &c) {
    c.lengths = {12, 3, 12, 7, 1, 12};
    const RnnData clean = real_data(c, 8);
    RnnData data = clean;
    data.x[c.x_at(5, 2)] = kNaN;
    const RnnResult wanted = train(c, clean), got = train(c, data);
    const auto is_of_2 = [](int64_t row, int64_t) { return row % 6 == 2; };
    CHECK(count_other(wanted.y, got.y, c.outputs(), is_of_2) == 0);
    CHECK(count_other(wanted.dx, got.dx, 10, is_of_2) == 0);
    CHECK(std::ranges::any_of(got.y, [](double v) { return std::isnan(v); }));
  });
}

TEST_CASE("rnn: elements past the end of a product do not affect its last tile", "[rnn][short]") {
  // Zeros past the end hide every factor except infinity and NaN.  With 200 units, the last tile
  // reuses the shared memory of an earlier one.
  constexpr int64_t kBatch = 20, kUnit = 5;
  const auto is_changed = [](int64_t row, int64_t) { return row % 4 == 2; };  // every step
  const auto is_unit = [](int64_t, int64_t column) { return column == kUnit; };
  const mp_dtype_t dtype = GENERATE(from_range(kHalfTypes));
  const auto sizes = dtype == MP_FP16 ? std::vector{20, 24, 72, 200} : std::vector{24, 200};
  for (const RnnCell &cell : kRnnCells)
    for (const int32_t hidden : sizes) {
      RnnCase c = make_rnn(cell.cell, kBatch, 2, 10, hidden, dtype, cell.flags);
      const RnnData clean = real_data(c, 13);
      RnnData nan_before = clean, infinite_dy = clean, infinite_weight = clean;
      for (int64_t n = 2; n < kBatch; n += 4)
        for (int64_t j = 0; j < hidden; ++j) {
          nan_before.h0[c.state_at(0, 0, n) + static_cast<size_t>(j)] = kNaN;
          infinite_dy.dy[c.y_at(1, n) + static_cast<size_t>(j)] = kInfinity;
        }
      // All gates, except that MP_RNN_FLAG_RESET_FIRST multiplies r h with weights: r affects all
      // units.
      const int64_t first_gate = cell.flags & MP_RNN_FLAG_RESET_FIRST ? c.gate_rows() - hidden : 0;
      for (int64_t row = first_gate + kUnit; row < c.gate_rows(); row += hidden)
        infinite_weight.weights[0].w_hh[static_cast<size_t>(row * hidden)] = kInfinity;
      for (const char *const kernel : kernels_of(c)) {
        c.desc.plan = named_plan(kernel);
        CAPTURE(dtype, cell.cell, cell.flags, hidden, kernel);
        const RnnResult wanted = train(c, clean);
        const RnnResult nan = train(c, nan_before), grad = train(c, infinite_dy);
        CHECK(count_other(wanted.y, nan.y, hidden, is_changed) == 0);
        CHECK(count_other(wanted.dx, grad.dx, 10, is_changed) == 0);
        CHECK(count_other(wanted.dh0, grad.dh0, hidden, is_changed) == 0);

        RnnCase one = c;  // after another step, the unit would affect all others
        one.desc.timesteps = 1;
        const RnnResult step = train(one, clean), weight = train(one, infinite_weight);
        CHECK(count_other(step.y, weight.y, hidden, is_unit) == 0);
        CHECK(!equal(step.y, weight.y));
      }
    }
}

TEST_CASE("rnn: an invalid length makes only its sequence NaN", "[rnn][short]") {
  each_case([](RnnCase &c) {
    c.lengths = {12, 12, 5, 12, 1, 12};
    const RnnData data = real_data(c, 9);
    RnnResult wanted = train(c, data);
    for (const auto &[values, columns] :
         {std::pair<Values *, int64_t>{&wanted.y, c.outputs()}, {&wanted.dx, 10}, {&wanted.hn, 24}})
      for (size_t i = 0; i < values->size(); ++i)
        if (static_cast<int64_t>(i) / columns % 6 == 3) (*values)[i] = kNaN;
    for (const int32_t bad : {-1, 13, INT32_MIN, INT32_MAX}) {
      RnnCase broken = c;
      broken.lengths[3] = bad;
      CAPTURE(bad);
      const RnnResult got = train(broken, data);
      check_equal(got, wanted, {&RnnResult::y, &RnnResult::dx, &RnnResult::hn});
      CHECK(got.found_inf == 1.0f);
      CHECK(std::isnan(got.dw[0].w_hh[0]));
    }
  });
}

TEST_CASE("rnn: gradients that are infinite or overflow raise found_inf", "[rnn][short]") {
  for (const RnnCell &cell : kRnnCells)
    for (const double size : {kInfinity, 60000.0, 1e-3}) {
      // Sums of finite dy over steps overflow FP16 in TANH and RELU cells; gates damp others.
      if (size == 60000.0 && cell.cell != MP_RNN_TANH && cell.cell != MP_RNN_RELU) continue;
      const RnnCase c = make_rnn(cell.cell, 4, 5, 10, 24, MP_FP16, cell.flags);
      RnnData data = real_data(c, 10);
      // One row of infinities: RELU blocks the gradient of units with h' = 0.
      const bool is_infinite = std::isinf(size);
      for (double &value : data.dy) value = std::copysign(is_infinite ? 1e-3 : size, value);
      if (is_infinite) std::fill_n(data.dy.begin() + c.y_at(3, 2), 24, kInfinity);
      RnnRun run(c, data);
      require_ok(run.forward_training());
      CHECK(run.result().found_inf == 0.0f);
      require_ok(run.backward_data());
      CAPTURE(cell.cell, cell.flags, size);
      CHECK(run.result().found_inf == (size > 1.0 ? 1.0f : 0.0f));
    }
}

TEST_CASE("rnn: amax and found_inf include weight gradients", "[rnn][short]") {
  // The gradients of the gates are representable in FP16; their sum over many rows is not.
  RnnCase c = make_rnn(MP_RNN_RELU, 64, 4, 8, 8, MP_FP16);
  c.desc.dtype_dw = MP_FP16;
  RnnData data = real_data(c, 12);
  for (double &value : data.x) value = 8.0;
  for (double &value : data.dy) value = 64.0;
  for (RnnWeights &w : data.weights)
    for (double &value : w.b_ih) value = 10.0;
  RnnRun run(c, data);
  require_ok(run.forward_training());
  require_ok(run.backward_data());
  CHECK(run.result().found_inf == 0.0f);
  CHECK(run.result().amax == 0.0f);
  require_ok(run.backward_weights());
  CHECK(run.result().found_inf == 1.0f);
  CHECK(std::isinf(run.result().amax));
}

// ---------------------------------------------------------------------------- edges

TEST_CASE("rnn: sequences without steps keep their states", "[rnn][short]") {
  each_case([](RnnCase &c) {
    for (const bool packed : {false, true}) {
      c.packed = packed;
      c.lengths.assign(6, 0);
      const RnnData data = real_data(c, 14);
      const RnnResult got = train(c, data);
      CHECK(equal(got.hn, data.h0));
      CHECK(equal(got.cn, data.c0));
      CHECK(equal(got.dh0, data.dhn));
      CHECK(equal(got.dc0, data.dcn));
      CHECK(equal(got.dw[0].w_hh, Values(got.dw[0].w_hh.size(), 0.0)));
    }
  });
}

TEST_CASE("nightly: rnn, ten thousand training steps give the same bits", "[.nightly]") {
  for (const RnnCell &cell : kRnnCells) {
    RnnCase c =
        make_rnn(cell.cell, 3, 4, 8, 16, MP_FP16, cell.flags | MP_RNN_FLAG_BIDIRECTIONAL, 2);
    c.lengths = {4, 1, 3};
    const RnnData data = real_data(c, 15);
    RnnRun run(c, data);
    RnnResult first;
    for (int step = 0; step < 2000; ++step) {  // 2000 steps of each of five cells
      run.train();
      if (step == 0) first = run.result();
    }
    const RnnResult last = run.result();
    CAPTURE(cell.cell, cell.flags);
    check_same(c, first, last);
    expect_none(run.damage(), "");
  }
}
