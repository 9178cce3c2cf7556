// 8 x 8 matrix of 16-bit elements: one register of a matrix fragment, or a core matrix of wgmma.
//
// Lane l of a register has elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 (PTX ISA, ldmatrix),
// so the 32 lanes are the matrix in row-major order.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace softgpu {

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

}  // namespace softgpu
