// wgmma: shapes, layouts and types, compared with plain loops.
#include "softgpu/tests/wgmma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

struct Case {
  int num_columns;
  Element type;
  FactorLayout a, b;
  bool a_is_in_registers = false;
  bool has_scale_d = true;
  int scale_a = 1, scale_b = 1;
};

std::ostream &operator<<(std::ostream &stream, const Case &c) {
  return stream << "n " << c.num_columns << " " << name_of(c.type) << " A swizzle " << c.a.swizzle
                << " mn " << c.a.is_mn_major << " registers " << c.a_is_in_registers
                << " B swizzle " << c.b.swizzle << " mn " << c.b.is_mn_major;
}

/// PTX ISA, Register Fragments: A of a warp is 16 x 16, as for mma.m16n8k16.
std::vector<uint32_t> registers_of_a(Element type, const Matrix &a) {
  std::vector<uint32_t> words(4 * kWarpgroup);
  for (int row = 0; row < 64; row++)
    for (int k = 0; k < 16; k++) {
      const int thread = row / 16 * 32 + row % 8 * 4 + k % 8 / 2, reg = row % 16 / 8 + k / 8 * 2;
      words[static_cast<size_t>(reg * kWarpgroup + thread)] |= bits_of(type, a(row, k))
                                                               << 16 * (k % 2);
    }
  return words;
}

void check(const Case &c) {
  INFO(c);
  const Matrix a(64, 16, 1), b(16, c.num_columns, 2), start(64, c.num_columns, 3);
  const SharedFactors factors = shared_factors(c.type, {c.a, 64}, {c.b, c.num_columns}, a, b);
  WgmmaText wgmma{c.num_columns, c.type, c.a.is_mn_major, c.b.is_mn_major, c.a_is_in_registers};
  wgmma.scale_d = c.has_scale_d ? "%yes" : "%no";
  wgmma.scale_a = std::to_string(c.scale_a);
  wgmma.scale_b = std::to_string(c.scale_b);
  const auto num_bytes = static_cast<int>(factors.image.size() * 2);
  const Kernel kernel(body_text(
      4, wgmma_prologue(num_bytes, c.num_columns) + load_registers("a", 4, 3, kWarpgroup) +
             "wgmma.fence.sync.aligned;\n" + wgmma.text() +
             "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" +
             store_registers("acc", c.num_columns / 2, 2, kWarpgroup) + "ret;"));

  const Buffer<uint16_t> image(factors.image);
  const Buffer<uint64_t> descriptors(factors.descriptors);
  Buffer<float> accumulators(registers_of(start));
  const Buffer<uint32_t> registers_a(registers_of_a(c.type, a));
  CHECK(kernel(warpgroup_shape(), image, descriptors, accumulators, registers_a).is_clean());
  const Matrix zero(64, c.num_columns);
  const Matrix expected =
      product(a, b, c.has_scale_d ? start : zero, static_cast<float>(c.scale_a * c.scale_b));
  CHECK(accumulators_of(accumulators.values(), c.num_columns).values == expected.values);
}

constexpr int kSwizzles[] = {0, 32, 64, 128};

TEST_CASE("wgmma matches plain loops for each number of columns", "[wgmma]") {
  for (int n = 8; n <= 256; n += 8) check({n, Element::kHalf, {}, {}});
}

TEST_CASE("wgmma supports each layout of A", "[wgmma]") {
  for (const int swizzle : kSwizzles)
    for (const bool is_mn_major : {false, true})
      for (const Element type : {Element::kHalf, Element::kBfloat})
        check({16, type, {swizzle, is_mn_major}, {}});
}

TEST_CASE("wgmma supports each layout of B", "[wgmma]") {
  for (const int swizzle : kSwizzles)
    for (const bool is_mn_major : {false, true})
      for (const Element type : {Element::kHalf, Element::kBfloat})
        for (const int n : {64, 192, 256}) check({n, type, {}, {swizzle, is_mn_major}});
}

TEST_CASE("wgmma supports A in registers", "[wgmma]") {
  for (const Element type : {Element::kHalf, Element::kBfloat})
    for (const bool is_mn_major : {false, true}) check({64, type, {}, {128, is_mn_major}, true});
}

TEST_CASE("wgmma scales A, B and D", "[wgmma]") {
  for (const int scale_a : {1, -1})
    for (const int scale_b : {1, -1})
      for (const bool has_scale_d : {false, true}) {
        check({32, Element::kHalf, {}, {}, false, has_scale_d, scale_a, scale_b});
        check({32, Element::kBfloat, {}, {}, true, has_scale_d, scale_a, scale_b});
      }
}

TEST_CASE("wgmma may complete at any time until the wait", "[wgmma]") {
  for (const Completion completion : {Completion::kLate, Completion::kRandom, Completion::kEarly})
    for (uint64_t seed = 1; seed < 6; seed++) {
      const WithOptions with([&](Options &o) {
        o.completion = completion;
        o.seed = seed;
      });
      check({64, Element::kHalf, {128, false}, {128, true}});
    }
}

TEST_CASE("SOFTGPU_TRUNCATE truncates the sums of wgmma", "[wgmma]") {
  const WithOptions with([](Options &o) { o.truncated_sums = 3; });
  check({40, Element::kHalf, {}, {}});  // integers are exact in both modes
}

TEST_CASE("unsupported forms of wgmma are rejected", "[wgmma]") {
  const auto with = [](std::string opcode, int num_registers) {
    return body_text(0,
                     ".reg .b32 %acc<128>;\n.reg .b64 %da, %db;\n.reg .pred "
                     "%yes;\nwgmma.mma_async.sync.aligned." +
                         opcode + " " + registers("acc", num_registers) +
                         ", %da, %db, %yes, 1, 1, 0, 0;\nret;");
  };
  CHECK_NOTHROW(Kernel(with("m64n64k16.f32.f16.f16", 32)));
  CHECK_THROWS_AS(Kernel(with("m64n64k16.f32.f16.f16", 16)), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("m64n12k16.f32.f16.f16", 6)), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("m64n64k8.f32.tf32.tf32", 32)), ptx::Error);
  CHECK_THROWS_AS(Kernel(with("m64n64k16.f16.f16.f16", 16)), ptx::Error);
}

}  // namespace
}  // namespace softgpu::test
