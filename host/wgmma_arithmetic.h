// Arithmetic of wgmma: reads the operands from shared memory and multiplies them.
//
// An operand is a slice of 16 k of 64 rows of A or n rows of B.  It consists of 8x8 matrices.  Each
// matrix is 8 units of 16 bytes, in 8 consecutive rows of an atom:
//
//     Major::k    unit r is m|n = 8 i + r, k = 8 j ... 8 j + 7
//     Major::mn   unit r is k = 8 j + r, m|n = 8 i ... 8 i + 7
//
// A descriptor's layout (sm90_wgmma.h) determines the start of matrix (i, j) and the distance
// between its units.  The swizzle XORs bits of a unit's address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mp::host::engine {

constexpr int kWgmmaM = 64;
constexpr int kWgmmaK = 16;
constexpr int kWgmmaMaxN = 256;
constexpr uint32_t kWgmmaUnitBytes = 16;

struct WgmmaLayout {
  bool is_mn_major;
  uint32_t start;
  uint32_t row_bytes;         ///< distance between units of a matrix: the swizzle width
  uint32_t matrices_per_row;  ///< neighbors along m|n that share the rows of an atom
  uint32_t mn_bytes;          ///< distance between atoms along m|n
  uint32_t k_bytes;           ///< distance between matrices along k
  uint32_t swizzle_mask;      ///< selects the bits of 7 to 9 that are XORed into bits 4 to 6

  WgmmaLayout(uint64_t descriptor, bool is_mn_major) : is_mn_major(is_mn_major) {
    const auto field = [descriptor](int bit) {
      return static_cast<uint32_t>(descriptor >> bit & 0x3FFF) << 4;
    };
    const uint32_t leading_bytes = field(16), stride_bytes = field(32);
    const uint32_t mode = static_cast<uint32_t>(descriptor >> 62);
    start = field(0);
    row_bytes = mode == 0 ? 16 : 256 >> mode;
    swizzle_mask = row_bytes / 16 - 1;
    const bool is_swizzled = mode != 0;
    matrices_per_row = is_mn_major ? row_bytes / 16 : 1;
    mn_bytes = is_mn_major && is_swizzled ? leading_bytes : stride_bytes;
    k_bytes = !is_swizzled ? leading_bytes : is_mn_major ? stride_bytes : 16;
  }

  /// Returns the size of an atom: eight rows, within which the swizzle permutes units.
  uint32_t atom_bytes() const { return 8 * row_bytes; }

  /// Returns the address of unit 0 of matrix (i, j), before swizzling.
  uint32_t matrix(int i, int j) const {
    const uint32_t mn = static_cast<uint32_t>(i);
    return start + mn % matrices_per_row * 16 + mn / matrices_per_row * mn_bytes +
           static_cast<uint32_t>(j) * k_bytes;
  }
  uint32_t unit(uint32_t matrix, int r) const {
    const uint32_t address = matrix + static_cast<uint32_t>(r) * row_bytes;
    return address ^ (address >> 7 & swizzle_mask) << 4;
  }

  /// Calls visit(address) for each unit of an operand with num_mn rows.
  template <class Visit>
  void for_each_unit(int num_mn, const Visit &visit) const {
    for (int i = 0; i < num_mn / 8; i++)
      for (int j = 0; j < kWgmmaK / 8; j++)
        for (int r = 0; r < 8; r++) visit(unit(matrix(i, j), r));
  }
};

/// Operands of a wgmma, equal in all threads of the warpgroup.
struct WgmmaOperands {
  uint64_t a_desc, b_desc;
  int n;
  bool is_bf16, a_is_mn_major, b_is_mn_major, accumulate;

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
