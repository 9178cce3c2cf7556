// Recurrent networks of real numbers against fp64: all cells, all outputs.
//
// Tolerance in FP32: an error of 1e-5 of the largest value.  In 16 bits: four times the error of an
// fp64 program that rounds where mpcore/rnn.h documents it (1e-3 in FP16, whose unit is 4.9e-4).
#include "oracle_rnn.h"
#include "rnn_run.h"
#include "tests/step/oracle_rounding.h"
#include "tests/support/named_plan.h"

using namespace mptest;

namespace {

double tolerance(mp_dtype_t dtype) {
  if (dtype == MP_FP32) return 1e-5;
  return 4.0 * 1e-3 * unit_roundoff(dtype) / unit_roundoff(MP_FP16);
}

/// Returns the largest error divided by the largest value.
double distance(const Values &wanted, const Values &got) {
  REQUIRE(got.size() == wanted.size());
  double error = 0.0, largest = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return kInfinity;
    error = std::max(error, std::fabs(got[i] - wanted[i]));
    largest = std::max(largest, std::fabs(wanted[i]));
  }
  return error == 0.0 ? 0.0 : error / largest;
}

void check_close(const RnnCase &c, const RnnResult &wanted, const RnnResult &got) {
  each_output(c, wanted, got, [&](const char *name, const Values &a, const Values &b) {
    CAPTURE(name);
    CHECK(distance(a, b) <= tolerance(c.desc.dtype));
  });
}

/// Returns the dropout mask by its definition: kept with probability 1 - p.
oracle::Rnn::Mask mask_of(const RnnCase &c) {
  return [&c](int64_t layer, int64_t t, int64_t n, int64_t direction, int64_t unit) {
    const int64_t row = (t * c.desc.batch + n) * c.directions() + direction;
    const auto i = static_cast<uint64_t>(row * ((c.hidden() + 3) / 4 * 4) + unit);
    const uint64_t offset = c.has_dropout_offset ? c.dropout_offset : 0;
    return oracle::is_dropped(i, c.desc.dropout, c.desc.dropout_seed, offset, layer)
               ? 0.0
               : 1.0 / (1.0 - static_cast<double>(c.desc.dropout));
  };
}

void check_kernel(const RnnCase &c, const RnnData &data, const RnnResult &wanted) {
  const RnnResult got = train(c, data);
  check_close(c, wanted, got);
  CHECK(got.found_inf == 0.0f);
  float amax = 0.0f;
  each_weight_gradient(c, got, got, [&](const char *, const Values &gradient, const Values &) {
    for (const double value : gradient) amax = std::max(amax, static_cast<float>(std::fabs(value)));
  });
  CHECK(got.amax == amax);
}

void check_case(RnnCase c, uint64_t seed) {
  // RELU's derivative is discontinuous: rounding of h may change it.  test_rnn_exact.cpp tests
  // this.
  if (c.desc.cell == MP_RNN_RELU && c.desc.dtype != MP_FP32) return;
  CAPTURE(c.desc.cell, c.desc.flags, mp_dtype_name(c.desc.dtype), c.desc.layers, c.desc.batch,
          c.desc.timesteps, c.desc.input_size, c.desc.hidden_size, c.desc.dropout, c.desc.clip,
          seed);
  const RnnData data = real_data(c, seed);
  const oracle::Rnn::Mask mask = c.desc.dropout > 0.0f ? mask_of(c) : oracle::Rnn::Mask{};
  const RnnResult wanted = oracle::Rnn(c, data, mask).run();
  for (const char *const kernel : kernels_of(c)) {
    c.desc.plan = named_plan(kernel);
    CAPTURE(kernel);
    check_kernel(c, data, wanted);
  }
}

struct Sizes {
  int32_t batch, timesteps, input, hidden;
};

/// Checks all cells in the given types.
void check_cells(uint64_t seed, const Sizes &sizes, std::initializer_list<mp_dtype_t> dtypes,
                 uint32_t flags = 0, RnnLayout layout = RnnLayout::kDense) {
  for (const RnnCell &cell : kRnnCells)
    for (const mp_dtype_t dtype : dtypes) {
      RnnCase c = make_rnn(cell.cell, sizes.batch, sizes.timesteps, sizes.input, sizes.hidden,
                           dtype, cell.flags | flags);
      c.layout = layout;
      check_case(c, ++seed);
    }
}

}  // namespace

// ---------------------------------------------------------------------------- the oracle

TEST_CASE("rnn: the oracle's gradients equal the derivative of its forward pass", "[rnn]") {
  uint64_t seed = 0;
  for (const RnnCell &cell : kRnnCells) {
    RnnCase c = make_rnn(cell.cell, 3, 4, 3, 4, MP_FP32, cell.flags | MP_RNN_FLAG_BIDIRECTIONAL, 2);
    c.lengths = {4, 0, 2};
    c.desc.dropout = 0.25f;
    const auto mask = mask_of(c);
    RnnData data = real_data(c, ++seed);
    const RnnResult got = oracle::Rnn(c, data, mask).run();
    const auto loss = [&] {
      const RnnResult r = oracle::Rnn(c, data, mask).forward();
      double sum = 0.0;
      for (int64_t t = 0; t < 4; ++t)
        for (int64_t n = 0; n < 3; ++n)
          for (size_t j = 0; j < static_cast<size_t>(c.outputs()) && c.has_step(n, t); ++j)
            sum += r.y[c.y_at(t, n) + j] * data.dy[c.y_at(t, n) + j];
      for (size_t i = 0; i < r.hn.size(); ++i) sum += r.hn[i] * data.dhn[i];
      for (size_t i = 0; i < r.cn.size(); ++i) sum += r.cn[i] * data.dcn[i];
      return sum;
    };
    const auto check = [&](const char *name, Values &values, const Values &gradient) {
      for (size_t i = 0; i < values.size(); i += 7) {
        if (std::isnan(values[i])) continue;
        constexpr double kStep = 1e-5;
        const double before = values[i];
        values[i] = before + kStep;
        const double above = loss();
        values[i] = before - kStep;
        const double slope = (above - loss()) / (2.0 * kStep);
        values[i] = before;
        CAPTURE(cell.cell, cell.flags, name, i);
        CHECK(std::fabs(slope - gradient[i]) < 1e-7);
      }
    };
    check("x", data.x, got.dx);
    check("h0", data.h0, got.dh0);
    check("c0", data.c0, got.dc0);
    for (size_t i = 0; i < got.dw.size(); ++i)
      for (const RnnPart &part : kRnnParts)
        check(part.name, data.weights[i].*part.values, got.dw[i].*part.values);
  }
}

// ---------------------------------------------------------------------------- the library

TEST_CASE("rnn: all cells and types are within tolerance", "[rnn][short]") {
  for (const int32_t hidden : {8, 24})  // one k tile, and several
    check_cells(100, {5, 6, 11, hidden}, {MP_FP16, MP_BF16, MP_FP32});
}

TEST_CASE("rnn: rows shared by two warps are within tolerance", "[rnn]") {
  // A row has three 8-element vectors (for_each_row_run).  If two warps share a row, its vectors
  // are stored in any order, and the last one is followed by the first elements of the next gate.
  check_cells(800, {130, 3, 5, 19}, {MP_FP16, MP_BF16, MP_FP32}, MP_RNN_FLAG_BIDIRECTIONAL);
}

TEST_CASE("rnn: steps after products large enough for wgmma are within tolerance", "[rnn]") {
  check_cells(900, {70, 3, 9, 264}, {MP_FP16});
}

TEST_CASE("rnn: more k tiles than pipeline stages are within tolerance in all cells",
          "[rnn][short]") {
  check_cells(150, {3, 2, 9, 200}, {MP_FP16, MP_BF16});
}

TEST_CASE("rnn: clusters whose blocks reuse their pipeline stages are within tolerance", "[rnn]") {
  check_case(make_rnn(MP_RNN_LSTM, 9, 2, 9, 1096, MP_FP16), 180);
}

TEST_CASE("rnn: layers, two directions, unequal lengths and dropout are within tolerance",
          "[rnn]") {
  uint64_t seed = 200;
  for (const RnnCell &cell : kRnnCells)
    for (const mp_dtype_t dtype : kDtypes)
      for (const int32_t hidden : {17, 40})
        for (const bool packed : {false, true}) {
          RnnCase c = make_rnn(cell.cell, 6, 7, 13, hidden, dtype,
                               cell.flags | MP_RNN_FLAG_BIDIRECTIONAL, 3);
          c.lengths = packed ? std::vector<int32_t>{7, 6, 4, 4, 1, 0}
                             : std::vector<int32_t>{4, 0, 7, 1, 6, 4};
          c.packed = packed;
          c.desc.dropout = 0.3f;
          c.desc.dropout_seed = 0x0123456789abcdef + seed;
          c.dropout_offset = 0xfedcba9876543210 - seed;
          c.has_dropout_offset = hidden == 40;
          check_case(c, ++seed);
        }
}

TEST_CASE("rnn: many steps are within tolerance", "[rnn]") {
  check_cells(300, {4, 150, 16, 64}, {MP_FP16, MP_BF16, MP_FP32}, 0, RnnLayout::kBatchMajor);
}

TEST_CASE("rnn: inputs added to the gates, no biases, a clipped c", "[rnn][short]") {
  uint64_t seed = 400;
  for (const RnnCell &cell : kRnnCells)
    for (const int flags : {int{MP_RNN_FLAG_SKIP_INPUT}, int{MP_RNN_FLAG_NO_BIAS},
                            MP_RNN_FLAG_SKIP_INPUT | MP_RNN_FLAG_NO_BIAS}) {
      // Rounding of h may change whether c is clipped, as with RELU.
      const mp_dtype_t dtype = cell.cell == MP_RNN_LSTM ? MP_FP32 : MP_FP16;
      RnnCase c =
          make_rnn(cell.cell, 4, 5, 24, 24, dtype,
                   cell.flags | static_cast<uint32_t>(flags) | MP_RNN_FLAG_BIDIRECTIONAL, 2);
      c.desc.dtype_dw = dtype;
      if (cell.cell == MP_RNN_LSTM) c.desc.clip = 0.25f;
      check_case(c, ++seed);
    }
}

TEST_CASE("rnn: all optional tensors can be NULL", "[rnn][short]") {
  uint64_t seed = 500;
  for (const RnnCell &cell : kRnnCells) {
    RnnCase c = make_rnn(cell.cell, 4, 5, 9, 17, MP_FP32, cell.flags, 2);
    c.states = c.final_states = false;
    const RnnData data = real_data(c, ++seed);
    RnnRun run(c, data);
    run.tensors.dx = nullptr;
    run.tensors.stats.found_inf = run.tensors.stats.amax = nullptr;
    run.train();
    const RnnResult wanted = oracle::Rnn(c, data).run(), got = run.result();
    CHECK(distance(wanted.y, got.y) <= 1e-5);
    for (size_t i = 0; i < wanted.dw.size(); ++i)
      CHECK(distance(wanted.dw[i].w_hh, got.dw[i].w_hh) <= 1e-5);
  }
}

TEST_CASE("rnn: small gradients require the loss scale", "[rnn]") {
  // dy is 1e-6: FP16 cannot represent most of the resulting gradients, but can if scaled by 1024.
  for (const RnnCell &cell : {kRnnCells[0], kRnnCells[2], kRnnCells[3]}) {
    RnnCase c = make_rnn(cell.cell, 8, 25, 32, 64, MP_FP16, cell.flags);
    const auto error = [&](double scale) {
      RnnData data = real_data(c, 7, 1e-6);
      RnnData scaled = data;
      for (Values *values : {&scaled.dy, &scaled.dhn, &scaled.dcn})
        for (double &value : *values) value *= scale;
      for (Values *values : {&data.dy, &data.dhn})
        for (double &value : *values) value = round_to(MP_FP16, value * scale) / scale;
      RnnResult got = train(c, scaled);
      for (double &value : got.dw[0].w_hh) value /= scale;
      return distance(oracle::Rnn(c, data).run().dw[0].w_hh, got.dw[0].w_hh);
    };
    const double unscaled = error(1.0), scaled = error(1024.0);
    CAPTURE(cell.cell, unscaled, scaled);
    CHECK(unscaled > 0.01);
    CHECK(scaled < 0.004);
  }
}
