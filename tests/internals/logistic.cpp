// The logistic function, tanh and the normal distribution (kernels/simt/logistic.h), over all
// magnitudes, against fp64 or long double.
#include "kernels/simt/activation.h"

#include <cmath>
#include <limits>

#include "testing.h"

using namespace mp::host;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The distance in ulp of the exact value; the ulp of a subnormal is the smallest of them.
double ulps(float got, double exact) {
  int exponent = 0;
  (void)std::frexp(exact, &exponent);
  return std::fabs(static_cast<double>(got) - exact) /
         std::ldexp(1.0, std::max(exponent - 24, -149));
}

/// The largest distance of f from `exact` over every 97th number up to `most`, of both signs.
template <class F, class Exact>
double most_ulps(F f, Exact exact, float most) {
  double worst = 0.0;
  for (uint32_t bits = 0; bits <= bits_of(most); bits += 97)
    for (const uint32_t sign : {0u, 0x80000000u}) {
      const float x = float_from_bits(bits | sign);
      worst = std::max(worst, ulps(f(x), exact(static_cast<double>(x))));
    }
  return worst;
}

}  // namespace

TEST_CASE("logistic: e^x of x <= 0") {
  const auto exact = [](double x) { return std::exp(x <= 0.0 ? x : -x); };
  CHECK(most_ulps([](float x) { return exp_of_negative(-std::fabs(x)); }, exact, 110.0f) < 1.1);
  CHECK(exp_of_negative(0.0f) == 1.0f);
  CHECK(exp_of_negative(-kInfinity) == 0.0f);
  CHECK(std::isnan(exp_of_negative(std::nanf(""))));
}

TEST_CASE("logistic: the logistic function") {
  // 1 / (1 + e^-x) loses no digit of a small result when it is taken as e^x / (1 + e^x).
  const auto exact = [](double x) {
    return x < 0.0 ? std::exp(x) / (1.0 + std::exp(x)) : 1.0 / (1.0 + std::exp(-x));
  };
  CHECK(most_ulps(logistic, exact, 110.0f) < 2.5);
  CHECK(logistic(0.0f) == 0.5f);
  CHECK(logistic(-0.0f) == 0.5f);
  CHECK(logistic(kInfinity) == 1.0f);
  CHECK(bits_of(logistic(-kInfinity)) == 0);
  CHECK(std::isnan(logistic(std::nanf(""))));
}

TEST_CASE("logistic: tanh") {
  CHECK(most_ulps(
            tanh_of, [](double x) { return std::tanh(x); }, 110.0f) < 2.5);
  CHECK(bits_of(tanh_of(0.0f)) == 0);
  CHECK(bits_of(tanh_of(-0.0f)) == 0x80000000u);
  CHECK(tanh_of(kInfinity) == 1.0f);
  CHECK(tanh_of(-kInfinity) == -1.0f);
  CHECK(std::isnan(tanh_of(std::nanf(""))));
}

TEST_CASE("logistic: quotients of 1, e and 1 - e by 1 + e are correctly rounded") {
  // Reciprocals within 1 ulp; for d = 2 - 2^-23, whose reciprocal is close to the middle of two
  // numbers, only the correctly rounded one.
  constexpr float kMiddle = 0x1.fffffep+0f;
  int64_t wrong = 0;
  for (uint32_t bits = 0; bits <= bits_of(1.0f); bits += 31) {
    const float e = float_from_bits(bits), d = 1.0f + e;
    const int most = d == kMiddle ? 0 : 1;
    for (const float n : {1.0f, e, 1.0f - e})
      for (int ulp = -most; ulp <= most; ulp++) {
        const float reciprocal = float_from_bits(bits_of(1.0f / d) + static_cast<uint32_t>(ulp));
        wrong += bits_of(corrected_quotient(n, d, reciprocal)) != bits_of(n / d);
      }
  }
  CHECK(wrong == 0);
  CHECK(corrected_quotient(1.0f, kMiddle, 1.0f / kMiddle) == 1.0f / kMiddle);
  CHECK(std::isnan(corrected_quotient(1.0f, std::nanf(""), std::nanf(""))));
}

TEST_CASE("logistic: the reciprocal without a division") {
  CHECK(most_ulps([](float x) { return reciprocal_near_1(1.0f + std::fabs(x)); },
                  [](double x) {
                    return 1.0 / static_cast<double>(1.0f + static_cast<float>(std::fabs(x)));
                  },
                  14.99f) < 1.5);
  CHECK(std::isnan(reciprocal_near_1(std::nanf(""))));
}

TEST_CASE("logistic: the normal distribution and its GELU") {
  const auto below = [](double x) {
    return static_cast<double>(erfcl(-static_cast<long double>(x) / sqrtl(2.0L)) / 2.0L);
  };
  CHECK(most_ulps([](float x) { return NormalTail(std::fabs(x)).value(); },
                  [&](double x) { return below(-std::fabs(x)); }, 15.0f) < 6.0);
  CHECK(most_ulps(
            GeluErf::value, [&](double x) { return x * below(x); }, 15.0f) < 6.0);
  CHECK(NormalTail(0.0f).value() == 0.5f);
  CHECK(NormalTail(kInfinity).value() == 0.0f);
  CHECK(std::isnan(NormalTail(std::nanf("")).value()));
}

TEST_CASE("logistic: nothing rises above 1, and neither function falls") {
  float last_logistic = 0.0f, last_tanh = -1.0f;
  for (float x = -120.0f; x < 120.0f; x += 0.0009765625f) {
    const float s = logistic(x), t = tanh_of(x);
    CHECK((s >= last_logistic - 0x1p-23f * s && s <= 1.0f));
    CHECK((t >= last_tanh - 0x1p-23f && t <= 1.0f));
    last_logistic = s;
    last_tanh = t;
  }
}
