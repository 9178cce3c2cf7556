// D += A B in the register layout of mma, wmma (as emulated) and wgmma.
//
// A warp has 16 rows of D.  Its columns are in groups of 8 with 4 registers each: register (h, c)
// of a group has, in lane l, the element of row 8 h + l / 4 and column 2 (l % 4) + c (PTX ISA,
// Matrix Fragments for mma.m16n8k16).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "softgpu/isa/half.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

// 8 x 8 matrix of 16-bit elements: one register of a matrix fragment, or a core matrix of wgmma.
//
// Lane l of a register has elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 (PTX ISA, ldmatrix),
// so the 32 lanes are the matrix in row-major order.

using Half8 = uint16_t __attribute__((vector_size(16)));

using Matrix8x8 = std::array<Half8, 8>;

inline Matrix8x8 matrix_of(const void *bytes) {
  Matrix8x8 m;
  std::memcpy(m.data(), bytes, sizeof m);
  return m;
}

/// Each round rotates the 6-bit element index by one bit; three rounds transpose the matrix.
inline Matrix8x8 transposed(Matrix8x8 m) {
  for (int round = 0; round < 3; round++) {
    Matrix8x8 shuffled;
    for (size_t i = 0; i < 4; i++) {
      shuffled[2 * i] = __builtin_shufflevector(m[i], m[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      shuffled[2 * i + 1] = __builtin_shufflevector(m[i], m[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    m = shuffled;
  }
  return m;
}

constexpr int kMaxProductColumns = 256, kMaxProductDepth = 16;

/// 16 rows of A: the factor of each lane, for each k and half of the rows.
struct ProductRows {
  alignas(64) float factors[kMaxProductDepth][2][kWarpSize];
};

/// B: for each k, groups of 8 columns; first the 4 even columns of a group, then the odd ones.
struct ProductColumns {
  /// Padded for vector loads beyond the end.
  alignas(64) float factors[kMaxProductDepth * kMaxProductColumns + 16];
  int num_columns = 8;

  float *group(int k, int j) { return factors + k * num_columns + j * 8; }
  const float *row(int k) const { return factors + k * num_columns; }
};

using Float8 = float __attribute__((vector_size(32)));
using Word8 = uint32_t __attribute__((vector_size(32)));

template <class Format>
inline Float8 widened(Half8 halves) {
  const Word8 words = __builtin_convertvector(halves, Word8);
  Float8 numbers;
  for (int i = 0; i < 8; i++) numbers[i] = Format::widen(words[i]);
  return numbers;
}

/// Sets a block of A from rows of k: element i of row k belongs to row 8 `half` + i of A and column
/// 8 `block_k` + k.
template <class Format>
inline void put_rows(ProductRows &a, int half, int block_k, const Matrix8x8 &rows_of_k) {
  for (int k = 0; k < 8; k++) {
    const Float8 row = widened<Format>(rows_of_k[static_cast<size_t>(k)]);
    const Float8 factors[4] = {// lane l has row l / 4
                               __builtin_shufflevector(row, row, 0, 0, 0, 0, 1, 1, 1, 1),
                               __builtin_shufflevector(row, row, 2, 2, 2, 2, 3, 3, 3, 3),
                               __builtin_shufflevector(row, row, 4, 4, 4, 4, 5, 5, 5, 5),
                               __builtin_shufflevector(row, row, 6, 6, 6, 6, 7, 7, 7, 7)};
    std::memcpy(a.factors[block_k * 8 + k][half], factors, sizeof factors);
  }
}

/// Sets a block of B from rows of k: element i of row k is in row 8 `block_k` + k and column 8 `j`
/// + i of B.
template <class Format>
inline void put_columns(ProductColumns &b, int j, int block_k, const Matrix8x8 &rows_of_k) {
  for (int k = 0; k < 8; k++) {
    const Half8 row = rows_of_k[static_cast<size_t>(k)];
    const Float8 factors =
        widened<Format>(__builtin_shufflevector(row, row, 0, 2, 4, 6, 1, 3, 5, 7));
    std::memcpy(b.group(block_k * 8 + k, j), &factors, sizeof factors);
  }
}

/// Computes d += a b, with sums in order of k by fp32 fma.  With options().skips_products it
/// neither computes nor reads the factors.
/// @param d  registers of 32 lanes, 4 for each group of 8 columns
void multiply_add(float *d, const ProductRows &a, const ProductColumns &b, int depth);

}  // namespace softgpu
