// Error bounds, derived from the arithmetic; never tuned.
//
// Sums.  Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, section 3.1: for
// any order of summation |fl(x.y) - x.y| <= gamma_n |x|.|y|, gamma_n = n u / (1 - n u).  Tensor
// cores may truncate where IEEE rounds to nearest, so one operation is charged 2 u instead of u.
//
// GELU.  With u the unit roundoff of fp32, w = 2 sqrt(2/pi) (x + 0.044715 x^3) takes six operations
// on terms with the same sign: relative error 6 u.  s = 1 / (1 + exp(-w)) converts a relative error
// e of w to an error of at most |w| s (1 - s) e <= 0.23 e.  The exponential adds 2 ulp = 4 u,
// multiplied by s (1 - s) <= 1/4; the sum adds 2 u and the reciprocal 1 ulp = 2 u (PTX ISA,
// ex2.approx and rcp.approx). Total: |ds| <= (0.23 * 6 + 1 + 2 + 2) u < 6.5 u.  The other bounds
// follow from the product rule.
#pragma once

#include <cmath>
#include <limits>

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

constexpr double kLogisticError = 6.5;  ///< in units of u, see above

/// Error of gelu(x) = x s for an exact x: |x| ds and one product.
inline double gelu_error(double x) {
  return std::fabs(x) * (kLogisticError + 2.0) * unit_roundoff(MP_FP32);
}

/// Error of gelu'(x) = s + x w'(x) s (1 - s),  w' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2).
/// s (1 - s) is at most 1/4 and d(s (1 - s)) <= ds; w' and the products cost eight more operations.
inline double dgelu_error(double x) {
  const double slope = 2.0 * std::sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
  const double second = std::fabs(x) * slope * (kLogisticError + 0.25 * 2.0 * 8.0);
  return (kLogisticError + second + 1.0) * unit_roundoff(MP_FP32);
}

/// Both forms of gelu are Lipschitz with max |gelu'| < 1.13 (at x = sqrt 2), and so is silu (1.10
/// at 2.4): an error of z grows by at most this factor.  silu is x s like gelu, with fewer
/// roundings in s.
constexpr double kGeluSlope = 1.13;

/// Error of sigmoid: an argument with two roundings, otherwise s of GELU.
inline double sigmoid_error() {
  return kLogisticError * unit_roundoff(MP_FP32);
}

/// Error of gelu_erf with this value: 6 ulp (kernels/simt/logistic.h).
inline double gelu_erf_error(double value) {
  return 12.0 * (unit_roundoff(MP_FP32) * std::fabs(value) + half_subnormal(MP_FP32));
}

/// Error of the derivative of gelu_erf: the distribution, 6 ulp; x times the density, which is at
/// most 0.25 and takes 3 ulp of a power and two products; and their sum.
constexpr double kDgeluErfError = 12.0 + 0.25 * (6.0 + 2.0) + 2.0;
inline double dgelu_erf_error() {
  return kDgeluErfError * unit_roundoff(MP_FP32);
}

/// tanh(x) = 2 s(2 x) - 1: 2 ds if |x| >= 0.625 (tanh > 0.55), otherwise below 5 u relative
/// (kernels/simt/logistic.h).
inline double tanh_error(double value) {
  return 2.0 * kLogisticError / 0.55 * unit_roundoff(MP_FP32) * std::fabs(value);
}

/// Error of s (1 - s) = e / (1 + e)^2, e = exp(-|w|), with this value.  Relative errors: |w| 2 u
/// and 4 u of e, at most the same of 1 + e, whose reciprocal adds 3 u and is squared; two products.
/// A subnormal e may be flushed to 0.
inline double dsigmoid_error(double w, double value) {
  const double of_e = 2.0 * std::fabs(w) + 4.0;
  return (of_e + 2.0 * (of_e + 3.0) + 2.0) * unit_roundoff(MP_FP32) * value +
         static_cast<double>(std::numeric_limits<float>::min());
}

/// Error of silu'(x) = s + x s (1 - s), for a sigmoid whose s (1 - s) has this value.
inline double dsilu_error(double x, double value) {
  return sigmoid_error() + std::fabs(x) * dsigmoid_error(x, value) +
         fp32_operation() * (1.0 + 2.0 * std::fabs(x) * value);
}

/// Bound of |got - exact|: `error`, the error before rounding, plus the rounding to `dtype`.
inline double rounded_error(mp_dtype_t dtype, double exact, double error) {
  return error + unit_roundoff(dtype) * (std::fabs(exact) + error) + half_subnormal(dtype);
}

}  // namespace mptest
