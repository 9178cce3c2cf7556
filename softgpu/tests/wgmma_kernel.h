// Test kernels with wgmma operations of one warpgroup.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "softgpu/tests/fragments.h"
#include "softgpu/tests/harness.h"

namespace softgpu::test {

/// Layout of a factor in shared memory (PTX ISA, Shared Memory Matrix Layout).
struct FactorLayout {
  int swizzle = 0;  ///< swizzle span in bytes: 0, 32, 64 or 128
  bool is_mn_major = false;
};

/// Factor with 16 of k and `extent` rows of A or columns of B, 16 bits per element.
struct SharedFactor {
  FactorLayout layout;
  int extent;

  /// Leading dimension byte offset, or its replacement with a swizzle.
  int leading() const {
    if (layout.swizzle == 0) return layout.is_mn_major ? extent / 8 * 128 : 128;
    return layout.is_mn_major ? 2 * 8 * layout.swizzle : 16;  // ignored if K-major
  }
  int stride() const {
    if (layout.swizzle == 0) return layout.is_mn_major ? 128 : 256;
    return 8 * layout.swizzle;
  }

  /// Returns the byte offset of an element, from the figures of the PTX ISA.
  int place(int mn, int k) const {
    const int outer = layout.is_mn_major ? k : mn, inner = layout.is_mn_major ? mn : k;
    if (layout.swizzle == 0)
      return mn / 8 * stride() + k / 8 * leading() + outer % 8 * 16 + inner % 8 * 2;
    const int per_row = layout.swizzle / 2;
    const int atom =
        layout.is_mn_major ? mn / per_row * leading() + k / 8 * stride() : mn / 8 * stride();
    const int byte = atom + outer % 8 * layout.swizzle + inner % per_row * 2;
    return byte ^ (byte >> 7 & (layout.swizzle / 16 - 1)) << 4;
  }

  int num_bytes() const {
    int last = 0;
    for (int mn = 0; mn < extent; mn++)
      for (int k = 0; k < 16; k++) last = std::max(last, place(mn, k));
    return (last + 2 + 1023) / 1024 * 1024;
  }

  /// Returns the descriptor of a factor at a byte offset in shared memory.
  uint64_t descriptor(int begin) const {
    const uint64_t mode = layout.swizzle == 128  ? 1
                          : layout.swizzle == 64 ? 2
                          : layout.swizzle == 32 ? 3
                                                 : 0;
    return static_cast<uint64_t>(begin >> 4) | static_cast<uint64_t>(leading() >> 4) << 16 |
           static_cast<uint64_t>(stride() >> 4) << 32 | mode << 62;
  }
};

constexpr int kWarpgroup = 128;

/// Prologue of a kernel with one warpgroup: copies buffer 0 to shared memory and executes a fence;
/// reads descriptors %da and %db from buffer 1, relative to that copy, and %acc0, ... from buffer
/// 2.
std::string wgmma_prologue(int num_bytes, int num_columns,
                           const std::string &fence = "fence.proxy.async;\n");
/// wgmma.mma_async of the factors in %da and %db, or of A in %a0 to %a3.
struct WgmmaText {
  int num_columns;
  Element type = Element::kHalf;
  bool a_is_mn_major = false, b_is_mn_major = false, a_is_in_registers = false;
  std::string accumulators = "acc", scale_d = "%yes", scale_a = "1", scale_b = "1";
  std::string descriptor_a = "%da", descriptor_b = "%db";
  std::string text() const;
};

/// Memory image of both factors, A first, and their relative descriptors.
struct SharedFactors {
  std::vector<uint16_t> image;
  std::vector<uint64_t> descriptors;
};
SharedFactors shared_factors(Element type, const SharedFactor &a, const SharedFactor &b,
                             const Matrix &matrix_a, const Matrix &matrix_b);

/// Convert accumulator registers, rows of 128 threads, to a matrix of 64 rows, and back.
Matrix accumulators_of(const std::vector<float> &registers, int num_columns);
std::vector<float> registers_of(const Matrix &accumulators);

/// Returns the launch shape of one warpgroup with shared memory for these factors.
Shape warpgroup_shape();

}  // namespace softgpu::test
