// Scratch memory for sorting on the device (kernels/simt/sort.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mp {

/// Returns the bytes of 256-byte aligned scratch for `count` pairs of 32-bit keys and values, as an
/// upper bound for all devices.  CUB's onesweep uses 1 KiB per block, which sorts thousands of
/// pairs, and some KiB of histograms.
inline size_t sort_scratch_bytes(int64_t count) {
  constexpr size_t kHistograms = 64 * 1024;
  return kHistograms + static_cast<size_t>(count);
}

}  // namespace mp
