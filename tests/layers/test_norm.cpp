// Layer and RMS normalization against the documented formulas in fp64.
#include <set>

#include "norm_case.h"
#include "tests/support/any.h"

using namespace mptest;
using namespace mptest::norm;

namespace {

/// Rows of the values middle + deviation and middle - deviation, half of each, in random order.
/// Their mean is middle, and 1 / deviation is their rstd if epsilon is 0.
Case two_valued_case(mp_norm_kind_t kind, mp_dtype_t dtype, int64_t rows, int64_t columns,
                     double middle, double deviation) {
  Case c = make_case(kind, dtype, rows, columns);
  Random random(static_cast<uint64_t>(rows + columns));
  c.desc.epsilon = 0.0f;
  for (int64_t i = 0; i < rows; ++i) {
    double *const row = &c.x[static_cast<size_t>(i * columns)];
    for (int64_t j = 0; j < columns; ++j) row[j] = middle + (j % 2 == 0 ? deviation : -deviation);
    for (int64_t j = columns - 1; j > 0; --j) std::swap(row[j], row[random.integer(0, j)]);
  }
  for (double &gamma : c.gamma) gamma = static_cast<double>(random.integer(-4, 4));
  for (double &beta : c.beta) beta = static_cast<double>(random.integer(-8, 8));
  for (double &dy : c.dy) dy = static_cast<double>(random.integer(-4, 4));
  return c;
}

}  // namespace

// ---------------------------------------------------------------------------- bounds

namespace {

/// Returns a case with any options and layout.
Case any_case(int64_t columns, Random &random) {
  const mp_dtype_t dtype = any(random, kDtypes);
  const int32_t groups = any(random, {1, 1, 3});
  const int64_t rows = columns > 512 ? 3 : any(random, {1, 5, 19});
  Case c = make_case(any(random, kKinds), dtype, rows, columns, groups);
  if (one_in(2, random)) {
    const float dropout = any(random, {0.0f, 0.375f, 0.5f});
    add_residual(c, any(random, {dtype, MP_FP32}), dropout);
    if (one_in(4, random)) c.residual.clear();
  }
  if (one_in(3, random)) c.desc.flags |= MP_NORM_FLAG_ZERO_CENTERED;
  if (one_in(3, random)) c.desc.flags |= MP_NORM_FLAG_ACCUMULATE, c.previous = 3.0;
  if (one_in(4, random)) c.gamma.clear();
  if (one_in(4, random)) c.beta.clear();
  c.gap = any(random, {0, 3, 8});
  c.rows_first = one_in(2, random);
  c.offset = any(random, {0, 1, 4});
  c.in_place = one_in(2, random);
  if (!c.in_place && one_in(3, random)) c.dsum.clear();
  return c;
}

/// Checks cases against the formulas; a dense layout must give the same bits.
void check_any(const std::vector<int64_t> &lengths, int cases) {
  for (const int64_t columns : lengths)
    for (int i = 0; i < cases; ++i) {
      Random random(static_cast<uint64_t>(1000 * columns + i));
      const Case c = any_case(columns, random);
      CAPTURE(i, c.desc.flags, c.gamma.size(), c.beta.size(), c.residual.size(), c.dsum.size());
      check(c);
      Case dense = c;
      dense.gap = dense.offset = 0;
      dense.rows_first = dense.in_place = false;
      CHECK(run_forward(dense) == run_forward(c));
    }
}

}  // namespace

// Lengths around the limits of half a warp, a warp, both sizes of blocks and tiles, and multiples
// of 8.

TEST_CASE("norm: any options for short vectors are within bounds", "[layers][norm][short]") {
  check_any({1, 2, 5, 7, 8, 17, 100, 255, 256, 257, 400, 1030}, 16);
}

TEST_CASE("norm: any options for long vectors are within bounds", "[layers][norm]") {
  check_any({1024, 1025, 1031, 4096, 4100, 4104, 5003, 8192, 8193, 9000, 12288, 16384, 16385, 16400,
             20004, 32769},
            3);
  check_any({65536}, 2);
}

TEST_CASE("norm: more vectors than one range", "[layers][norm]") {
  check(make_case(MP_NORM_LAYER, MP_FP32, 16 * 9 + 5, 24, 3));
  check(make_case(MP_NORM_RMS, MP_FP16, 70, 1200));
  check(make_case(MP_NORM_LAYER, MP_FP16, 35, 9000));
}

// ---------------------------------------------------------------------------- exact results

TEST_CASE("norm: rows of two values are exact", "[layers][norm][short]") {
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t columns : {2, 6, 64, 256, 258, 1024, 2048})
      for (const double deviation : {0.25, 4.0}) {
        const Case c = two_valued_case(MP_NORM_LAYER, dtype, 5, columns, 3.0, deviation);
        const Forward got = run_forward(c);
        CAPTURE(mp_dtype_name(dtype), columns, deviation);
        CHECK(got.mean == Vector(5, 3.0));
        CHECK(got.rstd == Vector(5, 1.0 / deviation));
        int64_t wrong = 0;
        for (size_t i = 0; i < c.x.size(); ++i) {
          const size_t j = i % static_cast<size_t>(columns);
          wrong += got.y[i] != (c.x[i] - 3.0) / deviation * c.gamma[j] + c.beta[j];
        }
        CHECK(wrong == 0);
      }
}

TEST_CASE("norm: gradients of rows of two values are orthogonal to 1 and xhat",
          "[layers][norm][short]") {
  for (const mp_norm_kind_t kind : kKinds) {
    for (const int64_t columns : {2, 64, 256, 1024, 4096}) {
      const double middle = kind == MP_NORM_LAYER ? 8.0 : 0.0;
      // Deviation 2^-8: amax is an element of dx.
      const Case c = two_valued_case(kind, MP_FP32, 40, columns, middle, 0x1p-8);
      const Gradients got = run_backward(c, run_forward(c));
      CAPTURE(kind, columns);
      Vector dgamma(c.gamma.size()), dbeta(c.gamma.size());
      for (size_t v = 0; v < 40; ++v) {
        double sum = 0.0, sum_xhat = 0.0;
        for (size_t j = 0; j < c.gamma.size(); ++j) {
          const size_t i = v * c.gamma.size() + j;
          const double xhat = (c.x[i] - middle) / 0x1p-8;
          sum += got.dx[i];
          sum_xhat += got.dx[i] * xhat;
          dgamma[j] += c.dy[i] * xhat;
          dbeta[j] += c.dy[i];
        }
        if (kind == MP_NORM_LAYER) REQUIRE(sum == 0.0);
        REQUIRE(sum_xhat == 0.0);
      }
      CHECK(got.dgamma == dgamma);
      if (kind == MP_NORM_LAYER) CHECK(got.dbeta == dbeta);
    }
  }
}

TEST_CASE("norm: every column is counted once", "[layers][norm]") {
  // The only nonzero of a vector has the value `columns`: mean 1, mean square `columns`.
  for (const int64_t columns : {4, 64, 256, 1024, 4096, 16384, 65536}) {
    std::set<int64_t> places = {0,   1,    7,    8,    127,  128,        255,
                                256, 4095, 4096, 8191, 8192, columns - 1};
    Random random(9);
    while (places.size() < 20) places.insert(random.integer(0, 65535));
    std::erase_if(places, [&](int64_t place) { return place >= columns; });
    const auto rows = static_cast<int64_t>(places.size());
    for (const mp_norm_kind_t kind : kKinds) {
      Case c = make_case(kind, MP_FP32, rows, columns);
      c.x.assign(c.x.size(), 0.0);
      c.desc.epsilon = 0.0f;
      int64_t row = 0;
      for (const int64_t place : places)
        c.x[static_cast<size_t>(row++ * columns + place)] = static_cast<double>(columns);
      const Forward got = run_forward(c);
      const auto vectors = static_cast<size_t>(rows);
      CAPTURE(kind, columns);
      if (kind == MP_NORM_LAYER)
        CHECK(got.mean == Vector(vectors, 1.0));
      else
        CHECK(got.rstd == Vector(vectors, 1.0 / std::sqrt(static_cast<double>(columns))));
    }
  }
}

TEST_CASE("norm: every vector is counted once", "[layers][norm][short]") {
  for (const int64_t columns : {2, 300, 1026, 8194}) {
    for (const int64_t rows : {1, 8, 15, 16, 17, 33}) {
      Case c = two_valued_case(MP_NORM_LAYER, MP_FP16, rows, columns, 0.0, 1.0);
      for (size_t i = 0; i < c.dy.size(); ++i)
        c.dy[i] = static_cast<double>(1 + i / static_cast<size_t>(columns));
      c.desc.flags = MP_NORM_FLAG_ACCUMULATE;
      c.previous = 1000.0;
      const Gradients got = run_backward(c, run_forward(c));
      const double sum = 1000.0 + static_cast<double>(rows * (rows + 1) / 2);
      CAPTURE(columns, rows);
      CHECK(got.dbeta == Vector(static_cast<size_t>(columns), sum));
    }
  }
}

TEST_CASE("norm: constant vectors become beta, or NaN without epsilon", "[layers][norm][short]") {
  for (const double value : {1.0 / 3.0, -2e19, 3.4028234663852886e38}) {
    for (const int64_t columns : {1, 3, 100, 1000, 5000}) {
      Case c = make_case(MP_NORM_LAYER, MP_FP32, 2, columns);
      const double stored = round_to(MP_FP32, value);
      c.x.assign(c.x.size(), stored);
      const Forward got = run_forward(c);
      CAPTURE(value, columns);
      CHECK(got.mean == Vector(2, stored));
      CHECK(Vector(got.y.begin(), got.y.begin() + columns) == c.beta);
      c.desc.epsilon = 0.0f;
      const Forward without = run_forward(c);
      CHECK(std::ranges::all_of(without.y, [](double y) { return std::isnan(y); }));
    }
  }
}

// ---------------------------------------------------------------------------- non-finite values

TEST_CASE("norm: a non-finite value makes only its vector NaN", "[layers][norm][short]") {
  for (const mp_norm_kind_t kind : kKinds)
    for (const double bad : {kNaN, kInfinity, -kInfinity})
      for (const int64_t columns : {12, 300, 1100})
        for (const size_t place : {size_t{0}, static_cast<size_t>(columns) - 1}) {
          Case c = make_case(kind, MP_FP16, 3, columns);
          const auto width = static_cast<size_t>(columns);
          const Forward clean = run_forward(c);
          c.x[width + place] = bad;
          const Forward got = run_forward(c);
          const Gradients gradients = run_backward(c, got);
          CAPTURE(kind, bad, columns, place);
          int64_t wrong = 0;
          for (size_t i = 0; i < got.y.size(); ++i) {
            const bool is_bad = i / width == 1;
            wrong += is_bad ? !std::isnan(got.y[i]) : got.y[i] != clean.y[i];
            wrong += std::isfinite(gradients.dx[i]) == is_bad;
          }
          CHECK(wrong == 0);
          CHECK(std::isnan(gradients.dgamma[0]));
        }
}

TEST_CASE("norm: a dropped NaN has no effect", "[layers][norm][short]") {
  Case c = make_case(MP_NORM_LAYER, MP_FP32, 1, 64);
  add_residual(c, MP_FP32, 0.5f);
  size_t dropped = 0;
  while (!is_dropped(c, dropped)) ++dropped;
  const Forward clean = run_forward(c);
  c.x[dropped] = kNaN;
  CHECK(run_forward(c) == clean);
}

TEST_CASE("norm: an infinite gradient is reported", "[layers][norm][short]") {
  Case c = make_case(MP_NORM_RMS, MP_FP16, 4, 40);
  c.dy[50] = kInfinity;
  const Gradients got = run_backward(c, run_forward(c));  // checks found_inf and amax
  CHECK(!std::isfinite(got.dx[50]));
  CHECK(std::isfinite(got.dx[0]));
  CHECK(!std::isfinite(got.dgamma[10]));
}

TEST_CASE("norm: an infinite gradient of the residual alone is reported", "[layers][norm][short]") {
  for (const mp_dtype_t wide : {MP_FP16, MP_FP32}) {
    Case c = make_case(MP_NORM_LAYER, MP_FP16, 3, 64);
    add_residual(c, wide, 0.5f);
    size_t dropped = 70;
    while (!is_dropped(c, dropped)) ++dropped;
    c.dsum[dropped] = kInfinity;
    const Gradients got = run_backward(c, run_forward(c));  // checks found_inf and amax
    CHECK(got.dresidual[dropped] == kInfinity);
    CHECK(got.dx[dropped] == 0.0);
  }
}

// ---------------------------------------------------------------------------- bits, sizes

TEST_CASE("norm: results have the same bits on any number of SMs", "[layers][norm][short]") {
  const UniqueContext one_sm = make_context(1);
  for (const int64_t columns : {40, 600, 2000, 9000}) {
    Case c = make_case(MP_NORM_LAYER, MP_FP16, 50, columns);
    add_residual(c, MP_FP32, 0.25f);
    const Forward all = run_forward(c);
    CAPTURE(columns);
    CHECK(run_forward(c, one_sm.get()) == all);
    CHECK(run_backward(c, all, one_sm.get()) == run_backward(c, all));
  }
}

TEST_CASE("norm: a vector does not depend on other rows", "[layers][norm][short]") {
  for (const int64_t columns : {40, 600, 2000}) {
    const Case all = make_case(MP_NORM_LAYER, MP_FP32, 21, columns);
    Case last = all;
    last.desc.rows = 1;
    last.x.assign(all.x.end() - columns, all.x.end());
    last.dy.assign(all.dy.end() - columns, all.dy.end());
    const Forward of_all = run_forward(all), of_last = run_forward(last);
    CHECK(of_last.y == Vector(of_all.y.end() - columns, of_all.y.end()));
    const Vector dx = run_backward(all, of_all).dx;
    CHECK(run_backward(last, of_last).dx == Vector(dx.end() - columns, dx.end()));
  }
}

TEST_CASE("norm: no rows", "[layers][norm][short]") {
  for (const uint32_t flags : {0u, uint32_t{MP_NORM_FLAG_ACCUMULATE}}) {
    Case c = make_case(MP_NORM_LAYER, MP_FP16, 0, 5);
    c.desc.flags = flags;
    c.previous = 3.0;
    const Gradients got = run_backward(c, run_forward(c));
    CHECK(got.dgamma == Vector(5, c.adds() ? 3.0 : 0.0));
    CHECK(got.dbeta == got.dgamma);
  }
}

TEST_CASE("norm: the workspace is at most 16 MiB", "[layers][norm][short]") {
  for (const int64_t columns : {1, 128, 5000, 65536}) {
    for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{100000}, int64_t{1} << 40}) {
      const mp_norm_desc_t desc = mp_norm_desc_default(MP_NORM_RMS, rows, columns, MP_FP16);
      size_t bytes = 1;
      require_ok(mp_norm_backward_workspace_size(context(), &desc, &bytes));
      CHECK((bytes > 0) == (rows > 0));
      CHECK(bytes <= 16u << 20);
    }
  }
}
