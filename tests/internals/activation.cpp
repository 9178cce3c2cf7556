// Activations of one element: errors against fp64, and exact limits.
#include "kernels/simt/activation.h"

#include <cmath>
#include <limits>

#include "tests/support/oracle.h"

using namespace mp::host;
using namespace mptest;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

/// Returns the number of results of f whose error exceeds the bound for an exact argument.
template <class F>
int count_wrong(F f, mp_activation_t forward, mp_activation_t backward) {
  int wrong = 0;
  for (float x = -110.0f; x < 110.0f; x += 0.0087890625f) {
    const double z = x;
    wrong += !(std::fabs(f.value(x) - oracle::activate(forward, z, 0.0)) <=
               oracle::activation_error(forward, z, 0.0, 0.0));
    wrong += !(std::fabs(f.derivative(x) - oracle::activate(backward, 1.0, z)) <=
               oracle::activation_error(backward, 1.0, z, 0.0));
  }
  return wrong;
}

}  // namespace

TEST_CASE("activation: sigmoid, tanh, SiLU and both forms of GELU are within their error bounds") {
  CHECK(count_wrong(Sigmoid{}, MP_ACT_SIGMOID, MP_ACT_DSIGMOID) == 0);
  CHECK(count_wrong(Tanh{}, MP_ACT_TANH, MP_ACT_DTANH) == 0);
  CHECK(count_wrong(Gelu{}, MP_ACT_GELU, MP_ACT_DGELU) == 0);
  CHECK(count_wrong(Silu{}, MP_ACT_SILU, MP_ACT_DSILU) == 0);
  CHECK(count_wrong(GeluErf{}, MP_ACT_GELU_ERF, MP_ACT_DGELU_ERF) == 0);
}

TEST_CASE("activation: limits at zero, infinity and NaN are exact") {
  CHECK(Sigmoid::value(0.0f) == 0.5f);
  CHECK(Sigmoid::value(kInfinity) == 1.0f);
  CHECK(Sigmoid::value(-kInfinity) == 0.0f);
  CHECK(Tanh::value(kInfinity) == 1.0f);
  CHECK(Tanh::value(-kInfinity) == -1.0f);
  CHECK(bits_of(Tanh::value(-0.0f)) == bits_of(-0.0f));
  CHECK(Tanh::value(1e-30f) == 1e-30f);
  CHECK(Sigmoid::derivative(0.0f) == 0.25f);
  CHECK(Tanh::derivative(-0.0f) == 1.0f);
  for (const float x : {kInfinity, -kInfinity, 3e38f, -3e38f}) {
    CHECK(Sigmoid::derivative(x) == 0.0f);
    CHECK(Tanh::derivative(x) == 0.0f);
  }
  const auto limits = [](auto function) {
    CHECK(function.value(kInfinity) == kInfinity);
    CHECK(bits_of(function.value(-kInfinity)) == bits_of(-0.0f));
    CHECK(function.value(-3e38f) == 0.0f);
    CHECK(function.value(3e38f) == 3e38f);
    CHECK(bits_of(function.value(-0.0f)) == bits_of(-0.0f));
    CHECK(function.derivative(0.0f) == 0.5f);
    CHECK(function.derivative(kInfinity) == 1.0f);
    CHECK(function.derivative(-kInfinity) == 0.0f);
    CHECK(std::isnan(function.value(kNan)));
    CHECK(std::isnan(function.derivative(kNan)));
  };
  limits(Silu{});
  limits(GeluErf{});
  for (const float f : {Sigmoid::value(kNan), Tanh::value(kNan), Gelu::value(kNan),
                        Sigmoid::derivative(kNan), Tanh::derivative(kNan), Gelu::derivative(kNan)})
    CHECK(std::isnan(f));
}
