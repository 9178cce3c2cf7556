// found_inf and amax of the values that an elementwise kernel stores, like in a GEMM epilogue.
#pragma once

#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Largest magnitude of the values that a thread stores.
class AmaxTracker {
 public:
  MP_DEVICE AmaxTracker(float *found_inf, float *amax) : found_inf_(found_inf), amax_(amax) {}

  /// Updates the maximum with x rounded to `dtype`.
  MP_DEVICE void see(mp_dtype_t dtype, float x) {
    largest_ = max_of(largest_, magnitude_bits(rounded_to(dtype, x)));
  }
  template <int kRun>
  MP_DEVICE void see(mp_dtype_t dtype, const float (&x)[kRun], int valid) {
    if (found_inf_ == nullptr && amax_ == nullptr) return;
    MP_UNROLL
    for (int i = 0; i < kRun; i++)
      if (i < valid) see(dtype, x[i]);
  }
  /// Writes the outputs.  Called once by every thread of the block.
  MP_DEVICE void finish() const {
    if (found_inf_ == nullptr && amax_ == nullptr) return;
    const uint32_t bits = warp_reduce<Max>(largest_);
    if (lane_index() != 0) return;
    if (amax_ != nullptr) atomic_max(reinterpret_cast<uint32_t *>(amax_), bits);
    if (found_inf_ != nullptr && bits >= kInfinityBits) raise_flag(found_inf_);
  }

 private:
  float *const found_inf_, *const amax_;
  uint32_t largest_ = 0;
};

}  // namespace mp::MP_TARGET
