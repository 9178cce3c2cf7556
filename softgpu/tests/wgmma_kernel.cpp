#include "softgpu/tests/wgmma_kernel.h"

#include <algorithm>

namespace softgpu::test {

Shape warpgroup_shape() {
  Shape shape;
  shape.threads = {kWarpgroup, 1, 1};
  return shape;
}

std::string wgmma_prologue(int num_bytes, int num_columns, const std::string &fence) {
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

std::string WgmmaText::text() const {
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

SharedFactors shared_factors(Element type, const SharedFactor &a, const SharedFactor &b,
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

namespace {

/// Source: PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, Matrix D.
size_t place_of(int row, int column) {
  const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const int reg = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
  return static_cast<size_t>(reg * kWarpgroup + thread);
}

}  // namespace

Matrix accumulators_of(const std::vector<float> &registers, int num_columns) {
  Matrix d(64, num_columns);
  for (int row = 0; row < 64; row++)
    for (int column = 0; column < num_columns; column++)
      d(row, column) = registers[place_of(row, column)];
  return d;
}

std::vector<float> registers_of(const Matrix &d) {
  std::vector<float> registers(d.values.size());
  for (int row = 0; row < 64; row++)
    for (int column = 0; column < d.columns; column++)
      registers[place_of(row, column)] = d(row, column);
  return registers;
}

}  // namespace softgpu::test
