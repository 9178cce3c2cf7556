// Reference implementation of convolution in fp64, as documented in mpcore/conv.h:
//
// y[n][p][q][k] = sum over r, s, c of  filter[k][r][s][c]
// x[n][p stride_h - pad_top + r dilation_h][q stride_w - pad_left + s dilation_w][c]
//
// Each term combines one element of x, one of the filter and one of y.  The gradients are sums over
// the same terms: dx of dy filter, dfilter of x dy.
//
// x is 0 outside the image; it is unspecified whether that zero is multiplied.  This matters only
// if the other factor is non-finite: the filter in fprop, dy in wgrad.  Likewise, dgrad may
// multiply a zero if a filter element has no matching dy.  Then both NaN and the sum without that
// product are correct; EpilogueResult::may_be_nan marks these elements.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "conv_cases.h"
#include "tests/support/oracle.h"

namespace mptest::oracle {

/// Calls visit(x, f, y) with the indices of every term; x is -1 outside the image.
template <typename Visit>
void each_term(const ConvCase &v, Visit visit) {
  const int64_t p_count = v.p(), q_count = v.q();
  for (int64_t n = 0; n < v.n; ++n) {
    for (int64_t p = 0; p < p_count; ++p) {
      for (int64_t q = 0; q < q_count; ++q) {
        for (int64_t k = 0; k < v.k; ++k) {
          const int64_t y = ((n * p_count + p) * q_count + q) * v.k + k;
          const int64_t first_c = k / v.group_k() * v.group_c();
          for (int64_t r = 0; r < v.r; ++r) {
            for (int64_t s = 0; s < v.s; ++s) {
              const int64_t h = p * v.stride_h - v.pad_top + r * v.dilation_h;
              const int64_t w = q * v.stride_w - v.pad_left + s * v.dilation_w;
              const bool inside = h >= 0 && h < v.h && w >= 0 && w < v.w;
              for (int64_t c = 0; c < v.group_c(); ++c) {
                const int64_t x = ((n * v.h + h) * v.w + w) * v.c + first_c + c;
                const int64_t f = ((k * v.r + r) * v.s + s) * v.group_c() + c;
                visit(inside ? x : -1, f, y);
              }
            }
          }
        }
      }
    }
  }
}

/// Returns zero sums with the shape that an epilogue receives; `terms` of the longest sum, padding
/// included.
inline Sums empty_sums(const ConvCase &v, mp_conv_op_t op) {
  switch (op) {
    case MP_CONV_FPROP: {
      const Matrices y(1, v.pixels(), v.k);
      return {y, y, v.r * v.s * v.group_c()};
    }
    case MP_CONV_DGRAD: {
      const Matrices dx(1, int64_t{v.n} * v.h * v.w, v.c);
      return {dx, dx, v.r * v.s * v.group_k()};
    }
    default: {
      const Matrices dfilter(1, v.k, v.r * v.s * v.group_c());
      return {dfilter, dfilter, v.pixels()};
    }
  }
}

/// @param first, second  the inputs in the order of the arguments of mp_conv2d_*
inline Sums convolve(const ConvCase &v, mp_conv_op_t op, const std::vector<double> &first,
                     const std::vector<double> &second) {
  Sums sums = empty_sums(v, op);
  each_term(v, [&](int64_t x, int64_t f, int64_t y) {
    if (x < 0) return;
    const int64_t from_first = op == MP_CONV_DGRAD ? y : x;
    const int64_t from_second = op == MP_CONV_WGRAD ? y : f;
    const int64_t to = op == MP_CONV_FPROP ? y : op == MP_CONV_DGRAD ? x : f;
    const double product =
        first[static_cast<size_t>(from_first)] * second[static_cast<size_t>(from_second)];
    sums.sum.values[static_cast<size_t>(to)] += product;
    sums.sum_abs.values[static_cast<size_t>(to)] += std::fabs(product);
  });
  return sums;
}

/// Returns the outputs that a non-finite element of the second input may reach through a zero.
inline std::vector<bool> reached_by_zeros(const ConvCase &v, mp_conv_op_t op,
                                          const std::vector<double> &second) {
  std::vector<bool> reached(empty_sums(v, op).sum.values.size());
  if (op == MP_CONV_DGRAD) {
    std::vector<bool> channels(static_cast<size_t>(v.c));
    for (size_t f = 0; f < second.size(); ++f) {
      const int64_t k = static_cast<int64_t>(f) / (v.r * v.s * v.group_c());
      const int64_t c = static_cast<int64_t>(f) % v.group_c();
      if (!std::isfinite(second[f]))
        channels[static_cast<size_t>(k / v.group_k() * v.group_c() + c)] = true;
    }
    for (size_t at = 0; at < reached.size(); ++at) reached[at] = channels[at % channels.size()];
  }
  each_term(v, [&](int64_t x, int64_t f, int64_t y) {
    const int64_t from_second = op == MP_CONV_WGRAD ? y : f;
    if (std::isfinite(second[static_cast<size_t>(from_second)])) return;
    if (op == MP_CONV_DGRAD) {
      if (x >= 0) reached[static_cast<size_t>(x)] = false;  // reached by a regular term
    } else if (x < 0) {
      reached[static_cast<size_t>(op == MP_CONV_FPROP ? y : f)] = true;
    }
  });
  return reached;
}

}  // namespace mptest::oracle
