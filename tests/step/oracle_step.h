// Reference implementations in fp64 of the tensor reductions, the loss-scale policies and the
// softmax loss, as documented in mpcore.h; the update rules are in oracle_optimizer.h.
//
// Formulas in fp32 arithmetic come with their error bound (running_error.h).  The policies are
// scalar and written differently from the library: the log-normal statistics, for example, are
// weighted sums over the full history instead of recursions.
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

// ---------------------------------------------------------------------------- loss scale

inline double clamped(const mp_scaler_config_t &config, double scale) {
  return std::clamp<double>(scale, config.min_scale, config.max_scale);
}

/// torch.amp.GradScaler with the hysteresis of Megatron-LM or Apex.  Counts up from the last reset,
/// where the library counts down.
class BackoffScaler {
 public:
  explicit BackoffScaler(const mp_scaler_config_t &config)
      : config_(config), scale_(config.init_scale) {}

  double scale() const { return scale_; }
  void update(bool overflow) { overflow ? shrink() : grow(); }

 private:
  void shrink() {
    clean_steps_ = 0;
    ++overflows_;  // since the hysteresis was last reset
    if (overflows_ < config_.hysteresis) return;
    scale_ = clamped(config_, round_to(MP_FP32, scale_ * config_.backoff_factor));
  }
  void grow() {
    ++clean_steps_;
    if (config_.flags & MP_SCALER_FLAG_REFILL_EACH_STEP) overflows_ = 0;
    if (clean_steps_ % config_.growth_interval != 0) return;
    overflows_ = 0;
    scale_ = clamped(config_, round_to(MP_FP32, scale_ * config_.growth_factor));
  }

  mp_scaler_config_t config_;
  double scale_;
  int64_t clean_steps_ = 0;
  int64_t overflows_ = 0;
};

/// The log-normal policy.  Weights decay by beta per step, so the newest sample has weight 1.
class LognormalScaler {
 public:
  explicit LognormalScaler(const mp_scaler_config_t &config)
      : config_(config), scale_(config.init_scale) {}

  double scale() const { return scale_; }
  double headroom() const { return headroom_; }

  /// @param scaled_amax  as passed to the library; ignored if `overflow`
  void update(bool overflow, double scaled_amax) {
    if (overflow) {
      overflowed_ = true;
      clean_steps_ = 0;
      const double backed_off = scale_ * config_.backoff_factor;
      if (!samples_.empty()) leave_room_above(backed_off);
      scale_ = clamped(config_, backed_off);
      return;
    }
    if (scaled_amax == 0.0) return;
    samples_.push_back(std::log2(scaled_amax / scale_));
    if (samples_.size() == 1 && overflowed_) leave_room_above(scale_);
    largest_ = std::max(largest_, std::fabs(samples_.back()));
    if (++clean_steps_ % config_.growth_interval == 0) headroom_ = std::max(headroom_ - 1.0, 0.0);
    scale_ = clamped(config_, std::exp2(std::floor(proposal()) - headroom_));
  }

  /// True if fp32 statistics may round the last proposal down to the next smaller integer.
  bool is_ambiguous() const {
    return std::fabs(proposal() - std::round(proposal())) <= proposal_error();
  }
  /// Continues from the library's scale and headroom.
  void follow(double scale, double headroom) {
    scale_ = scale;
    headroom_ = headroom;
  }

 private:
  void leave_room_above(double scale) {
    headroom_ = std::max(headroom_, std::floor(proposal()) - std::log2(scale));
  }

  template <typename Value>
  double weighted_mean(double beta, Value value) const {
    double weight = 1.0, weights = 0.0, sum = 0.0;
    for (auto sample = samples_.rbegin(); sample != samples_.rend(); ++sample, weight *= beta) {
      weights += weight;
      sum += weight * value(*sample);
    }
    return sum / weights;
  }

  /// Returns log2 of the scale that the statistics propose.
  double proposal() const {
    const auto itself = [](double x) { return x; };
    const double mean = weighted_mean(config_.beta1, itself);
    const double slow_mean = weighted_mean(config_.beta2, itself);
    const double variance =
        weighted_mean(config_.beta2, [&](double x) { return (x - slow_mean) * (x - slow_mean); });
    const double sigma = std::max<double>(std::sqrt(variance), config_.sigma_floor);
    return config_.log2_max - mean - config_.overflow_std_dev * sigma;
  }

  /// The running mean of n samples |x| <= X, divided by the bias correction, takes n roundings of
  /// at most u X each: n u X.  The mean of squares takes n u X^2.  The variance adds both errors
  /// and 2 X times the error of the mean; sigma divides by 2 sigma_floor.
  double proposal_error() const {
    const double n = static_cast<double>(samples_.size());
    const double mean = n * unit_roundoff(MP_FP32) * largest_;
    const double sigma = 3.0 * mean * largest_ / (2.0 * config_.sigma_floor);
    return mean + config_.overflow_std_dev * sigma;
  }

  mp_scaler_config_t config_;
  double scale_;
  double headroom_ = 0.0;
  bool overflowed_ = false;
  int64_t clean_steps_ = 0;
  double largest_ = 0.0;
  std::vector<double> samples_;
};

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
