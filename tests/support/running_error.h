// Running error analysis: an fp64 value with a bound on the error of fp32 arithmetic.
//
// Formulas are written once, with the operators below; the bound is computed from the operands, so
// it is small without cancellation and grows with it.  An operation adds one rounding, with the
// error of bounds.h, 2 u (CUDA contracts products and sums), and half of the smallest subnormal for
// results that underflow.
//
// Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed. 2002, section 3.3.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "bounds.h"

namespace mptest {

struct Bounded {
  double value = 0.0;
  double error = 0.0;  ///< |fp32 result - value| <= error

  Bounded() = default;
  Bounded(double exact) : value(exact) {}
  Bounded(double value, double error) : value(value), error(error) {}
};

/// Result of one operation with `roundings` times the error of an addition.
inline Bounded rounded(double value, double error, double roundings = 1.0) {
  const double own = fp32_operation() * (std::fabs(value) + error) + half_subnormal(MP_FP32);
  return {value, error + roundings * own};
}

inline Bounded operator+(const Bounded &a, const Bounded &b) {
  return rounded(a.value + b.value, a.error + b.error);
}
inline Bounded operator-(const Bounded &a, const Bounded &b) {
  return rounded(a.value - b.value, a.error + b.error);
}
inline Bounded operator*(const Bounded &a, const Bounded &b) {
  return rounded(a.value * b.value,
                 std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
}
/// b must be further from 0 than its error.
inline Bounded operator/(const Bounded &a, const Bounded &b) {
  const double quotient = a.value / b.value;
  return rounded(quotient,
                 (a.error + std::fabs(quotient) * b.error) / (std::fabs(b.value) - b.error));
}
inline Bounded sqrt(const Bounded &a) {
  const double root = std::sqrt(a.value);
  return rounded(root, root - std::sqrt(std::max(a.value - a.error, 0.0)) +
                           (a.value > a.error ? 0.0 : std::sqrt(a.value + a.error)));
}

/// expf and logf have errors of 2 ulp (CUDA Programming Guide, accuracy of single-precision
/// functions; C libraries are more accurate): two additions.
inline Bounded exp(const Bounded &a) {
  const double power = std::exp(a.value);
  return rounded(power, power * std::expm1(a.error), 2.0);
}
/// a must be larger than its error.
inline Bounded log(const Bounded &a) {
  return rounded(std::log(a.value), -std::log1p(-a.error / a.value), 2.0);
}
inline Bounded log1p(const Bounded &a) {
  return rounded(std::log1p(a.value), -std::log1p(-a.error / (1.0 + a.value)), 2.0);
}

inline Bounded min(const Bounded &a, const Bounded &b) {
  return {std::min(a.value, b.value), std::max(a.error, b.error)};
}

/// Terms with any sign: gamma of the additions in addition to their own errors.
class BoundedSum {
 public:
  void add(const Bounded &term) {
    value_ += term.value;
    error_ += term.error;
    magnitude_ += std::fabs(term.value) + term.error;
    ++terms_;
  }
  /// Returns the sum in any order.
  Bounded total() const { return total(static_cast<double>(terms_)); }
  /// Returns the sum if each term passes through at most `depth` additions (Higham 2002, section
  /// 4.2).
  Bounded total(double depth) const {
    return {value_, error_ + gamma_bound(depth, fp32_operation()) * magnitude_};
  }

 private:
  double value_ = 0.0, error_ = 0.0, magnitude_ = 0.0;
  int64_t terms_ = 0;
};

/// True if `got`, of type `dtype`, is within the error of `exact` computed in fp32 and rounded once
/// more.  NaN and infinity must match exactly.
inline bool within(const Bounded &exact, double got, mp_dtype_t dtype = MP_FP32) {
  if (!std::isfinite(exact.value)) return same_value(exact.value, got);
  const double error =
      dtype == MP_FP32 ? exact.error : rounded_error(dtype, exact.value, exact.error);
  return std::fabs(got - exact.value) <= error;
}

/// Counts the values that are not within the error.
inline int64_t count_outside(const std::vector<Bounded> &exact, const std::vector<double> &got,
                             mp_dtype_t dtype) {
  int64_t wrong = exact.size() != got.size();
  for (size_t i = 0; i < std::min(exact.size(), got.size()); ++i)
    wrong += !within(exact[i], got[i], dtype);
  return wrong;
}

/// Counts the values that are not the exact ones: exact in fp32, or rounded to it by one division,
/// and then rounded to the type.
inline int64_t count_different(const std::vector<Bounded> &exact, const std::vector<double> &got,
                               mp_dtype_t dtype) {
  int64_t wrong = exact.size() != got.size();
  for (size_t i = 0; i < std::min(exact.size(), got.size()); ++i)
    wrong += !same_value(round_to(dtype, round_to(MP_FP32, exact[i].value)), got[i]);
  return wrong;
}

}  // namespace mptest
