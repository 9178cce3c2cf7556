// Attention as documented in mpcore/attention.h, in plain fp64 loops, with error bounds of fp32
// arithmetic.
//
// e is the error of an fp32 operation, u the unit roundoff of the type, and
//
//     delta = (d + 2) e scale sum |q k|                    error of a score
//     power = delta + (3 |s| + 3 |reference| + 4) e        relative error of exp(s - reference)
//
// where the reference is the maximum or lse.  `power` contains the error of the argument in fp32
// and 2 ulp of the power.  A sum of N terms adds N e times the sum of their absolute values.  The
// online softmax adds two operations per tile of keys, of which there are at most N.
#pragma once

#include "tests/attention/attention_case.h"
#include "tests/step/oracle_rounding.h"
#include "tests/support/running_error.h"

namespace mptest::oracle {

/// Value and error of each element.
struct BoundedHeads {
  HeadTensor value, error;

  explicit BoundedHeads(const HeadTensor &shape) : value(shape), error(shape) {
    std::ranges::fill(value.values, 0.0);
    std::ranges::fill(error.values, 0.0);
  }
};

struct Attention {
  BoundedHeads o, lse, dq, dk, dv;
  std::vector<Bounded> dsinks;

  std::array<const BoundedHeads *, 5> tensors() const { return {&o, &lse, &dq, &dk, &dv}; }
};

/// Score (i, j) of a sequence of `queries` and `keys`.
inline bool is_visible(const mp_attention_desc_t &d, int64_t i, int64_t j, int64_t queries,
                       int64_t keys) {
  const int64_t from_diagonal = j - (i + keys - queries);
  if ((d.flags & MP_ATTENTION_FLAG_CAUSAL) != 0 && from_diagonal > 0) return false;
  if ((d.flags & MP_ATTENTION_FLAG_WINDOW) == 0) return true;
  return (d.window_left < 0 || from_diagonal >= -d.window_left) &&
         (d.window_right < 0 || from_diagonal <= d.window_right);
}

/// The byte mapping documented in mpcore/attention.h.
inline bool is_dropped(const AttentionCase &c, int64_t b, int64_t h, int64_t i, int64_t j) {
  const auto x = static_cast<uint32_t>(i), y = static_cast<uint32_t>(j);
  const auto stream = static_cast<uint32_t>(b * c.desc.heads + h);
  const uint64_t key = c.desc.dropout_seed + c.offset * 0x9E3779B97F4A7C15;
  const auto words =
      philox({4 * (x / 16) + x % 8 / 2, 4 * (y / 16) + y % 8 / 2, stream, 0x6D704154}, key, 7);
  const uint32_t word = words[2 * (x % 16 / 8) + x % 2];
  const uint32_t byte = word >> (8 * (2 * (y % 16 / 8) + y % 2)) & 0xff;
  return byte < std::round(256.0 * c.desc.dropout);
}

/// One sequence and query head.
class AttentionHead {
 public:
  AttentionHead(const AttentionCase &c, int64_t b, int64_t h)
      : c_(c),
        b_(b),
        h_(h),
        kv_h_(h / (c.desc.heads / c.desc.kv_heads)),
        queries_(c.q_length(b)),
        keys_(c.kv_length(b)),
        u_(unit_roundoff(c.desc.dtype)),
        tiny_(half_subnormal(c.desc.dtype)),
        scale_(c.desc.scale == 0.0f ? 1.0 / std::sqrt(static_cast<double>(c.q.dim))
                                    : static_cast<double>(c.desc.scale)),
        keep_(256.0 / (256.0 - std::round(256.0 * c.desc.dropout))) {}

  void add_to(Attention &all) {
    for (int64_t i = 0; i < queries_; ++i) add_row(all, i);
  }

 private:
  struct Score {
    int64_t key;
    double s, delta;
    bool dropped;
  };

  double dot(const HeadTensor &a, int64_t i, int64_t head_a, const HeadTensor &b, int64_t j,
             int64_t head_b, double *magnitude) const {
    double sum = 0.0;
    *magnitude = 0.0;
    for (int64_t e = 0; e < a.dim; ++e) {
      const double product = a.at(b_, i, head_a, e) * b.at(b_, j, head_b, e);
      sum += product;
      *magnitude += std::fabs(product);
    }
    return sum;
  }

  std::vector<Score> scores_of(int64_t i) const {
    std::vector<Score> scores;
    for (int64_t j = 0; j < keys_; ++j) {
      if (!is_visible(c_.desc, i, j, queries_, keys_)) continue;
      double magnitude;
      const double s = scale_ * dot(c_.q, i, h_, c_.k, j, kv_h_, &magnitude);
      const double delta = static_cast<double>(c_.q.dim + 2) * kE * scale_ * magnitude;
      const bool drops = c_.desc.dropout > 0.0f && is_dropped(c_, b_, h_, i, j);
      scores.push_back({j, s, delta, drops});
    }
    return scores;
  }

  void add_row(Attention &all, int64_t i) {
    const std::vector<Score> scores = scores_of(i);
    if (scores.empty()) {
      all.lse.value.at(b_, i, h_, 0) = -kInfinity;
      return;
    }
    const double sink =
        c_.sinks.empty() ? -kInfinity : static_cast<double>(c_.sinks[static_cast<size_t>(h_)]);
    double top = -kInfinity, delta = 0.0, magnitude = 0.0;
    for (const Score &score : scores) {
      top = std::max(top, score.s);
      delta = std::max(delta, score.delta);
      magnitude = std::max(magnitude, std::fabs(score.s));
    }
    const double largest = std::max(top, sink);
    double total = std::exp(sink - largest);
    for (const Score &score : scores) total += std::exp(score.s - largest);
    const double lse = largest + std::log(total);
    // Relative error of an exponential and of the sum, with two operations per tile.
    const double power = delta + (6.0 * magnitude + 4.0) * kE;
    const double terms = 3.0 * static_cast<double>(scores.size()) + 8.0;
    // The exponentials are multiplied by exp(top - largest), and exp(sink - largest) is added.
    const double of_sink =
        std::isfinite(sink) ? (std::fabs(sink) + std::fabs(top) + 4.0) * kE : 0.0;
    const double of_sum = power + terms * kE + of_sink * (sink > top ? 1.0 : std::exp(sink - lse));
    const double lse_error = of_sum + (std::fabs(largest) + std::fabs(lse) + 3.0) * kE;
    all.lse.value.at(b_, i, h_, 0) = lse;
    all.lse.error.at(b_, i, h_, 0) = lse_error;

    // o.  In fp16, exponentials may be subnormal before the division by the sum.
    double row_dot = 0.0, row_dot_error = 0.0, row_dot_magnitude = 0.0;
    for (int64_t e = 0; e < c_.v.dim; ++e) {
      double sum = 0.0, absolute = 0.0, subnormal = 0.0;
      for (const Score &score : scores) {
        if (score.dropped) continue;
        const double p = std::exp(score.s - lse) * keep_, v = c_.v.at(b_, score.key, kv_h_, e);
        sum += p * v;
        absolute += p * std::fabs(v);
        subnormal += keep_ * tiny_ * std::fabs(v);
      }
      const double before = (u_ + power + of_sum + terms * kE) * absolute * 1.01 + subnormal;
      const double error = rounded_error(c_.desc.dtype, sum, before);
      all.o.value.at(b_, i, h_, e) = sum;
      all.o.error.at(b_, i, h_, e) = error;
      const double d_o = c_.d_o.at(b_, i, h_, e);
      row_dot += d_o * sum;
      row_dot_error += std::fabs(d_o) * error;
      row_dot_magnitude += std::fabs(d_o * sum) + std::fabs(d_o) * error;
    }
    row_dot_error += static_cast<double>(c_.v.dim + 2) * kE * row_dot_magnitude;
    add_gradients(all, i, scores, {lse, lse_error}, {row_dot, row_dot_error});
    if (!c_.sinks.empty()) {
      const double weight = std::exp(sink - lse);
      Bounded &dsink = all.dsinks[static_cast<size_t>(h_)];
      dsink.value -= weight * row_dot;
      const double of_weight = lse_error + (std::fabs(sink) + std::fabs(lse) + 4.0) * kE;
      const double rows = static_cast<double>(c_.desc.batch * c_.desc.q_len);
      dsink.error +=
          weight * (1.01 * row_dot_error + (of_weight + (rows + 2.0) * kE) * std::fabs(row_dot));
    }
  }

  void add_gradients(Attention &all, int64_t i, const std::vector<Score> &scores,
                     const Bounded &lse, const Bounded &row_dot) {
    // Sums over up to this number of terms.
    const double group = static_cast<double>(c_.desc.heads / c_.desc.kv_heads);
    const double of_q = (static_cast<double>(keys_) + 3.0) * kE;
    const double of_kv = (static_cast<double>(c_.desc.q_len) * group + 3.0) * kE;
    for (const Score &score : scores) {
      const int64_t j = score.key;
      const double p = std::exp(score.s - lse.value), kept = score.dropped ? 0.0 : keep_;
      const double of_p =
          1.01 * (score.delta + lse.error +
                  (3.0 * std::fabs(score.s) + 3.0 * std::fabs(lse.value) + 4.0) * kE);
      double magnitude;
      const double dp = kept * dot(c_.d_o, i, h_, c_.v, j, kv_h_, &magnitude);
      const double dp_error = kept * static_cast<double>(c_.v.dim + 2) * kE * magnitude;
      const double ds = p * (dp - row_dot.value);
      double ds_error = of_p * std::fabs(ds) + 1.01 * p * (dp_error + row_dot.error) +
                        3.0 * kE * p * (std::fabs(dp) + std::fabs(row_dot.value));
      ds_error = rounded_error(c_.desc.dtype, ds, ds_error);
      for (int64_t e = 0; e < c_.q.dim; ++e) {
        const double q = c_.q.at(b_, i, h_, e), k = c_.k.at(b_, j, kv_h_, e);
        all.dq.value.at(b_, i, h_, e) += scale_ * ds * k;
        all.dq.error.at(b_, i, h_, e) +=
            scale_ * std::fabs(k) * (ds_error + of_q * (std::fabs(ds) + ds_error));
        all.dk.value.at(b_, j, kv_h_, e) += scale_ * ds * q;
        all.dk.error.at(b_, j, kv_h_, e) +=
            scale_ * std::fabs(q) * (ds_error + of_kv * (std::fabs(ds) + ds_error));
      }
      const double pk = p * kept, pk_error = of_p * pk + u_ * pk * 1.01 + kept * tiny_;
      for (int64_t e = 0; e < c_.v.dim; ++e) {
        const double d_o = c_.d_o.at(b_, i, h_, e);
        all.dv.value.at(b_, j, kv_h_, e) += pk * d_o;
        all.dv.error.at(b_, j, kv_h_, e) += std::fabs(d_o) * (pk_error + of_kv * (pk + pk_error));
      }
    }
  }

  static constexpr double kE = 0x1p-23;

  const AttentionCase &c_;
  const int64_t b_, h_, kv_h_, queries_, keys_;
  const double u_, tiny_, scale_, keep_;
};

inline Attention attention(const AttentionCase &c) {
  const HeadTensor lse(c.desc.batch, c.desc.q_len, c.desc.heads, 1);
  Attention all{BoundedHeads(c.d_o), BoundedHeads(lse), BoundedHeads(c.q),
                BoundedHeads(c.k),   BoundedHeads(c.v), std::vector<Bounded>(c.sinks.size())};
  std::ranges::fill(all.lse.value.values, -kInfinity);
  for (int64_t b = 0; b < c.desc.batch; ++b)
    for (int64_t h = 0; h < c.desc.heads; ++h) AttentionHead(c, b, h).add_to(all);
  for (BoundedHeads *const gradient : {&all.dq, &all.dk, &all.dv})
    for (size_t x = 0; x < gradient->value.values.size(); ++x) {
      double &error = gradient->error.values[x];
      if (error != 0.0) error = rounded_error(c.desc.dtype, gradient->value.values[x], error);
    }
  return all;
}

}  // namespace mptest::oracle

namespace mptest {

/// Checks all outputs of both passes against the oracle.
inline AttentionResult check(const AttentionCase &c, const Placement &p = {}) {
  const AttentionResult got = run(c, p);
  const oracle::Attention expected = oracle::attention(c);
  CAPTURE(mp_dtype_name(c.desc.dtype), c.desc.batch, c.desc.heads, c.desc.kv_heads, c.desc.q_len,
          c.desc.kv_len, c.q.dim, c.v.dim, c.desc.flags, c.desc.window_left, c.desc.window_right,
          c.desc.dropout, c.sinks.size(), c.q_lengths.size(), p.is_packed, p.in_one_matrix,
          p.padding, p.offset);
  for (size_t t = 0; t < got.tensors().size(); ++t) {
    const oracle::BoundedHeads &bounds = *expected.tensors()[t];
    int64_t wrong = 0;
    for (size_t x = 0; x < bounds.value.values.size(); ++x)
      wrong +=
          !within({bounds.value.values[x], bounds.error.values[x]}, got.tensors()[t]->values[x]);
    CAPTURE(t);
    CHECK(wrong == 0);
  }
  for (size_t h = 0; h < c.sinks.size(); ++h) CHECK(within(expected.dsinks[h], got.dsinks[h]));
  return got;
}

}  // namespace mptest
