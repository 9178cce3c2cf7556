// Arithmetic of wgmma: reads the operands from shared memory and multiplies them.
//
// An operand is a slice of 16 k of 64 rows of A or n rows of B.  It consists of 8x8 matrices.  Each
// matrix is 8 units of 16 bytes, in 8 consecutive rows of an atom:
//
//     Major::k    unit r is m|n = 8 i + r, k = 8 j ... 8 j + 7
//     Major::mn   unit r is k = 8 j + r, m|n = 8 i ... 8 i + 7
//
// A descriptor (sm90_wgmma.h) determines the start of matrix (i, j), whose units are 128 bytes
// apart.  The swizzle XORs bits 7 to 9 of a unit's address into bits 4 to 6.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpcore/core.h"

namespace mp::host::engine {

constexpr int kWgmmaM = 64;
constexpr int kWgmmaK = 16;
constexpr int kWgmmaMaxN = 256;

struct WgmmaLayout {
  static constexpr uint32_t kRowBytes = 128, kUnitBytes = 16;
  static constexpr uint32_t kAtomBytes = 8 * kRowBytes;  ///< the swizzle permutes units within it

  bool is_mn_major;
  uint32_t start, leading_bytes, stride_bytes;

  WgmmaLayout(uint64_t descriptor, bool is_mn_major) : is_mn_major(is_mn_major) {
    const auto field = [descriptor](int bit) {
      return static_cast<uint32_t>(descriptor >> bit & 0x3FFF) << 4;
    };
    start = field(0);
    leading_bytes = field(16);
    stride_bytes = field(32);
  }

  /// Returns the address of unit 0 of matrix (i, j), before swizzling.
  uint32_t matrix(int i, int j) const {
    const uint32_t mn = static_cast<uint32_t>(i), k = static_cast<uint32_t>(j);
    if (!is_mn_major) return start + mn * stride_bytes + k * kUnitBytes;
    return start + mn % 8 * kUnitBytes + mn / 8 * leading_bytes + k * stride_bytes;
  }
  uint32_t unit(uint32_t matrix, int r) const {
    const uint32_t address = matrix + static_cast<uint32_t>(r) * kRowBytes;
    return address ^ (address >> 7 & 7) << 4;
  }
};

/// Operands of a wgmma, equal in all threads of the warpgroup.
struct WgmmaOperands {
  uint64_t a_desc, b_desc;
  int n;
  mp_dtype_t dtype;  ///< type of A and B
  bool a_is_mn_major, b_is_mn_major, accumulate;

  WgmmaLayout a() const { return {a_desc, a_is_mn_major}; }
  WgmmaLayout b() const { return {b_desc, b_is_mn_major}; }
};

constexpr int kWgmmaMaxTerms = 4;  ///< per multiplication: a stage of 64 k

/// Operands, converted to fp32 and packed.
struct WgmmaScratch {
  alignas(64) float a[kWgmmaMaxTerms * kWgmmaK * kWgmmaM];
  alignas(64) float b[kWgmmaMaxTerms * kWgmmaK * kWgmmaMaxN];
};

/// Computes d[64][n] = sum of `num_terms` products A B^T, plus d if the first term accumulates,
/// with fp32 FMAs in order of k.  All terms have the same n and type.  `smem` is address 0.
void wgmma_multiply(float *d, const WgmmaOperands *const *terms, int num_terms,
                    const std::byte *smem, WgmmaScratch &);

}  // namespace mp::host::engine
