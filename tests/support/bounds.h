// Error bounds, derived from the arithmetic; never tuned.
//
// Sums.  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, section 3.1: for
// any order of summation |fl(x.y) - x.y| <= gamma_n |x|.|y|, gamma_n = n u / (1 - n u).  Tensor
// cores may truncate where IEEE rounds to nearest, so one operation is charged 2 u instead of u.
//
// GELU.  With u the unit roundoff of fp32, w = sqrt(2/pi) (x + 0.044715 x^3) takes five
// operations on terms of one sign: relative error 5 u.  tanh turns a relative error e of w into at
// most |w| (1 - tanh^2 w) e <= 0.45 e, and a library tanh adds 2 ulp = 4 u (CUDA Programming
// Guide, accuracy of tanhf), one made from an exponential as much again.  Together
// |dt| <= (0.45 * 5 + 4 + 4) u < 11 u.  All else follows by the product rule.
#pragma once

#include <cmath>

#include "numeric.h"

namespace mptest {

inline double gamma_bound(double operations, double unit) {
  return operations * unit / (1.0 - operations * unit);
}

/// The largest error of one fp32 operation that may truncate.
inline double fp32_operation() {
  return 2.0 * unit_roundoff(MP_FP32);
}

/// Error of  z = alpha scale acc + beta c + bias  in fp32: the sum over k, then one rounding each
/// for alpha scale, its product, beta c, and the two additions.
/// @param sum_abs    sum over k of |a| |b|
/// @param terms_abs  |alpha scale| sum_abs + |beta c| + |bias|
inline double gemm_error(double k, double alpha_scale, double sum_abs, double terms_abs) {
  const double product = std::fabs(alpha_scale) * gamma_bound(k, fp32_operation()) * sum_abs;
  return product + gamma_bound(5, fp32_operation()) * (terms_abs + product);
}

constexpr double kTanhError = 11.0;  ///< in units of u, see above

/// Error of gelu(x) = 0.5 x (1 + t) for an exact x: |x| / 2 (dt + one addition), two products.
inline double gelu_error(double x) {
  return 0.5 * std::fabs(x) * (kTanhError + 2.0 + 4.0) * unit_roundoff(MP_FP32);
}

/// Error of gelu'(x) = 0.5 (1 + t) + 0.5 x (1 - t^2) w'(x),  w' = sqrt(2/pi) (1 + 3 * 0.044715 x^2).
/// d(1 - t^2) <= 2 dt and one rounding each for t^2 and the difference; w' and the products cost
/// eight more operations.
inline double dgelu_error(double x) {
  const double slope = std::sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
  const double first = 0.5 * (kTanhError + 2.0);
  const double second = 0.5 * std::fabs(x) * slope * (2.0 * kTanhError + 2.0 + 8.0);
  return (first + second + 1.0) * unit_roundoff(MP_FP32);
}

/// gelu is Lipschitz with max |gelu'| < 1.13 (at x = sqrt 2): an error of z grows by no more.
constexpr double kGeluSlope = 1.13;

/// |got - exact| may be `error`, the error before rounding, plus the rounding to `dtype`.
inline double rounded_error(mp_dtype_t dtype, double exact, double error) {
  return error + unit_roundoff(dtype) * (std::fabs(exact) + error) + half_subnormal(dtype);
}

}  // namespace mptest
