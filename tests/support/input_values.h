// Values for the tests: a seeded generator, and integer input generators small enough for exact
// results.
//
// Exact values.  A sum of k products of integers |a| <= range_a, |b| <= range_b is exact in any
// order if k range_a range_b is below 2^digits of the accumulator, and D is exact too if the sum is
// below 2^digits of its type.  If even range 1 is too large, A keeps only every period-th element
// of a row (row i keeps those with (p + i) % period == 0, so that each position along k is used by
// some row).  A kernel must then equal the oracle bit for bit.
//
// Source of the idea: oneDNN, benchdnn's safe-accumulation ranges and density.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mptest {

/// splitmix64: equal seeds give equal values on every machine.
/// Source: Steele, Lea & Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  /// Uniform in [low, high], inclusive.
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }

  /// Uniform in [low, high).
  double real(double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(bits() >> 11), -53);
  }

 private:
  uint64_t state_;
};

struct ExactPlan {
  int64_t range;   ///< |a|, |b| <= range
  int64_t period;  ///< one element of A in `period` along k may be nonzero
};

/// The widest range, up to `max_range`, with |sum over k of a b| <= budget.
inline ExactPlan exact_plan(int64_t k, int64_t budget, int64_t max_range) {
  const int64_t terms = std::max<int64_t>(k, 1);
  if (terms > budget) return {1, (terms + budget - 1) / budget};
  const int64_t range = static_cast<int64_t>(std::sqrt(static_cast<double>(budget / terms)));
  return {std::clamp<int64_t>(range, 1, max_range), 1};
}

}  // namespace mptest
