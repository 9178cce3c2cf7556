// Reference implementations in fp64 of the tensor reductions and the softmax loss, as documented in
// mpcore.h, with the error bound of fp32 arithmetic (running_error.h).  The update rules are in
// oracle_optimizer.h, the loss-scale policies in upstream_scalers.h.
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

// ---------------------------------------------------------------------------- softmax loss

struct XentOptions {
  mp_dtype_t dtype;  ///< type of the logits
  double counted;    ///< rows of the whole matrix whose label is not ignored, or their weights
  double scale = 1.0, weight = 1.0, smoothing = 0.0, z_loss = 0.0;
};

struct XentRow {
  Bounded loss;
  std::vector<Bounded> dlogits;  ///< exact gradient, not yet rounded to the type of the logits
  bool correct;
};

/// exp(logit - largest).  With 16-bit logits, the library computes 2^x, where x takes two more
/// roundings, and flushes subnormal results to 0.
inline Bounded softmax_power(double logit, double largest, mp_dtype_t dtype) {
  if (logit == -INFINITY) return 0.0;
  const Bounded difference = Bounded(logit) - largest;
  if (dtype == MP_FP32) return exp(difference);
  const Bounded power = exp(rounded(difference.value, difference.error, 2.0));
  return {power.value, power.error + 0x1p-126};
}

/// One row whose label is not ignored.  The error bound of the sum over the classes holds in any
/// order and covers rescaling of partial sums: with many classes, a term takes part in less than
/// half of the additions that the bound allows.
inline XentRow softmax_xent(const std::vector<double> &logits, int64_t label,
                            const XentOptions &options) {
  const Bounded not_a_number(std::nan(""));
  XentRow row{not_a_number, std::vector<Bounded>(logits.size(), not_a_number), false};
  if (label < 0 || label >= static_cast<int64_t>(logits.size())) return row;
  const auto largest = std::max_element(logits.begin(), logits.end());
  const bool summable = std::none_of(logits.begin(), logits.end(),
                                     [](double x) { return std::isnan(x) || x == INFINITY; });
  if (!summable || *largest == -INFINITY) return row;

  const size_t target = static_cast<size_t>(label);
  std::vector<Bounded> powers;
  BoundedSum sum, others, differences;
  bool infinite = logits[target] == -INFINITY;
  for (const double logit : logits) {
    powers.push_back(softmax_power(logit, *largest, options.dtype));
    sum.add(powers.back());
    if (powers.size() != target + 1) others.add(powers.back());
    if (options.smoothing == 0.0 || infinite) continue;
    infinite = logit == -INFINITY;
    if (!infinite) differences.add(Bounded(logit) - logits[target]);
  }
  row.correct = largest - logits.begin() == label;  // max_element finds the first of equal values
  const Bounded share = Bounded(options.smoothing) / static_cast<double>(logits.size());
  const Bounded plain = infinite ? Bounded(INFINITY)
                        : logits[target] == *largest
                            ? log1p(others.total())
                            : log(sum.total()) - (Bounded(logits[target]) - *largest);
  const Bounded lse = Bounded(*largest) + log(sum.total());
  const Bounded of_lse = options.z_loss == 0.0 ? Bounded(0.0) : Bounded(options.z_loss) * lse * lse;
  row.loss = options.weight == 0.0 ? Bounded(0.0)
             : infinite            ? Bounded(options.weight * INFINITY)
                        : Bounded(options.weight) * (plain - share * differences.total() + of_lse);
  const Bounded factor = Bounded(options.scale) * options.weight / options.counted;
  const Bounded slope = factor * (Bounded(1.0) / sum.total());
  const Bounded growth = Bounded(2.0 * options.z_loss) * lse;
  const Bounded of_label =
      options.z_loss == 0.0 ? Bounded(0.0) : growth * (factor - slope * others.total());
  const Bounded of_others = options.z_loss == 0.0 ? slope : slope * (Bounded(1.0) + growth);
  for (size_t j = 0; j < logits.size(); ++j) {
    row.dlogits[j] = j == target ? factor * (Bounded(options.smoothing) - share) -
                                       slope * others.total() + of_label
                                 : powers[j] * of_others - factor * share;
  }
  return row;
}

}  // namespace mptest::oracle
