// Element-wise functions: exact if they consist of one fp32 operation and a rounding, otherwise
// within the bounds of the epilogues' activations.
#include <cstring>

#include "tests/support/any.h"
#include "tests/support/grad_stats.h"
#include "tests/support/oracle.h"
#include "tests/support/output_case.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

struct Function {
  mp_pointwise_op_t op;
  mp_activation_t activation;
};

bool is_derivative(mp_activation_t activation) {
  return std::ranges::find(kBackwardActivations, activation) != std::end(kBackwardActivations);
}
bool reads_b(const Function &f) {
  if (f.op == MP_POINTWISE_COPY) return is_derivative(f.activation);
  return f.op != MP_POINTWISE_LEAKY_RELU && f.op != MP_POINTWISE_CLIP;
}
constexpr mp_pointwise_op_t kOps[] = {
    MP_POINTWISE_COPY,        MP_POINTWISE_ADD,  MP_POINTWISE_MUL,
    MP_POINTWISE_SUB,         MP_POINTWISE_DIV,  MP_POINTWISE_LEAKY_RELU,
    MP_POINTWISE_DLEAKY_RELU, MP_POINTWISE_CLIP, MP_POINTWISE_DCLIP};

/// Functions whose only fp32 error is that of one operation.
constexpr Function kExact[] = {
    {MP_POINTWISE_COPY, MP_ACT_NONE},        {MP_POINTWISE_COPY, MP_ACT_RELU},
    {MP_POINTWISE_ADD, MP_ACT_NONE},         {MP_POINTWISE_ADD, MP_ACT_RELU},
    {MP_POINTWISE_MUL, MP_ACT_NONE},         {MP_POINTWISE_MUL, MP_ACT_RELU},
    {MP_POINTWISE_COPY, MP_ACT_DRELU},       {MP_POINTWISE_SUB, MP_ACT_NONE},
    {MP_POINTWISE_DIV, MP_ACT_RELU},         {MP_POINTWISE_LEAKY_RELU, MP_ACT_NONE},
    {MP_POINTWISE_DLEAKY_RELU, MP_ACT_NONE}, {MP_POINTWISE_CLIP, MP_ACT_NONE},
    {MP_POINTWISE_DCLIP, MP_ACT_NONE}};

std::vector<Function> all_functions() {
  std::vector<Function> all;
  for (const mp_pointwise_op_t op : kOps) {
    all.push_back({op, MP_ACT_NONE});
    for (const mp_activation_t activation : kForwardActivations) all.push_back({op, activation});
  }
  for (const mp_activation_t activation : kBackwardActivations)
    all.push_back({MP_POINTWISE_COPY, activation});
  return all;
}

/// Layout of the rows of b: contiguous, with gaps, one row for all, or two rows that repeat.
enum class Rows { kDense, kApart, kOne, kRepeated, kRepeatedApart };
constexpr Rows kRows[] = {Rows::kDense, Rows::kApart, Rows::kOne, Rows::kRepeated,
                          Rows::kRepeatedApart};

enum class InPlace { kNo, kA, kB };

struct Layer {
  mp_pointwise_desc_t desc;
  std::vector<double> a, b;  ///< rows x columns; repeated rows of b are the first
  int64_t a_offset = 0, b_offset = 0, y_offset = 0;  ///< in elements, from 256-byte alignment
  InPlace in_place = InPlace::kNo;

  Function function() const { return {desc.op, desc.activation}; }
  /// Number of different rows of b.
  int64_t rows_of_b() const {
    const int64_t rows = desc.rows_b == 0 ? desc.rows : std::min(desc.rows_b, desc.rows);
    return desc.ld_b == 0 ? 1 : rows;
  }
  double b_at(size_t i) const { return b[i % static_cast<size_t>(rows_of_b() * desc.columns)]; }
};

struct Shape {
  int64_t rows, columns;
};

/// Returns a layer of integers that are exact in every type, as are their products.
Layer make_layer(const Function &f, const Shape &shape, Rows rows, mp_dtype_t dtype,
                 mp_dtype_t dtype_b) {
  Layer l{mp_pointwise_desc_default(f.op, shape.rows, shape.columns, dtype), {}, {}};
  l.desc.activation = f.activation;
  l.desc.slope = -0.1f;
  l.desc.low = -4.0f;
  l.desc.high = 9.0f;
  l.desc.dtype_b = dtype_b;
  if (rows == Rows::kApart || rows == Rows::kRepeatedApart) l.desc.ld_b = shape.columns + 3;
  if (rows == Rows::kRepeated || rows == Rows::kRepeatedApart) l.desc.rows_b = 2;
  if (rows == Rows::kOne) l.desc.ld_b = 0;
  Random random(static_cast<uint64_t>(shape.rows * 1000 + shape.columns));
  for (int64_t i = 0; i < shape.rows * shape.columns; i++) {
    l.a.push_back(static_cast<double>(random.integer(-15, 15)));
    l.b.push_back(static_cast<double>(random.integer(-15, 15)));
  }
  return l;
}

void fill_with_reals(Layer &l, double range) {
  Random random(static_cast<uint64_t>(l.desc.rows));
  for (double &x : l.a) x = round_to(l.desc.dtype, random.real(-range, range));
  for (double &x : l.b) x = round_to(l.desc.dtype_b, random.real(-range, range));
}

std::vector<double> run(const Layer &l) {
  const mp_pointwise_desc_t &d = l.desc;
  const int64_t rows_of_b = l.rows_of_b();
  const auto dense = [&](int64_t offset, uint8_t pattern) {
    return DeviceMatrices(d.dtype, 1, d.rows, d.columns, d.columns, 0, offset, pattern);
  };
  DeviceMatrices a = dense(l.a_offset, kPoison), beside = dense(l.y_offset, kCanary),
                 b(d.dtype_b, 1, rows_of_b, d.columns, d.ld_b, 0, l.b_offset, kPoison);
  a.upload({1, d.rows, d.columns, l.a});
  b.upload({1, rows_of_b, d.columns, {l.b.begin(), l.b.begin() + rows_of_b * d.columns}});
  const DeviceMatrices &y = l.in_place == InPlace::kA ? a : l.in_place == InPlace::kB ? b : beside;
  const auto a_bits = a.download_bits(), b_bits = b.download_bits();
  const bool has_b = reads_b(l.function());
  const GradStats stats;
  require_ok(mp_pointwise(context(), &l.desc, a.data(), has_b ? b.data() : nullptr, y.data(),
                          stats.get(), kStream));
  require_ok(mp_stream_sync(context(), kStream));
  const std::vector<double> got = y.download().values;
  stats.check(got);
  CHECK(y.damage() == "");
  CHECK((l.in_place == InPlace::kA || a.download_bits() == a_bits));
  CHECK((l.in_place == InPlace::kB || b.download_bits() == b_bits));
  return got;
}

// ---------------------------------------------------------------------------- oracle

double combined(const Layer &l, size_t i) {
  const double a = l.a[i], b = l.b_at(i), sloped = l.desc.slope * a;
  switch (l.desc.op) {
    case MP_POINTWISE_COPY:
      return a;
    case MP_POINTWISE_ADD:
      return a + b;
    case MP_POINTWISE_MUL:
      return a * b;
    case MP_POINTWISE_SUB:
      return a - b;
    case MP_POINTWISE_DIV:
      return a / b;
    case MP_POINTWISE_LEAKY_RELU:
      return a > 0.0 ? a : sloped;
    case MP_POINTWISE_DLEAKY_RELU:
      return b > 0.0 ? a : sloped;
    case MP_POINTWISE_CLIP:
      return std::isnan(a) ? a : std::clamp<double>(a, l.desc.low, l.desc.high);
    case MP_POINTWISE_DCLIP:
      return b >= l.desc.low && b <= l.desc.high ? a : 0.0;
  }
  return kNaN;
}

/// Extends oracle::activate by the limits of GELU and SiLU, which its formulas do not cover.
double activated(mp_activation_t activation, double z, double b) {
  const bool is_product =
      activation == MP_ACT_GELU || activation == MP_ACT_SILU || activation == MP_ACT_GELU_ERF;
  const bool is_derivative_of_product =
      activation == MP_ACT_DGELU || activation == MP_ACT_DSILU || activation == MP_ACT_DGELU_ERF;
  if (is_product && std::isinf(z)) return z > 0.0 ? z : -0.0;
  if (is_derivative_of_product && std::isinf(b)) return b > 0.0 ? z : z * 0.0;
  return oracle::activate(activation, z, b);
}

/// True if the only fp32 error is that of one operation: no activation curve, or its ends, which
/// are 0, 1 or the argument.
bool is_exact(mp_activation_t activation, double z, double b) {
  if (activation == MP_ACT_NONE || activation == MP_ACT_RELU || activation == MP_ACT_DRELU)
    return true;
  return std::fabs(is_derivative(activation) ? b : z) > 1000.0;
}

/// Returns the error bound of element i before rounding.
double error_of(const Layer &l, size_t i) {
  const mp_activation_t activation = l.desc.activation;
  const double z = combined(l, i), b = l.b_at(i);
  const double error = l.desc.op == MP_POINTWISE_COPY
                           ? 0.0
                           : fp32_operation() * std::fabs(z) + half_subnormal(MP_FP32);
  return oracle::activation_error(activation, z, b, error);
}

/// Describes the first wrong element, or returns an empty string.
std::string damage_of(const Layer &l, const std::vector<double> &y) {
  const mp_activation_t activation = l.desc.activation;
  const mp_dtype_t dtype = l.desc.dtype;
  for (size_t i = 0; i < l.a.size(); i++) {
    const double z = combined(l, i), b = l.b_at(i);
    const bool exact = is_exact(activation, z, b);
    const double value = exact ? round_to(MP_FP32, activated(activation, round_to(MP_FP32, z), b))
                               : activated(activation, z, b);
    const double wanted = round_to(dtype, value);
    const double bound =
        exact || !std::isfinite(wanted) ? 0.0 : rounded_error(dtype, value, error_of(l, i));
    if (same_value(y[i], wanted) || std::fabs(y[i] - value) <= bound) continue;
    return format("y[%zu] = %.9g, expected %.9g within %.3g: a = %.9g, b = %.9g", i, y[i], wanted,
                  bound, l.a[i], b);
  }
  return "";
}

void check(const Layer &l) {
  const mp_pointwise_desc_t &d = l.desc;
  expect_none(
      damage_of(l, run(l)),
      format("op = %d, activation = %d, %s and %s, %lld x %lld, ld_b = %lld, rows_b = %lld, "
             "offsets %lld, %lld, %lld, in place %d",
             d.op, d.activation, mp_dtype_name(d.dtype), mp_dtype_name(d.dtype_b),
             static_cast<long long>(d.rows), static_cast<long long>(d.columns),
             static_cast<long long>(d.ld_b), static_cast<long long>(d.rows_b),
             static_cast<long long>(l.a_offset), static_cast<long long>(l.b_offset),
             static_cast<long long>(l.y_offset), static_cast<int>(l.in_place)));
}

}  // namespace

TEST_CASE("pointwise: rows of any length, layout, type and place are exact",
          "[layers][pointwise][short]") {
  for (uint64_t seed = 0; seed < 1500; seed++) {
    Random random(seed);
    const Function f = any(random, kExact);
    const Shape shape{any(random, {1, 2, 3, 9}),
                      any(random, {1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 256, 257, 664, 1000, 1337})};
    const Rows rows = any(random, kRows);
    const mp_dtype_t dtype = any(random, kDtypes);
    Layer l = make_layer(f, shape, rows, dtype, one_in(2, random) ? dtype : any(random, kDtypes));
    if (one_in(2, random))
      for (int64_t *const offset : {&l.a_offset, &l.b_offset, &l.y_offset})
        *offset = any(random, {0, 1, 4, 8});
    // ld_b is irrelevant for one row.
    const bool can_be_b =
        reads_b(f) && l.desc.dtype_b == dtype && (rows == Rows::kDense || shape.rows == 1);
    if (one_in(3, random)) l.in_place = can_be_b && one_in(2, random) ? InPlace::kB : InPlace::kA;
    check(l);
  }
}

TEST_CASE("pointwise: more elements than one block processes", "[layers][pointwise]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const Rows rows : kRows) {
      for (const Shape &shape :
           {Shape{1, 100003}, Shape{100003, 1}, Shape{25001, 4}, Shape{3001, 30}, Shape{101, 1001}})
        check(make_layer({MP_POINTWISE_ADD, MP_ACT_RELU}, shape, rows, dtype, MP_FP16));
    }
    check(make_layer({MP_POINTWISE_COPY, MP_ACT_RELU}, {1, 100003}, Rows::kDense, dtype, dtype));
  }
}

TEST_CASE("pointwise: every function is within the error bound", "[layers][pointwise][short]") {
  for (const Function &f : all_functions()) {
    for (const mp_dtype_t dtype : kDtypes) {
      for (const mp_dtype_t dtype_b : kDtypes) {
        for (const double range : {1.0, 12.0}) {
          Layer l =
              make_layer(f, {7, 150}, range > 1.0 ? Rows::kOne : Rows::kDense, dtype, dtype_b);
          fill_with_reals(l, range);
          check(l);
        }
      }
    }
  }
}

TEST_CASE("pointwise: non-finite values and values at the ends of the range",
          "[layers][pointwise][short]") {
  for (const Function &f : all_functions()) {
    for (const mp_dtype_t dtype : kDtypes) {
      const double largest = largest_finite(dtype);
      const std::vector<double> values = {0.0,  -0.0,      1.0,        -1.0,    3000.0,  -3000.0,
                                          kNaN, kInfinity, -kInfinity, largest, -largest};
      const int64_t count = static_cast<int64_t>(values.size());
      Layer l = make_layer(f, {count, count}, Rows::kDense, dtype, dtype);
      for (size_t i = 0; i < l.a.size(); i++) {
        l.a[i] = round_to(dtype, values[i / values.size()]);
        l.b[i] = round_to(dtype, values[i % values.size()]);
      }
      check(l);
    }
  }
}

TEST_CASE("pointwise: a copy has the bits of a", "[layers][pointwise][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    Layer l = make_layer({MP_POINTWISE_COPY, MP_ACT_NONE}, {1, 9001}, Rows::kDense, dtype, dtype);
    fill_with_reals(l, 1.0);
    l.a[3] = -0.0, l.a[51] = kInfinity, l.a[52] = half_subnormal(dtype) * 6.0;
    const DeviceArray a(dtype, l.a), y(dtype, static_cast<int64_t>(l.a.size()));
    require_ok(mp_pointwise(context(), &l.desc, a.data(), nullptr, y.data(), nullptr, kStream));
    CHECK(y.download_bits() == a.download_bits());
  }
}

TEST_CASE("pointwise: b is ignored if the function does not read it",
          "[layers][pointwise][short]") {
  Layer l = make_layer({MP_POINTWISE_COPY, MP_ACT_GELU}, {2, 20}, Rows::kDense, MP_FP16, MP_FP32);
  const DeviceArray a(MP_FP16, l.a), y(MP_FP16, 40, 0, kCanary);
  void *nowhere = nullptr;
  const uintptr_t odd = 1;  // an address that all other functions reject
  std::memcpy(&nowhere, &odd, sizeof nowhere);
  for (const Rows rows : kRows) {
    l.desc.ld_b = rows == Rows::kDense ? 20 : rows == Rows::kApart ? 30 : 0;
    for (void *const b : {nowhere, y.data(), static_cast<void *>(nullptr)}) {
      require_ok(mp_pointwise(context(), &l.desc, a.data(), b, y.data(), nullptr, kStream));
      expect_none(damage_of(l, y.download()), "b is not read");
    }
  }
}
