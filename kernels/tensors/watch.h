// found_inf and amax of the values that a kernel stores (mp_grad_stats_t).
#pragma once

#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Largest magnitude of the values that a thread stores.
class LargestMagnitude {
 public:
  MP_DEVICE void count(uint32_t bits) { bits_ = max_of(bits_, bits); }
  /// Updates the maximum with x rounded to T.
  template <class T>
  MP_DEVICE void see(float x) {
    count(magnitude_bits(to_float(round_to<T>(x))));
  }

  /// Writes the outputs that are not NULL.  Every lane of the warp must call it once, after all
  /// updates.
  MP_DEVICE void publish(float *found_inf, float *amax) const {
    const uint32_t bits = warp_reduce<Max>(bits_);
    if (lane_index() != 0) return;
    if (amax != nullptr) atomic_max(reinterpret_cast<uint32_t *>(amax), bits);
    if (found_inf != nullptr && bits >= kInfinityBits) raise_flag(found_inf);
  }

 private:
  uint32_t bits_ = 0;
};

/// LargestMagnitude together with its outputs.
class AmaxTracker {
 public:
  MP_DEVICE explicit AmaxTracker(const mp_grad_stats_t &stats)
      : AmaxTracker(stats.found_inf, stats.amax) {}
  MP_DEVICE AmaxTracker(float *found_inf, float *amax) : found_inf_(found_inf), amax_(amax) {}

  /// The same for all threads: false if there are no outputs.
  MP_DEVICE bool is_enabled() const { return found_inf_ != nullptr || amax_ != nullptr; }

  /// Updates the maximum with x rounded to T.
  template <class T>
  MP_DEVICE void see(float x) {
    largest_.see<T>(x);
  }
  template <class T, int kRun>
  MP_DEVICE void see(const float (&x)[kRun], int valid) {
    if (!is_enabled()) return;
    MP_UNROLL
    for (int i = 0; i < kRun; i++)
      if (i < valid) see<T>(x[i]);
  }
  /// Updates the maximum with the first `valid` elements of x, rounded to `dtype`.  The type is
  /// selected per element: one loop per type takes up to 24 more registers in recurrent steps.
  template <int kRun>
  MP_DEVICE void see(mp_dtype_t dtype, const float (&x)[kRun], int valid) {
    if (!is_enabled()) return;
    MP_UNROLL
    for (int i = 0; i < kRun; i++)
      if (i < valid) largest_.count(magnitude_bits(rounded_to(dtype, x[i])));
  }
  /// Same in less code, but with more registers in some recurrent steps.  Rounding is monotonic, so
  /// only the largest magnitude is rounded.
  template <int kRun>
  MP_DEVICE void see_largest(mp_dtype_t dtype, const float (&x)[kRun], int valid) {
    if (!is_enabled()) return;
    uint32_t largest = 0;
    MP_UNROLL
    for (int i = 0; i < kRun; i++)
      if (i < valid) largest = max_of(largest, magnitude_bits(x[i]));
    largest_.count(magnitude_bits(rounded_to(dtype, float_from_bits(largest))));
  }
  /// Updates the maximum with the elements of vectors (runs.h), rounded to `dtype`.
  template <class Runs>
  MP_DEVICE void see(const Runs &runs, mp_dtype_t dtype, const float (&x)[Runs::kRuns][kVec]) {
    if (!is_enabled()) return;
    with_type(dtype, [&]<class T>(std::type_identity<T>) {
      unroll<Runs::kRuns, kVec>([&](int run, int i) {
        if (runs.has(run, i)) see<T>(x[run][i]);
      });
    });
  }

  /// Writes the outputs.  Every lane of the warp must call it once, after all updates.
  MP_DEVICE void finish() const {
    if (is_enabled()) largest_.publish(found_inf_, amax_);
  }

 private:
  float *const found_inf_, *const amax_;
  LargestMagnitude largest_;
};

}  // namespace mp::MP_TARGET
