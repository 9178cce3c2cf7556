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

inline Shape warpgroup_shape() {
  Shape shape;
  shape.threads = {kWarpgroup, 1, 1};
  return shape;
}

inline std::string wgmma_prologue(int num_bytes, int num_columns, const std::string &fence) {
  return ".shared .align 1024 .b8 smem[" + std::to_string(num_bytes) +
         "];\n.reg .b32 %s, %i, %v;\n.reg .b64 %g, %da, %db, %start;\n.reg .pred %q, %yes, %no;\n"
         "setp.eq.u32 %yes, 0, 0;\nsetp.ne.u32 %no, 0, 0;\nmov.u32 %i, %t;\n"
         "copy:\nmad.wide.u32 %g, %i, 4, %p0;\nld.global.u32 %v, [%g];\nmov.u32 %s, smem;\n"
         "mad.lo.u32 %s, %i, 4, %s;\nst.shared.u32 [%s], %v;\nadd.u32 %i, %i, 128;\n"
         "setp.lt.u32 %q, %i, " +
         std::to_string(num_bytes / 4) + ";\n@%q bra copy;\n" + fence +
         "bar.sync 0;\n"
         "mov.u32 %s, smem;\nshr.u32 %s, %s, 4;\ncvt.u64.u32 %start, %s;\n"
         "ld.global.u64 %da, [%p1];\nadd.u64 %da, %da, %start;\n"
         "ld.global.u64 %db, [%p1+8];\nadd.u64 %db, %db, %start;\n" +
         load_registers("acc", num_columns / 2, 2, kWarpgroup);
}

inline std::string WgmmaText::text() const {
  const std::string element = name_of(type);
  return "wgmma.mma_async.sync.aligned.m64n" + std::to_string(num_columns) + "k16.f32." + element +
         "." + element + " " + registers(accumulators, num_columns / 2) + ", " +
         (a_is_in_registers ? registers("a", 4) : descriptor_a) + ", " + descriptor_b + ", " +
         scale_d + ", " + scale_a + ", " + scale_b +
         (a_is_in_registers ? ""
          : a_is_mn_major   ? ", 1"
                            : ", 0") +
         (b_is_mn_major ? ", 1;\n" : ", 0;\n");
}

inline SharedFactors shared_factors(Element type, const SharedFactor &a, const SharedFactor &b,
                                    const Matrix &matrix_a, const Matrix &matrix_b) {
  SharedFactors factors;
  const int begin_b = a.num_bytes();
  factors.image.resize(static_cast<size_t>(begin_b + b.num_bytes()) / 2);
  const auto put = [&](int byte, float value) {
    factors.image[static_cast<size_t>(byte / 2)] = static_cast<uint16_t>(bits_of(type, value));
  };
  for (int k = 0; k < 16; k++) {
    for (int row = 0; row < a.extent; row++) put(a.place(row, k), matrix_a(row, k));
    for (int column = 0; column < b.extent; column++)
      put(begin_b + b.place(column, k), matrix_b(k, column));
  }
  factors.descriptors = {a.descriptor(0), b.descriptor(begin_b)};
  return factors;
}

/// Source: PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, Matrix D.
inline size_t place_of(int row, int column) {
  const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const int reg = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
  return static_cast<size_t>(reg * kWarpgroup + thread);
}

inline Matrix accumulators_of(const std::vector<float> &registers, int num_columns) {
  Matrix d(64, num_columns);
  for (int row = 0; row < 64; row++)
    for (int column = 0; column < num_columns; column++)
      d(row, column) = registers[place_of(row, column)];
  return d;
}

inline std::vector<float> registers_of(const Matrix &d) {
  std::vector<float> registers(d.values.size());
  for (int row = 0; row < 64; row++)
    for (int column = 0; column < d.columns; column++)
      registers[place_of(row, column)] = d(row, column);
  return registers;
}

}  // namespace softgpu::test
