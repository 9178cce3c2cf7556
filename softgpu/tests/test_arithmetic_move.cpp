// mov in all forms, cvta and isspacep, and rejected forms.
#include "softgpu/ptx/syntax.h"
#include "softgpu/tests/arithmetic_check.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;

TEMPLATE_TEST_CASE("mov copies a register", "[arithmetic]", uint16_t, uint32_t, uint64_t) {
  using T = TestType;
  const auto copy = [](T a) { return a; };
  for (const char *letter : {".b", ".u", ".s"})
    check<T, T>("mov" + (letter + std::to_string(8 * sizeof(T))), copy);
  if (sizeof(T) > 2) check_of_halves<T, T>("mov.f" + std::to_string(8 * sizeof(T)), copy);
}

/// Runs a body in 32 threads that computes the 64-bit %r from the thread's 64-bit word %x.
std::vector<uint64_t> run_body(const std::string &body, const std::vector<uint64_t> &x) {
  Buffer<uint64_t> results(32, 7), inputs(x);
  const Kernel kernel(body_text(2, R"(
    .reg .pred %p, %q;
    .reg .b16 %h<4>;
    .reg .b32 %w<4>;
    .reg .b64 %x, %r, %at, %offset;
    .local .align 4 .b8 depot[4];
    .shared .align 4 .b8 tile[16];
    mul.wide.u32 %offset, %t, 8;
    add.u64 %at, %p1, %offset;
    ld.global.b64 %x, [%at];
    mov.b64 %r, 0;
    )" + body + R"(
    add.u64 %at, %p0, %offset;
    st.global.b64 [%at], %r;
  )"));
  const Outcome outcome = kernel({}, results, inputs);
  CAPTURE(outcome, body);
  REQUIRE(outcome.is_clean());
  return results.values();
}
template <class F>
void check_body(const std::string &body, F &&expected) {
  const auto x = values_of(64, false, 3, 32);
  const auto results = run_body(body, x);
  for (uint32_t lane = 0; lane < 32; lane++) {
    CAPTURE(body, lane, x[lane]);
    REQUIRE(results[lane] == expected(x[lane], lane));
  }
}
uint64_t halfword(uint64_t x, int i) {
  return x >> 16 * i & 0xFFFF;
}

TEST_CASE("mov packs and unpacks vectors", "[arithmetic]") {
  const auto same = [](uint64_t x, uint32_t) { return x; };
  check_body("mov.b64 {%w0, %w1}, %x; mov.b64 %r, {%w0, %w1};", same);
  check_body("mov.b64 {%h0, %h1, %h2, %h3}, %x; mov.b64 %r, {%h0, %h1, %h2, %h3};", same);
  check_body("mov.b64 {%w0, %w1}, %x; mov.b64 %r, {%w1, %w0};",
             [](uint64_t x, uint32_t) { return x << 32 | x >> 32; });
  check_body("mov.b64 {%h0, %h1, %h2, %h3}, %x; mov.b64 %r, {%h3, %h2, %h1, %h0};", [](uint64_t x,
                                                                                       uint32_t) {
    return halfword(x, 0) << 48 | halfword(x, 1) << 32 | halfword(x, 2) << 16 | halfword(x, 3);
  });
  check_body("mov.b64 {_, %w1}, %x; cvt.u64.u32 %r, %w1;",
             [](uint64_t x, uint32_t) { return x >> 32; });
  check_body(
      "cvt.u32.u64 %w0, %x; mov.b32 {%h0, %h1}, %w0; mov.b32 %w1, {%h1, %h0}; cvt.u64.u32 %r, %w1;",
      [](uint64_t x, uint32_t) { return halfword(x, 0) << 16 | halfword(x, 1); });
  check_body("mov.b64 %r, {1, -1};", [](uint64_t, uint32_t) { return 0xFFFFFFFF00000001; });
}
TEST_CASE("inactive lanes keep their registers", "[arithmetic]") {
  const std::string odd = "and.b32 %w0, %t, 1; setp.eq.u32 %p, %w0, 1;";
  check_body(odd + "mov.b64 {%w0, %w1}, %x; @%p mov.b64 %r, {%w1, %w0};",
             [](uint64_t x, uint32_t lane) { return lane % 2 ? x << 32 | x >> 32 : 0; });
  check_body(
      odd + "mov.b32 %w0, 5; mov.b32 %w1, 6; @%p mov.b64 {%w0, %w1}, %x; mov.b64 %r, {%w0, %w1};",
      [](uint64_t x, uint32_t lane) { return lane % 2 ? x : 0x600000005; });
}

TEST_CASE("mov reads special registers", "[arithmetic]") {
  check_body("mov.u32 %w0, %laneid; cvt.u64.u32 %r, %w0;",
             [](uint64_t, uint32_t lane) { return lane; });
  // The clock increases between two reads.
  check_body(
      "mov.u64 %x, %clock64; mov.u64 %r, %clock64; setp.lt.u64 %p, %x, %r; selp.u64 %r, 1, 0, %p;",
      [](uint64_t, uint32_t) -> uint64_t { return 1; });
  check_body(
      "mov.u32 %w0, %clock; mov.u32 %w1, %clock; sub.u32 %w0, %w1, %w0; cvt.u64.u32 %r, %w0;",
      [](uint64_t, uint32_t) -> uint64_t { return 1; });
}

TEST_CASE("cvta and isspacep map generic addresses", "[arithmetic]") {
  const auto yes = [](uint64_t, uint32_t) -> uint64_t { return 1; };
  const auto no = [](uint64_t, uint32_t) -> uint64_t { return 0; };
  const std::string give = " selp.u64 %r, 1, 0, %p;";
  const std::string shared = "mov.u64 %x, tile; cvta.shared.u64 %x, %x;";
  const std::string local = "mov.u64 %x, depot; cvta.local.u64 %x, %x;";
  const std::string global = "cvta.global.u64 %x, %p1;";
  check_body(shared + "isspacep.shared %p, %x;" + give, yes);
  check_body(shared + "isspacep.shared::cta %p, %x;" + give, yes);
  check_body(shared + "isspacep.shared::cluster %p, %x;" + give, yes);
  check_body(shared + "isspacep.global %p, %x;" + give, no);
  check_body(shared + "isspacep.local %p, %x;" + give, no);
  check_body(local + "isspacep.local %p, %x;" + give, yes);
  check_body(local + "isspacep.shared %p, %x;" + give, no);
  check_body(global + "isspacep.global %p, %x;" + give, yes);
  check_body(global + "isspacep.local %p, %x;" + give, no);
  // Conversion in both directions.
  check_body(shared + "cvta.to.shared.u64 %x, %x; mov.u64 %r, tile; sub.u64 %r, %r, %x;", no);
  check_body(local + "cvta.to.local.u64 %x, %x; mov.u64 %r, depot; sub.u64 %r, %r, %x;", no);
  check_body(global + "cvta.to.global.u64 %x, %x; sub.u64 %r, %p1, %x;", no);
  check_body(
      shared + "mov.b32 %w0, 77; st.u32 [%x], %w0; ld.shared.u32 %w1, [tile]; cvt.u64.u32 %r, %w1;",
      [](uint64_t, uint32_t) -> uint64_t { return 77; });
}

TEST_CASE("cvta.to of an address outside its space is a violation", "[arithmetic]") {
  Buffer<uint32_t> buffer(1);
  const Kernel kernel(body_text(1, ".reg .b64 %x;\ncvta.to.shared.u64 %x, %p0;\n"));
  const Outcome outcome = kernel({}, buffer);
  CAPTURE(outcome);
  REQUIRE(outcome.violations.size() == 1);
  CHECK_THAT(outcome.violations[0], ContainsSubstring("state space that does not contain it"));
}

TEST_CASE("unsupported arithmetic is rejected", "[arithmetic]") {
  const std::string registers =
      ".reg .pred %p; .reg .b16 %h<4>; .reg .b32 %w<4>; .reg .b64 %l<4>; .reg .f32 %f<4>;";
  for (const char *statement : {"add.u32.wrong %w0, %w1, %w2;",
                                "add.wrong.u32 %w0, %w1, %w2;",
                                "add.u8 %h0, %h1, %h2;",
                                "add.u32 %w0, %w1;",
                                "add.u32 %w0, %w1, %w2, %w3;",
                                "add.sat.u32 %w0, %w1, %w2;",
                                "add.rn.u32 %w0, %w1, %w2;",
                                "mul.u32 %w0, %w1, %w2;",
                                "mul.wide.u64 %l0, %l1, %l2;",
                                "and.u32 %w0, %w1, %w2;",
                                "shl.u32 %w0, %w1, %w2;",
                                "prmt.b32.f4e %w0, %w1, %w2, %w3;",
                                "fma.f32 %f0, %f1, %f2, %f3;",
                                "div.f32 %f0, %f1, %f2;",
                                "sqrt.f32 %f0, %f1;",
                                "ex2.f32 %f0, %f1;",
                                "add.rna.f32 %f0, %f1, %f2;",
                                "max.sat.f32 %f0, %f1, %f2;",
                                "add.sat.bf16 %h0, %h1, %h2;",
                                "setp.u32 %p, %w0, %w1;",
                                "setp.lo.s32 %p, %w0, %w1;",
                                "setp.lt.b32 %p, %w0, %w1;",
                                "setp.nan.s32 %p, %w0, %w1;",
                                "setp.lt.and.s32 %p, %w0, %w1;",
                                "cvt.f32.s32 %f0, %w0;",
                                "cvt.s32.f32 %w0, %f0;",
                                "cvt.rn.e4m3x2.f32 %h0, %f0, %f1;",
                                "cvt.rn.s32.u32 %w0, %w1;",
                                "mov.v2.u32 %w0, %w1;",
                                "mov.b32 %w0, {%h0, %h1, %h2};",
                                "cvta.wrong.u64 %l0, %l1;",
                                "lop3.b32 %w0, %w1, %w2, %w3, %w3;",
                                "wrong.u32 %w0, %w1;"}) {
    CAPTURE(statement);
    CHECK_THROWS_AS(Kernel(body_text(0, registers + statement)), ptx::Error);
  }
}

}  // namespace
}  // namespace softgpu::test
