// mma.sync: all shapes and types, compared with plain loops; the order of sums; checks.
#include <cmath>

#include "softgpu/tests/fragments.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Values = std::vector<uint32_t>;
using Words = Buffer<uint32_t>;

struct MmaShape {
  Element type;
  int depth;
  bool has_half_sums = false;

  int per_register() const { return type == Element::kTf32 ? 1 : 2; }
  int num_a() const { return 16 * depth / 32 / per_register(); }
  int num_b() const { return num_a() / 2; }
  int num_sums() const { return has_half_sums ? 2 : 4; }
  std::string opcode() const {
    const std::string sums = has_half_sums ? "f16" : "f32", factors = name_of(type);
    return "mma.sync.aligned.m16n8k" + std::to_string(depth) + ".row.col." + sums + "." + factors +
           "." + factors + "." + sums;
  }
};

std::string mma_statement(const MmaShape &shape, const std::string &d) {
  return shape.opcode() + " " + registers(d, shape.num_sums()) + ", " +
         registers("a", shape.num_a()) + ", " + registers("b", shape.num_b()) + ", " +
         registers("c", shape.num_sums()) + ";\n";
}

Kernel mma_kernel(const MmaShape &shape) {
  return Kernel(body_text(
      4, load_registers("a", shape.num_a(), 0) + load_registers("b", shape.num_b(), 1) +
             load_registers("c", shape.num_sums(), 2) + ".reg .b32 %d<4>;\n" +
             mma_statement(shape, "d") + store_registers("d", shape.num_sums(), 3) + "ret;"));
}

// PTX ISA, Matrix Fragments for mma.m16n8k4, k8 and k16: k of an element is that of its thread in
// the group of four, plus half of the depth for the upper registers.

Values fragment_a(const MmaShape &shape, const Matrix &a) {
  Values words(static_cast<size_t>(32 * shape.num_a()));
  const int per = shape.per_register();
  for (int r = 0; r < shape.num_a(); r++)
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < per; i++) {
        const int row = lane / 4 + (r % 2 == 1 ? 8 : 0), k = lane % 4 * per + i + r / 2 * 4 * per;
        words[static_cast<size_t>(r * 32 + lane)] |= bits_of(shape.type, a(row, k)) << 16 * i;
      }
  return words;
}

Values fragment_b(const MmaShape &shape, const Matrix &b) {
  Values words(static_cast<size_t>(32 * shape.num_b()));
  const int per = shape.per_register();
  for (int r = 0; r < shape.num_b(); r++)
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < per; i++) {
        const int k = lane % 4 * per + i + r * 4 * per;
        words[static_cast<size_t>(r * 32 + lane)] |= bits_of(shape.type, b(k, lane / 4)) << 16 * i;
      }
  return words;
}

/// Calls f(word, shift, row, column) for the elements of C and D.
template <class F>
void for_each_sum(const MmaShape &shape, F &&f) {
  for (int lane = 0; lane < 32; lane++)
    for (int i = 0; i < 4; i++) {
      const int reg = shape.has_half_sums ? i / 2 : i;
      f(static_cast<size_t>(reg * 32 + lane), shape.has_half_sums ? i % 2 * 16 : 0,
        lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
    }
}

Values fragment_c(const MmaShape &shape, const Matrix &c) {
  Values words(static_cast<size_t>(32 * shape.num_sums()));
  for_each_sum(shape, [&](size_t word, int shift, int row, int column) {
    const uint32_t bits = shape.has_half_sums ? bits_of(Element::kHalf, c(row, column))
                                              : std::bit_cast<uint32_t>(c(row, column));
    words[word] |= bits << shift;
  });
  return words;
}

Matrix matrix_d(const MmaShape &shape, const Values &words) {
  Matrix d(16, 8);
  for_each_sum(shape, [&](size_t word, int shift, int row, int column) {
    const uint32_t bits = words[word] >> shift;
    d(row, column) = shape.has_half_sums
                         ? static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)))
                         : std::bit_cast<float>(bits);
  });
  return d;
}

Matrix run(const MmaShape &shape, const Matrix &a, const Matrix &b, const Matrix &c) {
  const Kernel kernel = mma_kernel(shape);
  const Words words_a(fragment_a(shape, a)), words_b(fragment_b(shape, b)),
      words_c(fragment_c(shape, c));
  Words words_d(static_cast<size_t>(32 * shape.num_sums()));
  const Outcome outcome = kernel(Shape{}, words_a, words_b, words_c, words_d);
  CHECK(outcome.is_clean());
  return matrix_d(shape, words_d.values());
}

constexpr MmaShape kShapes[] = {
    {Element::kHalf, 8},        {Element::kHalf, 16},  {Element::kHalf, 8, true},
    {Element::kHalf, 16, true}, {Element::kBfloat, 8}, {Element::kBfloat, 16},
    {Element::kTf32, 4},        {Element::kTf32, 8},
};

TEST_CASE("mma matches plain loops for each shape and type", "[mma]") {
  for (const MmaShape &shape : kShapes) {
    INFO(shape.opcode());
    const Matrix a(16, shape.depth, 1), b(shape.depth, 8, 2), c(16, 8, 3);
    CHECK(run(shape, a, b, c).values == product(a, b, c).values);
  }
}

TEST_CASE("mma of inexact numbers is a chain of fma", "[mma]") {
  std::mt19937 random(7);
  for (const MmaShape &shape : kShapes) {
    if (shape.has_half_sums) continue;
    INFO(shape.opcode());
    Matrix a(16, shape.depth), b(shape.depth, 8), c(16, 8);
    for (Matrix *m : {&a, &b, &c})  // 8 significant bits, which all types have
      for (float &x : m->values)
        x = std::ldexp(static_cast<float>(random() % 511) - 255,
                       static_cast<int>(random() % 12) - 6);
    Matrix expected = c;
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 8; j++)
        for (int k = 0; k < shape.depth; k++)
          expected(i, j) = std::fma(a(i, k), b(k, j), expected(i, j));
    CHECK(run(shape, a, b, c).values == expected.values);
  }
}

/// Returns one element of D: the sum of c and products with 1.
float sum_of(const MmaShape &shape, float c, const std::vector<float> &terms) {
  Matrix a(16, shape.depth), b(shape.depth, 8), start(16, 8);
  start(3, 5) = c;
  for (int k = 0; k < shape.depth; k++) b(k, 5) = 1;
  for (size_t k = 0; k < terms.size(); k++) a(3, static_cast<int>(k)) = terms[k];
  return run(shape, a, b, start)(3, 5);
}

TEST_CASE("mma adds in order of k and rounds each sum", "[mma]") {
  const MmaShape shape{Element::kHalf, 16};
  // The spacing after 2^24 is 2, so each added 1 is rounded to even and lost.
  CHECK(sum_of(shape, 0x1p24f, {1, 1, 1, 1}) == 0x1p24f);
  CHECK(sum_of(shape, 0, {1, 1}) == 2);
  CHECK(sum_of(shape, -0x1p24f, {1, 1}) == -0x1p24f + 2);
}

TEST_CASE("SOFTGPU_TRUNCATE truncates the sums of mma", "[mma]") {
  const MmaShape shape{Element::kBfloat, 16};
  const std::vector<float> terms = {0x1p-24f, 0x1p-24f};
  CHECK(sum_of(shape, 1, terms) == 1);
  {
    const WithOptions with([](Options &o) { o.truncated_sums = 1 + 2; });
    CHECK(sum_of(shape, 1, terms) == 1 + 0x1p-23f);
    CHECK(sum_of({Element::kTf32, 4}, 1, terms) == 1 + 0x1p-23f);
    CHECK(std::isinf(sum_of(shape, INFINITY, {1})));
  }
  const WithOptions with([](Options &o) { o.truncated_sums = 1; });
  CHECK(sum_of(shape, 1, terms) == 1);
  CHECK(sum_of(shape, 1, {0x1.8p-23f}) == 1 + 0x1p-23f);
}

TEST_CASE("fp16 sums of mma are rounded once", "[mma]") {
  const MmaShape shape{Element::kHalf, 16, true};
  CHECK(sum_of(shape, 2048, {1, 1}) == 2050);
  CHECK(sum_of(shape, 2048, {1}) == 2048);
}

TEST_CASE("mma propagates infinities and NaNs", "[mma]") {
  const MmaShape shape{Element::kHalf, 16};
  CHECK(std::isinf(sum_of(shape, 1, {INFINITY})));
  CHECK(std::isnan(sum_of(shape, 1, {INFINITY, -INFINITY})));
}

TEST_CASE("mma truncates tf32 to 10 fraction bits", "[mma]") {
  CHECK(sum_of({Element::kTf32, 8}, 0, {1 + 0x1p-11f}) == 1);
  CHECK(sum_of({Element::kTf32, 8}, 0, {1 + 0x1p-10f}) == 1 + 0x1p-10f);
}

TEST_CASE("mma requires all lanes of a warp", "[mma]") {
  const MmaShape shape{Element::kHalf, 16};
  Shape half_warp;
  half_warp.threads = {16, 1, 1};
  const Words a(128), b(64), c(128);
  Words d(128);
  CHECK_THAT(mma_kernel(shape)(half_warp, a, b, c, d).fault,
             ContainsSubstring("without all lanes"));
}

TEST_CASE("mma waits for diverged lanes", "[mma]") {
  const MmaShape shape{Element::kHalf, 16};
  const Kernel kernel(body_text(
      4, load_registers("a", 4, 0) + load_registers("b", 2, 1) + load_registers("c", 4, 2) +
             ".reg .b32 %d<4>;\n.reg .pred %q;\nsetp.lt.u32 %q, %t, 7;\n@%q bra join;\n"
             "mov.b32 %c0, %c0;\nmov.b32 %c1, %c1;\njoin:\n" +
             mma_statement(shape, "d") + store_registers("d", 4, 3) + "ret;"));
  const WithOptions with([](Options &o) { o.diverges = true; });
  const Matrix a(16, 16, 1), b(16, 8, 2), c(16, 8, 3);
  const Words words_a(fragment_a(shape, a)), words_b(fragment_b(shape, b)),
      words_c(fragment_c(shape, c));
  Words d(128);
  CHECK(kernel(Shape{}, words_a, words_b, words_c, d).is_clean());
  CHECK(matrix_d(shape, d.values()).values == product(a, b, c).values);
}

TEST_CASE("unsupported forms of mma are rejected", "[mma]") {
  const auto with = [](const std::string &opcode) {
    return body_text(
        0, ".reg .b32 %a<4>, %b<2>, %c<4>;\n" + opcode +
               " {%c0,%c1,%c2,%c3}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%c0,%c1,%c2,%c3};\nret;");
  };
  CHECK_NOTHROW(Kernel(with("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")));
  CHECK_THROWS_AS(Kernel(with("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32")), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32")), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32")), ptx::Error);
}

}  // namespace
}  // namespace softgpu::test
