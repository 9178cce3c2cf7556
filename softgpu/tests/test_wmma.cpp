// wmma.m16n16k16: layouts, types and spaces, compared with plain loops; checks.
#include "softgpu/tests/aligned_buffer.h"
#include "softgpu/tests/fragments.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Case {
  Element type;
  bool a_by_column, b_by_column, c_by_column;
  bool is_shared;
};

constexpr int kStride = 24;  // elements: rows of 48 bytes, a multiple of 16

/// 16 rows or columns of 16 elements, kStride apart.
std::vector<uint16_t> factor_in_memory(Element type, const Matrix &m, bool by_column) {
  std::vector<uint16_t> memory(16 * kStride);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++)
      memory[static_cast<size_t>(by_column ? j * kStride + i : i * kStride + j)] =
          static_cast<uint16_t>(bits_of(type, m(i, j)));
  return memory;
}

std::string layout(bool by_column) {
  return by_column ? "col" : "row";
}

// Copies of 64 threads between buffers and shared memory, where matrices are 2048 bytes apart.
std::string copy_in(int buffer, const std::string &to, int num_words) {
  return "mov.u32 %i, %t;\nin_" + to + ":\nmad.wide.u32 %g, %i, 4, %p" + std::to_string(buffer) +
         ";\nld.global.u32 %v, [%g];\nmad.lo.u32 %s, %i, 4, %" + to +
         ";\nst.shared.u32 [%s], %v;\nadd.u32 %i, %i, 32;\nsetp.lt.u32 %q, %i, " +
         std::to_string(num_words) + ";\n@%q bra in_" + to + ";\n";
}
std::string copy_out(int buffer, const std::string &from, int num_words) {
  return "mov.u32 %i, %t;\nout:\nmad.wide.u32 %g, %i, 4, %p" + std::to_string(buffer) +
         ";\nmad.lo.u32 %s, %i, 4, %" + from +
         ";\nld.shared.u32 %v, [%s];\nst.global.u32 [%g], %v;\nadd.u32 %i, %i, 32;\n"
         "setp.lt.u32 %q, %i, " +
         std::to_string(num_words) + ";\n@%q bra out;\n";
}

/// D = A B + C with buffers A, B, C, D; C and D are 16 x kStride.
std::string wmma_body(const Case &c, const std::string &before_load = "") {
  const int num_factors = c.type == Element::kHalf ? 8 : 4, num_words = 16 * kStride;
  const std::string space = c.is_shared ? ".shared" : ".global", type = name_of(c.type);
  const auto at = [&](int buffer) {
    const std::string n = std::to_string(buffer);
    return c.is_shared ? "[%m" + n + "]" : "[%p" + n + "]";
  };
  std::string text =
      ".shared .align 32 .b8 memory[8192];\n.reg .b32 %m<4>, %i, %s, %v, %stride;\n.reg .b64 %g;\n"
      ".reg .pred %q;\n.reg .b32 %a<8>, %b<8>;\n.reg .f32 %c<8>, %d<8>;\nmov.u32 %m0, memory;\n"
      "add.u32 %m1, %m0, 2048;\nadd.u32 %m2, %m0, 4096;\nadd.u32 %m3, %m0, 6144;\nmov.u32 "
      "%stride, " +
      std::to_string(kStride) + ";\n";
  if (c.is_shared)
    text += copy_in(0, "m0", num_words / 2) + copy_in(1, "m1", num_words / 2) +
            copy_in(2, "m2", num_words) + copy_in(3, "m3", num_words) + "bar.warp.sync -1;\n";
  text += before_load;
  const auto load = [&](const std::string &which, bool by_column, int count, int buffer,
                        const std::string &element) {
    return "wmma.load." + which + ".sync.aligned." + layout(by_column) + ".m16n16k16" + space +
           "." + element + " " + registers(which, count) + ", " + at(buffer) + ", %stride;\n";
  };
  text += load("a", c.a_by_column, num_factors, 0, type);
  text += load("b", c.b_by_column, num_factors, 1, type);
  text += load("c", c.c_by_column, 8, 2, "f32");
  text += "wmma.mma.sync.aligned." + layout(c.a_by_column) + "." + layout(c.b_by_column) +
          ".m16n16k16.f32" + (c.type == Element::kBfloat ? ".bf16.bf16" : "") + ".f32 " +
          registers("d", 8) + ", " + registers("a", num_factors) + ", " +
          registers("b", num_factors) + ", " + registers("c", 8) + ";\n";
  text += "wmma.store.d.sync.aligned." + layout(c.c_by_column) + ".m16n16k16" + space + ".f32 " +
          at(3) + ", " + registers("d", 8) + ", %stride;\n";
  if (c.is_shared) text += "bar.warp.sync -1;\n" + copy_out(3, "m3", num_words);
  return text + "ret;";
}

struct Operands {
  Matrix a{16, 16, 1}, b{16, 16, 2}, c{16, 16, 3};
};

Outcome run(const Case &test, const Operands &o, AlignedBuffer<float> &d,
            const std::string &before_load = "") {
  const Kernel kernel(body_text(4, wmma_body(test, before_load)));
  const AlignedBuffer<uint16_t> a(factor_in_memory(test.type, o.a, test.a_by_column)),
      b(factor_in_memory(test.type, o.b, test.b_by_column));
  AlignedBuffer<float> c(16 * kStride);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++)
      c[static_cast<size_t>(test.c_by_column ? j * kStride + i : i * kStride + j)] = o.c(i, j);
  return kernel(Shape{}, a.address(), b.address(), c.address(), d.address());
}

TEST_CASE("wmma matches plain loops for each layout, type and space", "[wmma]") {
  const Operands operands;
  const Matrix expected = product(operands.a, operands.b, operands.c);
  for (const Element type : {Element::kHalf, Element::kBfloat})
    for (int bits = 0; bits < 16; bits++) {
      const Case test{type, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
      INFO(name_of(type) << " bits " << bits);
      AlignedBuffer<float> d(16 * kStride, -1.0f);
      CHECK(run(test, operands, d).is_clean());
      Matrix result(16, 16);
      int num_untouched = 0;
      for (int i = 0; i < 16; i++)
        for (int j = 0; j < kStride; j++) {
          const float x = d[static_cast<size_t>(i * kStride + j)];
          if (j >= 16)
            num_untouched += x == -1;
          else if (test.c_by_column)
            result(j, i) = x;
          else
            result(i, j) = x;
        }
      CHECK(result.values == expected.values);
      CHECK(num_untouched == 16 * (kStride - 16));
    }
}

TEST_CASE("wmma with an invalid address or stride is a fault", "[wmma]") {
  const Operands operands;
  AlignedBuffer<float> d(16 * kStride);
  const Case in_global{Element::kHalf, false, false, false, false};
  const Case in_shared{Element::kHalf, false, false, false, true};
  CHECK_THAT(run(in_global, operands, d, "add.u64 %p0, %p0, 16;\n").fault,
             ContainsSubstring("not 32-byte aligned"));
  CHECK_THAT(run(in_shared, operands, d, "mov.u32 %stride, 17;\n").fault,
             ContainsSubstring("stride 17"));
  CHECK_THAT(run(in_shared, operands, d, "mad.lo.u32 %m0, %t, 32, %m0;\n").fault,
             ContainsSubstring("differ in the address of wmma"));
  CHECK_THAT(run(in_shared, operands, d, "add.u32 %stride, %stride, %t;\n").fault,
             ContainsSubstring("differ in the stride of wmma"));
  CHECK_THAT(run(in_global, operands, d, "add.u64 %p0, %p0, 512;\n").fault,
             ContainsSubstring("out of bounds"));
  CHECK_THAT(run(in_shared, operands, d, "add.u32 %m0, %m0, 7904;\n").fault,
             ContainsSubstring("shared memory"));
}

TEST_CASE("unsupported forms of wmma are rejected", "[wmma]") {
  const auto load = [](const std::string &form, int count) {
    return body_text(1, ".reg .b32 %a<16>;\nwmma.load." + form + " " + registers("a", count) +
                            ", [%p0], %t;\nret;");
  };
  CHECK_NOTHROW(Kernel(load("a.sync.aligned.row.m16n16k16.global.f16", 8)));
  CHECK_THROWS_AS(Kernel(load("a.sync.aligned.row.m16n16k16.global.f16", 4)), ptx::Error);
  CHECK_THROWS_AS(Kernel(load("a.sync.aligned.row.m32n8k16.global.f16", 8)), ptx::Error);
  CHECK_THROWS_AS(Kernel(load("a.sync.aligned.row.m16n16k16.global.u8", 2)), ptx::Error);
  CHECK_THROWS_AS(Kernel(load("c.sync.aligned.row.m16n16k16.global.f16", 4)), ptx::Error);
}

}  // namespace
}  // namespace softgpu::test
