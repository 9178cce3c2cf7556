// kernels/simt/reproducible_math.h against the C library in long double, which has 11 or 60 more
// bits, and at arguments with exact results.  tests/conformance compares the bits of the targets.
#include "kernels/simt/reproducible_math.h"

#include <cfloat>
#include <cmath>
#include <limits>

#include "testing.h"
#include "tests/support/input_values.h"

using namespace mptest;
namespace math = mp::host::reproducible;

namespace {

static_assert(LDBL_MANT_DIG >= 64);
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMinSubnormal = 0x1p-1074, kMinNormal = 0x1p-1022, kLargest = DBL_MAX;
constexpr int kMinExponent = -1074, kMaxExponent = 1023;
constexpr int kArguments = 20000;

/// Documented error of 1 ulp, and margin for the 1 ulp of the long double reference.
constexpr long double kMaxUlps = 1.0L + 0x1p-10L;

/// Returns the ulp of `wanted`; subnormals have the ulp of the smallest normal number.
long double ulp_at(long double wanted) {
  return std::ldexp(1.0L, std::max(std::ilogb(wanted), -1022) - 52);
}

struct Worst {
  long double ulps = 0.0L;
  void update(double got, long double wanted) {
    if (std::fabs(wanted) > static_cast<long double>(kLargest)) {
      REQUIRE((std::isinf(got) || std::fabs(got) == kLargest));
      return;
    }
    ulps = std::max(ulps, std::fabs(got - wanted) / ulp_at(wanted));
  }
};

/// Returns a positive finite number: any bits, a subnormal, or a number near 1.
double positive(Random &random) {
  const auto mantissa = static_cast<uint64_t>(random.integer(0, (int64_t{1} << 52) - 1));
  switch (random.integer(0, 3)) {
    case 0:
      return math::double_from_bits(mantissa | static_cast<uint64_t>(random.integer(0, 2046))
                                                   << 52);
    case 1:
      return math::double_from_bits(mantissa | 1);
    case 2:
      return random.real(0.5, 2.0);
    default:
      return 1.0 + std::ldexp(random.real(-0.5, 0.5), -static_cast<int>(random.integer(0, 50)));
  }
}

bool is_zero_of_either_sign(double x) {
  return x == 0.0;
}

/// Returns the number of powers of two that `log2` does not map to their exponents.
template <class F>
int count_inexact(const F &log2) {
  int inexact = 0;
  for (int k = kMinExponent; k <= kMaxExponent; k++) inexact += log2(std::ldexp(1.0, k)) != k;
  return inexact;
}

/// CUDA's formula for log2, with a log that equals CUDA's at powers of two.  It is inexact there,
/// so the loss scale must not use it.
double log2_of_cuda(double x) {
  const double ln = std::log(x);
  return std::fma(ln, 0x1.71547652b82fep+0, ln * 0x1.777d0ffda0d24p-56);
}

}  // namespace

TEST_CASE("reproducible math: log2 of every power of two, and exp2 of every exponent, are exact") {
  CHECK(count_inexact(math::log2) == 0);
  CHECK(count_inexact(log2_of_cuda) > 0);  // injected
  CHECK(log2_of_cuda(4096.0) < 12.0);
  for (int k = kMinExponent; k <= kMaxExponent; k++) REQUIRE(math::exp2(k) == std::ldexp(1.0, k));
}

TEST_CASE("reproducible math: log2 is monotonic around powers of two") {
  for (int k = kMinExponent; k <= kMaxExponent; k++) {
    double x = std::ldexp(1.0, k), y = x;
    for (int i = 0; i < 4; i++) {
      const double below = std::nextafter(x, 0.0), above = std::nextafter(y, kInfinity);
      REQUIRE(math::log2(below) <= math::log2(x));
      REQUIRE(math::log2(y) <= math::log2(above));
      if (below != 0.0) x = below;
      if (above != kInfinity) y = above;
    }
  }
}

TEST_CASE("reproducible math: exp2 is monotonic around integers and halves") {
  for (int twice = 2 * kMinExponent; twice < 2 * kMaxExponent; twice++) {
    const double y = twice / 2.0;
    REQUIRE(math::exp2(std::nextafter(y, -kInfinity)) <= math::exp2(y));
    REQUIRE(math::exp2(y) <= math::exp2(std::nextafter(y, kInfinity)));
  }
}

TEST_CASE("reproducible math: logarithms are within 1 ulp") {
  Random random(1);
  Worst log2, log;
  for (int i = 0; i < kArguments; i++) {
    const double x = positive(random);
    if (x == 1.0) continue;
    log2.update(math::log2(x), std::log2(static_cast<long double>(x)));
    log.update(math::log(x), std::log(static_cast<long double>(x)));
  }
  CHECK(log2.ulps <= kMaxUlps);
  CHECK(log.ulps <= kMaxUlps);
}

TEST_CASE("reproducible math: exp2 is within 1 ulp, down to subnormals") {
  Random random(2);
  Worst small, any, subnormal;
  for (int i = 0; i < kArguments; i++) {
    const auto update = [&](Worst &worst, double least, double most) {
      const double y = random.real(least, most);
      worst.update(math::exp2(y), std::exp2(static_cast<long double>(y)));
    };
    update(small, -1.0, 1.0);
    update(any, -1022.0, 1024.0);
    update(subnormal, -1080.0, -1020.0);
  }
  CHECK(small.ulps <= kMaxUlps);
  CHECK(any.ulps <= kMaxUlps);
  CHECK(subnormal.ulps <= kMaxUlps);
}

TEST_CASE("reproducible math: pow is within 1 ulp if the result is finite") {
  Random random(3);
  Worst any, decay;
  const auto update = [](Worst &worst, double x, double y) {
    worst.update(math::pow(x, y), std::pow(static_cast<long double>(x), y));
  };
  for (int i = 0; i < kArguments; i++) {
    const double x = positive(random);
    if (x == 1.0) continue;
    update(any, x, random.real(-1080.0, 1024.0) / math::log2(x));
    // beta^t, as in the bias correction of an optimizer step.
    const double beta =
        1.0 - std::ldexp(random.real(0.5, 1.0), -static_cast<int>(random.integer(0, 30)));
    update(decay, static_cast<float>(beta), static_cast<double>(random.integer(1, 1000000)));
    REQUIRE(math::pow(x, 1.0) == x);
  }
  CHECK(any.ulps <= kMaxUlps);
  CHECK(decay.ulps <= kMaxUlps);
}

TEST_CASE("reproducible math: cospi is within 1 ulp, and exact at 0, 1/2 and 1") {
  CHECK(math::cospi(0.0) == 1.0);
  CHECK(math::cospi(0.5) == 0.0);
  CHECK(math::cospi(1.0) == -1.0);
  constexpr long double kPi = 3.141592653589793238462643383279502884L;
  Random random(4);
  Worst worst;
  for (int i = 0; i < kArguments; i++) {
    const double near_half =
        0.5 + std::ldexp(random.real(-0.5, 0.5), -static_cast<int>(random.integer(0, 40)));
    for (const double x : {random.real(0.0, 1.0), near_half}) {
      if (x == 0.5) continue;
      const long double from_half = 0.5L - x;  // exact
      worst.update(math::cospi(x),
                   std::fabs(from_half) < 0.25L ? std::sin(kPi * from_half) : std::cos(kPi * x));
    }
  }
  CHECK(worst.ulps <= kMaxUlps);
}

TEST_CASE("reproducible math: logarithms and exp2 are exact at limits, infinity and NaN") {
  for (const auto log : {math::log2, math::log}) {
    CHECK(log(0.0) == -kInfinity);
    CHECK(log(-0.0) == -kInfinity);
    CHECK(log(kInfinity) == kInfinity);
    CHECK(is_zero_of_either_sign(log(1.0)));
    for (const double x : {-1.0, -kMinSubnormal, -kInfinity, kNan}) CHECK(std::isnan(log(x)));
  }
  CHECK(math::log2(kLargest) == 1024.0);
  CHECK(math::exp2(kInfinity) == kInfinity);
  CHECK(math::exp2(1e300) == kInfinity);
  CHECK(math::exp2(1024.0) == kInfinity);
  CHECK(math::exp2(std::nextafter(1024.0, 0.0)) < kInfinity);
  CHECK(math::exp2(-1e300) == 0.0);
  CHECK(math::exp2(-kInfinity) == 0.0);
  CHECK(math::exp2(-1076.0) == 0.0);
  CHECK(math::exp2(-1074.9) == kMinSubnormal);
  CHECK(math::times_power_of_2(std::nextafter(1.0, 0.0), -1022) == kMinNormal);  // rounded up
  CHECK(std::isnan(math::exp2(kNan)));
}

TEST_CASE("reproducible math: pow equals C's pow at limits, infinity and NaN") {
  const double numbers[] = {0.0, kMinSubnormal, kMinNormal, 1e-300,   0.25,      0.999,
                            1.0, 2.0,           1e300,      kLargest, kInfinity, kNan};
  const double exponents[] = {-kInfinity, -kLargest, -1e300,   -3.0,      -0.5, -1e-300,
                              -0.0,       0.0,       1e-300,   0.5,       1.0,  2.0,
                              1e9,        1e300,     kLargest, kInfinity, kNan};
  for (const double x : numbers) {
    for (const double y : exponents) {
      const double got = math::pow(x, y), wanted = std::pow(x, y);
      CAPTURE(x, y, got, wanted);
      if (std::isnan(wanted) || std::isinf(wanted) || wanted == 0.0 || wanted == 1.0)
        CHECK((std::isnan(wanted) ? std::isnan(got) : got == wanted));
    }
  }
  CHECK(std::isnan(math::pow(-2.0, 2.0)));
}

TEST_CASE("reproducible math: sine and cosine of fp32 angles are within 0.51 ulp") {
  const auto ulps = [](float got, long double wanted) {
    const int exponent = std::max(std::ilogb(wanted), -126);
    return std::fabs(static_cast<long double>(got) - wanted) / std::ldexp(1.0L, exponent - 23);
  };
  long double worst = 0.0L;
  for (uint32_t bits = 1; bits <= 0x4f000000u; bits += 997)  // up to 2^31
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float x = mp::host::float_from_bits(bits | sign);
      const math::SinCos got = math::sin_cos(x);
      worst = std::max({worst, ulps(got.sin, std::sin(static_cast<long double>(x))),
                        ulps(got.cos, std::cos(static_cast<long double>(x)))});
    }
  CHECK(worst <= 0.51L);
  CHECK((math::sin_cos(0.0f).sin == 0.0f && math::sin_cos(0.0f).cos == 1.0f));
  for (const float out : {0x1.000002p+31f, HUGE_VALF, NAN}) {
    CHECK(std::isnan(math::sin_cos(out).sin));
    CHECK(std::isnan(math::sin_cos(-out).cos));
  }
}
