// GEMM and its epilogue as documented in mpcore.h, in plain fp64 loops.
//
//   z = alpha scale acc + beta C + bias;  aux = z;  y = activation(z);  D = round(y)
//
// op() has already been applied: A is m x k and B is k x n.  Rounding happens once, when aux and D
// are stored; if a kernel's fp32 arithmetic is exact, its result is bit-identical.
#pragma once

#include <cmath>
#include <vector>

#include "bounds.h"
#include "testing.h"

namespace mptest::oracle {

/// Product of each pair of matrices; a single matrix is used with all matrices of the other
/// operand.
inline Matrices multiply(const Matrices &a, const Matrices &b, int64_t count) {
  Matrices product(count, a.rows, b.cols);
  for (int64_t item = 0; item < count; ++item) {
    const int64_t item_a = a.count == 1 ? 0 : item;
    const int64_t item_b = b.count == 1 ? 0 : item;
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t p = 0; p < a.cols; ++p) {
        const double factor = a.at(item_a, i, p);
        const double *const b_row = b.values.data() + (item_b * b.rows + p) * b.cols;
        double *const row = product.values.data() + (item * a.rows + i) * b.cols;
        for (int64_t j = 0; j < b.cols; ++j) row[j] += factor * b_row[j];
      }
    }
  }
  return product;
}

inline Matrices absolute(Matrices matrices) {
  for (double &value : matrices.values) value = std::fabs(value);
  return matrices;
}

inline double gelu(double x) {
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

inline double dgelu(double x) {
  const double t = std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
  const double slope = std::sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope;
}

inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

/// Both derivatives use the square of the hyperbolic cosine, without cancellation.
inline double dtanh(double x) {
  return 1.0 / (std::cosh(x) * std::cosh(x));
}

inline double dsigmoid(double x) {
  return 0.25 * dtanh(0.5 * x);
}

inline double silu(double x) {
  return x * sigmoid(x);
}
inline double dsilu(double x) {
  return sigmoid(x) + x * dsigmoid(x);
}

/// erfc keeps the precision of small results.
inline double gelu_erf(double x) {
  return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}
inline double dgelu_erf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
}

/// A NaN passes through ReLU; otherwise it would not set found_inf.
inline double activate(mp_activation_t activation, double z, double aux) {
  switch (activation) {
    case MP_ACT_RELU:
      return z > 0.0 || std::isnan(z) ? z : 0.0;
    case MP_ACT_GELU:
      return gelu(z);
    case MP_ACT_SIGMOID:
      return sigmoid(z);
    case MP_ACT_TANH:
      return std::tanh(z);
    case MP_ACT_DRELU:
      return aux > 0.0 ? z : 0.0;
    case MP_ACT_DGELU:
      return z * dgelu(aux);
    case MP_ACT_DSIGMOID:
      return z * dsigmoid(aux);
    case MP_ACT_DTANH:
      return z * dtanh(aux);
    case MP_ACT_SILU:
      return silu(z);
    case MP_ACT_DSILU:
      return z * dsilu(aux);
    case MP_ACT_GELU_ERF:
      return gelu_erf(z);
    case MP_ACT_DGELU_ERF:
      return z * dgelu_erf(aux);
    default:
      return z;
  }
}

/// Error of z times a derivative in fp32, with errors in both factors.
inline double derivative_error(double derivative, double derivative_error, double z, double error) {
  const double most = std::fabs(z) + error;
  return derivative * error + most * (derivative_error + fp32_operation() * derivative);
}

/// derivative_error() for a derivative of any sign, at most kGeluSlope.
inline double bounded_derivative_error(double derivative, double derivative_error, double z,
                                       double error) {
  const double most = std::fabs(z) + error;
  return std::fabs(derivative) * error + most * (derivative_error + fp32_operation() * kGeluSlope);
}

/// Error of y for an error of z; see bounds.h.
inline double activation_error(mp_activation_t activation, double z, double aux, double error) {
  switch (activation) {
    case MP_ACT_GELU:
      return kGeluSlope * error + gelu_error(std::fabs(z) + error);
    case MP_ACT_SIGMOID:
      return 0.25 * error + sigmoid_error();
    case MP_ACT_TANH:
      return error + tanh_error(std::fabs(std::tanh(z)) + error);
    case MP_ACT_DSIGMOID:
      return derivative_error(dsigmoid(aux), dsigmoid_error(aux, dsigmoid(aux)), z, error);
    case MP_ACT_DTANH:
      return derivative_error(dtanh(aux), 4.0 * dsigmoid_error(2.0 * aux, dsigmoid(2.0 * aux)), z,
                              error);
    case MP_ACT_SILU:
      return kGeluSlope * error + gelu_error(std::fabs(z) + error);
    case MP_ACT_GELU_ERF:
      return kGeluSlope * error + gelu_erf_error(std::fabs(gelu_erf(z)) + kGeluSlope * error);
    case MP_ACT_DGELU:
      return bounded_derivative_error(dgelu(aux), dgelu_error(aux), z, error);
    case MP_ACT_DSILU:
      return bounded_derivative_error(dsilu(aux), dsilu_error(aux, dsigmoid(aux)), z, error);
    case MP_ACT_DGELU_ERF:
      return bounded_derivative_error(dgelu_erf(aux), dgelu_erf_error(), z, error);
    default:
      return error;
  }
}

/// Inputs of the epilogue.  All matrices have the shape of D.
struct EpilogueInputs {
  Matrices c;  ///< used only if beta != 0
  double alpha = 1.0, beta = 0.0;
  double scale = 1.0;
  std::vector<double> bias;  ///< empty, or one per column
  mp_activation_t activation = MP_ACT_NONE;
  Matrices aux;  ///< read by MP_ACT_D*
};

struct GemmInputs : EpilogueInputs {
  int64_t count = 1;
  Matrices a;  ///< m x k; one matrix, or `count`
  Matrices b;  ///< k x n; likewise
};

/// Sum of products for each element of D, and sum of their absolute values.
struct Sums {
  Matrices sum, sum_abs;
  int64_t terms;  ///< products in the longest sum
};

/// Results before rounding.  The errors bound those of fp32 arithmetic; see bounds.h.
struct EpilogueResult {
  Matrices z, y;
  Matrices z_error, y_error;
  /// Empty, or true for elements where NaN is also correct; see oracle_conv.h.
  std::vector<bool> may_be_nan;
};

inline EpilogueResult apply_epilogue(const Sums &sums, const EpilogueInputs &in) {
  const Matrices &acc = sums.sum;
  const double alpha_scale = in.alpha * in.scale;
  EpilogueResult out{acc, acc, acc, acc, {}};
  for (int64_t item = 0; item < acc.count; ++item) {
    for (int64_t i = 0; i < acc.rows; ++i) {
      for (int64_t j = 0; j < acc.cols; ++j) {
        const double c = in.beta == 0.0 ? 0.0 : in.beta * in.c.at(item, i, j);
        const double bias = in.bias.empty() ? 0.0 : in.bias[static_cast<size_t>(j)];
        const double aux = in.aux.count == 0 ? 0.0 : in.aux.at(item, i, j);
        // BLAS: a product with factor 0 is omitted, even if it is a NaN.
        const bool counts = alpha_scale != 0.0;
        const double z = (counts ? alpha_scale * acc.at(item, i, j) : 0.0) + c + bias;
        const double sum_abs = counts ? sums.sum_abs.at(item, i, j) : 0.0;
        const double terms_abs = std::fabs(alpha_scale) * sum_abs + std::fabs(c) + std::fabs(bias);
        const double error =
            gemm_error(static_cast<double>(sums.terms), alpha_scale, sum_abs, terms_abs);
        out.z.at(item, i, j) = z;
        out.z_error.at(item, i, j) = error;
        out.y.at(item, i, j) = activate(in.activation, z, aux);
        out.y_error.at(item, i, j) = activation_error(in.activation, z, aux, error);
      }
    }
  }
  return out;
}

inline EpilogueResult gemm(const GemmInputs &in) {
  return apply_epilogue({multiply(in.a, in.b, in.count),
                         multiply(absolute(in.a), absolute(in.b), in.count), in.a.cols},
                        in);
}

/// Results of the epilogue's reductions over D as stored.
struct ColumnSums {
  std::vector<double> sum, sum_abs;
};

inline ColumnSums column_sums(const Matrices &d) {
  ColumnSums sums{std::vector<double>(static_cast<size_t>(d.cols)),
                  std::vector<double>(static_cast<size_t>(d.cols))};
  for (size_t at = 0; at < d.values.size(); ++at) {
    const size_t column = at % static_cast<size_t>(d.cols);
    sums.sum[column] += d.values[at];
    sums.sum_abs[column] += std::fabs(d.values[at]);
  }
  return sums;
}

/// Returns max(start, |x|) over `values`; NaN if any of them is NaN.
inline double amax(const std::vector<double> &values, double start) {
  double largest = start;
  for (const double value : values) {
    if (std::isnan(value) || std::fabs(value) > largest) largest = std::fabs(value);
    if (std::isnan(largest)) break;
  }
  return largest;
}

inline bool any_nonfinite(const std::vector<double> &values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return true;
  }
  return false;
}

}  // namespace mptest::oracle
