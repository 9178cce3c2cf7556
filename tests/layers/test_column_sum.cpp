// mp_column_sum: exact sums of integers, the bits of dbias, overflow, and guard zones.
// mp_sum_rows: exact sums of integers, the order of the sum, and empty sums.
#include "tests/support/grad_stats.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

struct SumCase {
  mp_column_sum_desc_t desc;
  int64_t offset = 0;  ///< elements by which x and sum miss 256 bytes
  bool has_scale = false;
  float scale = 1.0f;
};

SumCase make_case(int64_t rows, int64_t columns, mp_dtype_t dtype = MP_FP16,
                  mp_dtype_t dtype_sum = MP_FP32) {
  SumCase c{mp_column_sum_desc_default(rows, columns, dtype)};
  c.desc.dtype_sum = dtype_sum;
  return c;
}

/// Runs a case with NaN in the padding of x and guard zones around all; checks the statistics.
std::vector<double> run(const SumCase &c, const Matrices &x, const std::vector<double> &before) {
  const mp_column_sum_desc_t &d = c.desc;
  DeviceMatrices in(d.dtype, 1, d.rows, d.columns, d.ld, 0, c.offset, kPoison);
  in.upload(x);
  const DeviceArray sum(d.dtype_sum, before, c.offset);
  const DeviceValue<float> scale(c.scale);
  const DeviceWorkspace workspace(mp_column_sum_workspace_size, context(), &d);
  CHECK(workspace.bytes() <= 2048 * static_cast<size_t>(d.columns));
  const GradStats stats;
  mp_epilogue_t e = mp_epilogue_default();
  if (c.has_scale) e.scale = scale.data();
  e.stats = *stats.get();
  require_ok(mp_column_sum(context(), &d, in.data(), sum.data(), &e, workspace.data(),
                           workspace.bytes(), kStream));
  CHECK(in.damage() == "");
  const std::vector<double> got = sum.download();
  stats.check(got);
  return got;
}

/// Sums of these are exact in every type.
Matrices integers(int64_t rows, int64_t columns) {
  const auto seed = static_cast<uint64_t>(rows * 131 + columns);
  return {1, rows, columns, random_integers(rows * columns, 2, seed)};
}

void check_exact(const SumCase &c) {
  const mp_column_sum_desc_t &d = c.desc;
  CAPTURE(d.rows, d.columns, d.ld, d.beta, mp_dtype_name(d.dtype), mp_dtype_name(d.dtype_sum),
          c.offset, c.scale);
  const Matrices x = integers(d.rows, d.columns);
  std::vector<double> before(static_cast<size_t>(d.columns), 3.0), wanted = before;
  for (int64_t j = 0; j < d.columns; j++) {
    double &sum = wanted[static_cast<size_t>(j)];
    sum *= static_cast<double>(d.beta);
    for (int64_t i = 0; i < d.rows; i++) sum += static_cast<double>(c.scale) * x.at(0, i, j);
    sum = round_to(d.dtype_sum, sum);
  }
  if (d.beta == 0.0f) before.assign(before.size(), kNaN);
  CHECK(run(c, x, before) == wanted);
}

}  // namespace

TEST_CASE("column sum: integers are exact for every shape, type and layout",
          "[layers][column_sum][short]") {
  for (const mp_dtype_t dtype : kDtypes)
    for (const mp_dtype_t dtype_sum : kDtypes)
      for (const int64_t rows : {0, 1, 15, 16, 17, 300, 4099})
        for (const int64_t columns : {1, 7, 8, 65}) {
          SumCase c = make_case(rows, columns, dtype, dtype_sum);
          check_exact(c);
          c.desc.ld = columns + 5;
          c.desc.beta = 2.0f;
          c.offset = 1;
          c.has_scale = true;
          c.scale = 0.5f;
          check_exact(c);
        }
}

TEST_CASE("column sum: the bits are those of dbias of a product", "[layers][column_sum]") {
  constexpr int64_t kRows = 777, kColumns = 72, kK = 24;
  Random random(7);
  const DeviceArray a(MP_FP16, random_reals(MP_FP16, kRows * kK, -1.0, 1.0, random)),
      b(MP_FP16, random_reals(MP_FP16, kK * kColumns, -1.0, 1.0, random)),
      d(MP_FP16, kRows * kColumns);
  const DeviceBuffer<float> dbias(kColumns);
  const DeviceBuffer<uint8_t> workspace(1 << 20);
  const mp_gemm_desc_t gemm = mp_gemm_desc_default(kRows, kColumns, kK, MP_FP16, MP_FP16);
  mp_epilogue_t e = mp_epilogue_default();
  e.dbias = dbias.data();
  require_ok(mp_gemm(context(), &gemm, a.data(), b.data(), nullptr, d.data(), &e, workspace.data(),
                     1 << 20, kStream));
  const SumCase c = make_case(kRows, kColumns);
  const Matrices x(1, kRows, kColumns, d.download());
  const std::vector<float> wanted = dbias.download();
  CHECK(run(c, x, std::vector<double>(kColumns)) ==
        std::vector<double>(wanted.begin(), wanted.end()));
}

TEST_CASE("column sum: overflow in the last rounding raises found_inf, and so does a NaN",
          "[layers][column_sum][short]") {
  SumCase c = make_case(2, 3, MP_FP32, MP_FP16);
  Matrices x(1, 2, 3, 1.0);
  x.at(0, 0, 1) = x.at(0, 1, 1) = 60000.0;
  const std::vector<double> before(3);
  CHECK(run(c, x, before) == std::vector<double>{2.0, kInfinity, 2.0});
  c.desc.dtype_sum = MP_FP32;
  CHECK(run(c, x, before) == std::vector<double>{2.0, 120000.0, 2.0});
  x.at(0, 1, 2) = kNaN;
  const std::vector<double> got = run(c, x, before);
  CHECK(got[0] == 2.0);
  CHECK(std::isnan(got[2]));
  c.has_scale = true;
  c.scale = 0.0f;
  CHECK(run(c, x, before) == std::vector<double>(3, 0.0));
}

// ---------------------------------------------------------------------------- sums of rows

namespace {

/// Runs mp_sum_rows with NaN in the padding of x, a pattern in that of sum, and guard zones.
Matrices sum_rows(const mp_sum_rows_desc_t &d, const Matrices &x, double before, int64_t offset) {
  DeviceMatrices in(d.dtype, 1, d.rows, d.columns, d.ld_x, 0, offset, kPoison);
  DeviceMatrices sum(d.dtype_sum, 1, d.period, d.columns, d.ld_sum, 0, offset, kCanary);
  if (d.rows > 0) in.upload(x);
  sum.upload(Matrices(1, d.period, d.columns, before));
  const GradStats stats;
  require_ok(mp_sum_rows(context(), &d, in.data(), sum.data(), stats.get(), kStream));
  CHECK(in.damage() == "");
  CHECK(sum.damage() == "");
  const Matrices got = sum.download();
  stats.check(got.values);
  return got;
}

void check_sum_rows(const mp_sum_rows_desc_t &d, int64_t offset) {
  CAPTURE(d.rows, d.period, d.columns, d.ld_x, d.ld_sum, d.beta, mp_dtype_name(d.dtype),
          mp_dtype_name(d.dtype_sum), offset);
  const Matrices x = integers(d.rows, d.columns);
  Matrices wanted(1, d.period, d.columns, d.beta == 0.0f ? 0.0 : 3.0 * d.beta);
  for (int64_t i = 0; i < d.rows; i++)
    for (int64_t j = 0; j < d.columns; j++) wanted.at(0, i % d.period, j) += x.at(0, i, j);
  const double before = d.beta == 0.0f ? kNaN : 3.0;
  CHECK(sum_rows(d, x, before, offset).values == wanted.values);
}

}  // namespace

TEST_CASE("sum rows: integers are exact for every shape, type and layout",
          "[layers][sum_rows][short]") {
  for (const mp_dtype_t dtype : kDtypes)
    for (const mp_dtype_t dtype_sum : kDtypes)
      for (const int64_t rows : {0, 1, 4, 5, 23, 100})
        for (const int64_t period : {1, 3, 5, 40})
          for (const int64_t columns : {1, 7, 8, 65}) {
            auto d = mp_sum_rows_desc_default(rows, period, columns, dtype);
            d.dtype_sum = dtype_sum;
            check_sum_rows(d, 0);
            d.ld_x += 5;
            d.ld_sum += 8;
            d.beta = 2.0f;
            check_sum_rows(d, 1);
          }
}

TEST_CASE("sum rows: more rows than one block processes", "[layers][sum_rows]") {
  for (const mp_dtype_t dtype : kDtypes)
    check_sum_rows(mp_sum_rows_desc_default(9000, 3001, 40, dtype), 0);
}

TEST_CASE("sum rows: the sum is fp32, in ascending order, and rounded once",
          "[layers][sum_rows][short]") {
  const auto d = mp_sum_rows_desc_default(3 * 37, 3, 9, MP_FP32);
  const Matrices x(1, d.rows, d.columns, random_reals(MP_FP32, d.rows * d.columns, -1.0, 1.0, 5));
  Matrices wanted(1, 3, 9);
  for (int64_t i = 0; i < d.rows; i++)
    for (int64_t j = 0; j < 9; j++) {
      double &sum = wanted.at(0, i % 3, j);
      sum = round_to(MP_FP32, sum + x.at(0, i, j));
    }
  CHECK(sum_rows(d, x, 0.0, 0).values == wanted.values);
  auto half = d;
  half.dtype_sum = MP_FP16;
  for (double &value : wanted.values) value = round_to(MP_FP16, value);
  CHECK(sum_rows(half, x, 0.0, 0).values == wanted.values);
}

TEST_CASE("sum rows: overflow and NaN stay in their column", "[layers][sum_rows][short]") {
  auto d = mp_sum_rows_desc_default(4, 2, 3, MP_FP32);
  d.dtype_sum = MP_FP16;
  Matrices x(1, 4, 3, 1.0);
  x.at(0, 0, 1) = x.at(0, 2, 1) = 60000.0;
  x.at(0, 3, 2) = kNaN;
  const Matrices got = sum_rows(d, x, 0.0, 0);
  CHECK((got.at(0, 0, 0) == 2.0 && got.at(0, 0, 1) == kInfinity && got.at(0, 0, 2) == 2.0));
  CHECK((got.at(0, 1, 0) == 2.0 && got.at(0, 1, 1) == 2.0 && std::isnan(got.at(0, 1, 2))));
}
