// Dropout against masks from an independent Philox implementation.
#include "tests/step/oracle_rounding.h"
#include "tests/support/any.h"
#include "tests/support/grad_stats.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

struct Layer {
  mp_dropout_desc_t desc;
  uint64_t offset = 0;
  bool has_offset = false;
  std::vector<double> x;
  int64_t x_offset = 0, y_offset = 0;  ///< in elements, from 256-byte alignment
  bool in_place = false;
};

Layer make_layer(int64_t count, float p, mp_dtype_t dtype = MP_FP32) {
  Layer l{mp_dropout_desc_default(count, p, dtype), 0, false, {}, 0, 0, false};
  l.desc.seed = 0x123456789abcdef0 + static_cast<uint64_t>(count);
  Random random(static_cast<uint64_t>(count));
  l.x = random_reals(dtype, count, -4.0, 4.0, random);
  return l;
}

std::vector<double> run(const Layer &l) {
  const DeviceValue<uint64_t> offset(l.offset);
  const DeviceArray x(l.desc.dtype, l.x, l.x_offset),
      beside(l.desc.dtype, l.desc.count, l.y_offset, kCanary);
  const DeviceArray &y = l.in_place ? x : beside;
  const GradStats stats;
  require_ok(mp_dropout(context(), &l.desc, l.has_offset ? offset.data() : nullptr, x.data(),
                        y.data(), stats.get(), kStream));
  stats.check(y.download());
  return y.download();
}

void check(const Layer &l) {
  CAPTURE(l.desc.count, l.desc.p, mp_dtype_name(l.desc.dtype), l.x_offset, l.y_offset, l.in_place);
  const double factor = oracle::keep_factor(l.desc.p);
  const std::vector<double> y = run(l);
  REQUIRE(y.size() == l.x.size());
  int64_t wrong = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const double product = round_to(l.desc.dtype, round_to(MP_FP32, l.x[i] * factor));
    const bool is_dropped =
        oracle::is_dropped(i, l.desc.p, l.desc.seed, l.has_offset ? l.offset : 0);
    wrong += !same_value(y[i], is_dropped ? 0.0 : product);
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("dropout: the mask equals the documented one at any place", "[layers][dropout][short]") {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const int64_t count = any(random, {1, 3, 4, 5, 8, 31, 255, 256, 257, 777, 1000, 5003, 9001});
    const float p = any(random, {0x1p-20f, 0.1f, 0.375f, 0.5f, 0.9f, 1.0f - 0x1p-24f});
    Layer l = make_layer(count, p, any(random, kDtypes));
    l.x_offset = any(random, {0, 1, 4});
    l.y_offset = any(random, {0, 3, 8});
    l.in_place = one_in(3, random);
    check(l);
  }
}

TEST_CASE("dropout: more elements than one block processes", "[layers][dropout]") {
  for (const mp_dtype_t dtype : kDtypes) check(make_layer(300007, 0.7f, dtype));
}

TEST_CASE("dropout: another seed or offset gives another mask", "[layers][dropout][short]") {
  Layer l = make_layer(400, 0.5f, MP_FP16);
  const std::vector<double> first = run(l);
  CHECK(run(l) == first);
  l.has_offset = true;  // 0, the default
  CHECK(run(l) == first);
  for (const uint64_t offset : {uint64_t{1}, uint64_t{1} << 32, ~uint64_t{0}}) {
    l.offset = offset;
    check(l);
    CHECK(run(l) != first);
  }
  l = make_layer(400, 0.5f, MP_FP16);
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1} << 40, ~uint64_t{0}}) {
    l.desc.seed = seed;
    check(l);
    CHECK(run(l) != first);
  }
}

TEST_CASE("dropout: p = 0 copies", "[layers][dropout][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    Layer l = make_layer(100, 0.0f, dtype);
    l.x[3] = -0.0, l.x[51] = kInfinity, l.x[52] = -kInfinity;
    const DeviceArray x(dtype, l.x), y(dtype, l.desc.count);
    require_ok(mp_dropout(context(), &l.desc, nullptr, x.data(), y.data(), nullptr, kStream));
    CHECK(y.download_bits() == x.download_bits());
    l.x[50] = kNaN;
    check(l);
  }
}

TEST_CASE("dropout: non-finite values are dropped too", "[layers][dropout][short]") {
  for (const mp_dtype_t dtype : kDtypes) {
    for (const double bad : {kNaN, kInfinity, -kInfinity, largest_finite(dtype)}) {
      Layer l = make_layer(64, 0.5f, dtype);
      l.x.assign(64, bad);
      check(l);
    }
  }
}
