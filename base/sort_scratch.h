// What sorting on the device needs beside its two buffers (kernels/simt/sort.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace mp {

/// Bytes, 256-byte aligned, for `count` pairs of 32-bit keys and values on any device.  An upper bound, so that
/// no device is asked: CUB's onesweep keeps 1 KiB for every block, which sorts thousands of pairs, and some
/// KiB of histograms.
inline size_t sort_scratch_bytes(int64_t count) {
  constexpr size_t kHistograms = 64 * 1024;
  return kHistograms + static_cast<size_t>(count);
}

}  // namespace mp
