// Reference implementations in fp64 of the tensor reductions and the powers of softmax, as
// documented in mpcore.h, with the error bound of fp32 arithmetic (running_error.h).  The update
// rules are in oracle_optimizer.h, the loss-scale policies in upstream_scalers.h.
#pragma once

#include <cmath>
#include <vector>

#include "tests/support/oracle.h"
#include "tests/support/running_error.h"

namespace mptest::oracle {

// ---------------------------------------------------------------------------- tensor lists

inline double sum_squares(const std::vector<double> &values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return sum;
}

/// fp32 within a chunk, in any order, and fp64 across chunks: every square takes one rounding
/// and at most chunk_elems additions.  The root does not increase a relative error; it is rounded.
inline Bounded l2norm(double sum_squares, int64_t chunk_elems) {
  const double norm = std::sqrt(sum_squares);
  return rounded(norm,
                 norm * gamma_bound(static_cast<double>(chunk_elems) + 1.0, fp32_operation()));
}

inline Bounded clip_factor(double scaled_norm, double inv_scale, double max_norm) {
  const Bounded epsilon(1e-6, unit_roundoff(MP_FP32) * 1e-6);  // float constant
  const Bounded ratio = Bounded(max_norm) / (Bounded(inv_scale) * scaled_norm + epsilon);
  return Bounded(inv_scale) * min(1.0, ratio);
}

// ---------------------------------------------------------------------------- softmax

/// exp(logit - largest).  With 16-bit logits, the library computes 2^x, where x takes two more
/// roundings, and flushes subnormal results to 0.
inline Bounded softmax_power(double logit, double largest, mp_dtype_t dtype) {
  if (logit == -INFINITY) return 0.0;
  const Bounded difference = Bounded(logit) - largest;
  if (dtype == MP_FP32) return exp(difference);
  const Bounded power = exp(rounded(difference.value, difference.error, 2.0));
  return {power.value, power.error + 0x1p-126};
}

}  // namespace mptest::oracle
