// Rotary embeddings against fp64, the accuracy of sine and cosine, layouts, and default angles.
#include <limits>

#include "tests/support/any.h"
#include "tests/support/bounds.h"
#include "tests/support/grad_stats.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

constexpr int32_t kMaxPosition = std::numeric_limits<int32_t>::max();

struct Layer {
  mp_rope_desc_t desc;
  std::vector<double> x;           ///< rows x heads x head_dim
  std::vector<int32_t> positions;  ///< empty: default
  std::vector<float> inv_freq;     ///< empty: default
  bool in_place = false;
  int64_t offset = 0;  ///< in elements, from 256-byte alignment

  bool has(uint32_t flag) const { return (desc.flags & flag) != 0; }
  int64_t x_head() const { return desc.x_head != 0 ? desc.x_head : desc.head_dim; }
  int64_t x_row() const { return desc.x_row != 0 ? desc.x_row : desc.heads * x_head(); }
  /// Index in x of element e.
  size_t dense(int64_t row, int64_t head, int64_t e) const {
    return static_cast<size_t>((row * desc.heads + head) * desc.head_dim + e);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (int64_t row = 0; row < desc.rows; row++)
      for (int64_t head = 0; head < desc.heads; head++)
        for (int64_t e = 0; e < desc.head_dim; e++) visit(row, head, e);
  }

  /// Returns the angle as documented, in fp32.
  double angle(int64_t row, int64_t pair) const {
    const int64_t period = desc.period != 0 ? desc.period : desc.rows;
    const double position =
        positions.empty() ? static_cast<double>(row % period) : positions[static_cast<size_t>(row)];
    const double freq = inv_freq.empty()
                            ? std::pow(static_cast<double>(desc.base),
                                       -2.0 * static_cast<double>(pair) / desc.rotary_dim)
                            : static_cast<double>(inv_freq[static_cast<size_t>(pair)]);
    return round_to(MP_FP32, round_to(MP_FP32, position) * round_to(MP_FP32, freq));
  }
};

Layer make_layer(int64_t rows, int32_t heads, int32_t head_dim, mp_dtype_t dtype = MP_FP32,
                 uint32_t flags = 0) {
  Layer l{mp_rope_desc_default(rows, heads, head_dim, dtype), {}, {}, {}};
  l.desc.flags = flags;
  Random random(static_cast<uint64_t>(rows * 1000 + heads * 100 + head_dim));
  l.x = random_reals(dtype, rows * heads * head_dim, -4.0, 4.0, random);
  return l;
}

/// Returns all elements of y; checks statistics and the elements between heads and rows.
std::vector<double> run(const Layer &l) {
  const mp_rope_desc_t &d = l.desc;
  const auto memory = [&] {
    return DeviceMatrices(d.dtype, d.rows, d.heads, d.head_dim, l.x_head(), l.x_row(), l.offset,
                          kCanary);
  };
  DeviceMatrices x = memory(), beside = memory();
  x.upload({d.rows, d.heads, d.head_dim, l.x});
  const DeviceMatrices &y = l.in_place ? x : beside;
  const DeviceBuffer<int32_t> positions(l.positions);
  const DeviceBuffer<float> inv_freq(l.inv_freq);
  const GradStats stats;
  require_ok(mp_rope(context(), &d, l.positions.empty() ? nullptr : positions.data(),
                     l.inv_freq.empty() ? nullptr : inv_freq.data(), x.data(), y.data(),
                     stats.get(), kStream));
  CHECK(y.damage() == "");
  const std::vector<double> got = y.download().values;
  stats.check(got);
  return got;
}

/// Describes the first wrong element, or returns an empty string.
std::string damage_of(const Layer &l, const std::vector<double> &y) {
  const mp_rope_desc_t &d = l.desc;
  const double u = unit_roundoff(MP_FP32);
  std::string damage;
  l.for_each([&](int64_t row, int64_t head, int64_t e) {
    const double got = y[l.dense(row, head, e)], x = l.x[l.dense(row, head, e)];
    double wanted = x, bound = 0.0;
    if (e < d.rotary_dim) {
      const bool is_interleaved = l.has(MP_ROPE_FLAG_INTERLEAVED);
      const int64_t half = d.rotary_dim / 2, pair = is_interleaved ? e / 2 : e % half;
      const bool is_first = is_interleaved ? e % 2 == 0 : e < half;
      const int64_t partner =
          is_interleaved ? e + (is_first ? 1 : -1) : e + (is_first ? half : -half);
      const double angle = l.angle(row, pair) * (l.has(MP_ROPE_FLAG_INVERSE) ? -1.0 : 1.0);
      const double own = x * std::cos(angle),
                   other = l.x[l.dense(row, head, partner)] * std::sin(angle) * (is_first ? -1 : 1);
      wanted = own + other;
      // sin and cos are within 0.51 ulp, at most 1.02 u relative; one product, one fma.
      const double error = u * (1.1 * std::fabs(own) + 2.2 * std::fabs(other) + std::fabs(wanted));
      bound = rounded_error(d.dtype, wanted, error);
    }
    if (damage.empty() && !(std::fabs(got - wanted) <= bound))
      damage = format("y[%lld][%lld][%lld] = %.9g, expected %.9g within %.3g",
                      static_cast<long long>(row), static_cast<long long>(head),
                      static_cast<long long>(e), got, wanted, bound);
  });
  return damage;
}

void check(const Layer &l) {
  const mp_rope_desc_t &d = l.desc;
  expect_none(
      damage_of(l, run(l)),
      format("%s, %lld x %d x %d, rotary_dim %d, flags %u, strides %lld, %lld, offset %lld, "
             "in place %d",
             mp_dtype_name(d.dtype), static_cast<long long>(d.rows), d.heads, d.head_dim,
             d.rotary_dim, d.flags, static_cast<long long>(d.x_row),
             static_cast<long long>(d.x_head), static_cast<long long>(l.offset), l.in_place));
}

constexpr uint32_t kAllFlags[] = {0, MP_ROPE_FLAG_INTERLEAVED, MP_ROPE_FLAG_INVERSE,
                                  MP_ROPE_FLAG_INTERLEAVED | MP_ROPE_FLAG_INVERSE};

double ulps(double got, double wanted) {
  return std::fabs(got - wanted) / std::ldexp(1.0, std::max(std::ilogb(wanted), -126) - 23);
}

}  // namespace

TEST_CASE("rope: any shape, layout, flag and type, in place and out of place",
          "[layers][rope][short]") {
  for (uint64_t seed = 0; seed < 600; seed++) {
    Random random(seed);
    const int64_t rows = any(random, {5, 7});
    const int32_t heads = any(random, {1, 3, 9, 10}),
                  head_dim = any(random, {2, 6, 16, 30, 32, 64, 130});
    Layer l = make_layer(rows, heads, head_dim, any(random, kDtypes), any(random, kAllFlags));
    if (one_in(2, random)) l.desc.rotary_dim = std::max(head_dim / 4 * 2, 2);
    l.in_place = one_in(2, random);
    l.offset = any(random, {0, 0, 1, 8});
    switch (random.integer(0, 5)) {
      case 0:
        l.desc.x_row = (heads + 2) * head_dim;  // q and k of a packed [q | k | v]
        break;
      case 1:
        l.desc.x_head = head_dim + 3;
        break;
      case 2:
        l.desc.x_head = rows * (head_dim + 1);  // heads x rows x head_dim
        l.desc.x_row = head_dim + 1;
        break;
    }
    check(l);
  }
}

TEST_CASE("rope: more tokens than one block processes", "[layers][rope]") {
  for (const uint32_t flags : kAllFlags) {
    Layer l = make_layer(1001, 17, 64, MP_BF16, flags);
    l.desc.period = 300;
    check(l);
  }
  check(make_layer(3, 2, 512, MP_FP16));
}

TEST_CASE("rope: position 0 leaves every element unchanged", "[layers][rope][short]") {
  for (const mp_dtype_t dtype : kDtypes)
    for (const uint32_t flags : kAllFlags) {
      Layer l = make_layer(4, 3, 24, dtype, flags);
      l.positions.assign(4, 0);
      CHECK(run(l) == l.x);
    }
}

TEST_CASE("rope: sine and cosine are within 0.51 ulp for all angles", "[layers][rope][short]") {
  constexpr int32_t kPairs = 64, kRows = 600;
  Layer l = make_layer(kRows, 1, 2 * kPairs);
  Random random(3);
  for (int32_t i = 0; i < kPairs; i++)
    l.inv_freq.push_back(static_cast<float>(std::ldexp(random.real(0.5, 1.0), -i / 2)));
  l.inv_freq[0] = 1.0f;
  l.inv_freq[1] = 0.5f;
  // The numerators of the continued fraction of pi: angles that are almost multiples of pi / 2.
  l.positions = {1,       -1,       3,         22,        333,       355,          -355,
                 103993,  104348,   208341,    312689,    833719,    1146408,      4272943,
                 5419351, 80143857, 165707065, 245850922, 411557987, kMaxPosition, -kMaxPosition};
  while (l.positions.size() < kRows)
    l.positions.push_back(
        static_cast<int32_t>(random.integer(-kMaxPosition, kMaxPosition) >> random.integer(0, 30)));
  l.for_each([&](int64_t row, int64_t, int64_t e) { l.x[l.dense(row, 0, e)] = e < kPairs; });
  const std::vector<double> y = run(l);
  double worst = 0.0;
  for (int64_t row = 0; row < kRows; row++)
    for (int64_t i = 0; i < kPairs; i++) {
      const double angle = l.angle(row, i);
      worst = std::max(worst, ulps(y[l.dense(row, 0, i)], std::cos(angle)));
      if (angle != 0.0)
        worst = std::max(worst, ulps(y[l.dense(row, 0, i + kPairs)], std::sin(angle)));
    }
  CHECK(worst <= 0.51);
  CHECK(worst > 0.49);
}

TEST_CASE("rope: default positions and frequencies have the bits of explicit ones",
          "[layers][rope][short]") {
  for (const float base : {10000.0f, 500000.0f, 1.0f}) {
    Layer l = make_layer(11, 2, 48, MP_FP32);
    l.desc.base = base;
    l.desc.period = 4;
    Layer given = l;
    for (int32_t row = 0; row < 11; row++) given.positions.push_back(row % 4);
    for (int32_t i = 0; i < 24; i++)
      given.inv_freq.push_back(static_cast<float>(std::pow(static_cast<double>(base), -i / 24.0)));
    CHECK(run(l) == run(given));
    given.desc.base = 3.0f;  // unused, like the period
    given.desc.period = 7;
    CHECK(run(l) == run(given));
    l.desc.period = 0;
    for (int32_t row = 0; row < 11; row++) given.positions[static_cast<size_t>(row)] = row;
    CHECK(run(l) == run(given));
  }
}

TEST_CASE("rope: a NaN reaches only its pair, and so does an angle out of range",
          "[layers][rope][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    Layer l = make_layer(3, 2, 16, dtype);
    l.x[l.dense(1, 0, 3)] = kNaN;
    const std::vector<double> y = run(l);
    l.for_each([&](int64_t row, int64_t head, int64_t e) {
      REQUIRE(std::isnan(y[l.dense(row, head, e)]) == (row == 1 && head == 0 && e % 8 == 3));
    });
  }
  Layer l = make_layer(3, 2, 8);
  l.positions = {5, kMaxPosition, -kMaxPosition};
  const float infinity = std::numeric_limits<float>::infinity();
  l.inv_freq = {1.0f, 0x1.000002p+0f, infinity, std::nanf("")};
  const std::vector<double> y = run(l);
  l.for_each([&](int64_t row, int64_t head, int64_t e) {
    const bool is_out = e % 4 >= 2 || (e % 4 == 1 && row > 0);
    REQUIRE(std::isnan(y[l.dense(row, head, e)]) == is_out);
  });
}
