// Locations where TMA stores the elements of a wgmma operand in shared memory, by independent
// formulas.
#pragma once

namespace mptest {

/// An operand X[mn][k] of 16-bit elements.  TMA writes it in boxes as wide as the swizzle; without
/// a swizzle it consists of 8x8 matrices of 128 bytes.
struct WgmmaTile {
  bool k_major;
  int width;  ///< swizzle width in bytes; 0 = none
  int mn, k;
  int base;  ///< a multiple of 8 widths

  // Expected values of the descriptor; tests of injected errors change them.
  int leading_bytes, stride_bytes;

  WgmmaTile(bool k_major, int width, int mn, int k, int base = 0)
      : k_major(k_major), width(width), mn(mn), k(k), base(base) {
    if (width == 0) {
      leading_bytes = k_major ? 128 : mn * 16;
      stride_bytes = k_major ? k * 16 : 128;
    } else {
      leading_bytes = k_major ? 16 : k * width;
      stride_bytes = 8 * width;
    }
  }

  int end() const { return base + mn * k * 2; }

  int before_swizzle(int i, int j) const {
    const int row = k_major ? i : j, col = k_major ? j : i;
    const int num_rows = k_major ? mn : k, num_cols = k_major ? k : mn;
    if (width == 0)
      return base + (row / 8 * (num_cols / 8) + col / 8) * 128 + row % 8 * 16 + col % 8 * 2;
    const int chunk = width / 2;
    return base + (col / chunk * num_rows + row) * width + col % chunk * 2;
  }
  int address(int i, int j) const {
    const int at = before_swizzle(i, j);
    return width == 0 ? at : at ^ (at / 128 % (width / 16)) * 16;
  }
};

}  // namespace mptest
