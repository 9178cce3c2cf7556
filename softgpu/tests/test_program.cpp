// Compiled kernels: errors, calls, divergence and mutations.
#include "softgpu/program/edit.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

using namespace softgpu;
using namespace softgpu::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Runs a kernel in one warp, with a buffer in %p0 and the thread in %t and %T.  Returns the
/// buffer.
std::vector<uint32_t> results_of(const std::string &body, size_t size = 32) {
  const Kernel kernel(body_text(1, body));
  Buffer<uint32_t> out(size, 0xDEAD);
  const Outcome outcome = kernel({}, out);
  CHECK(outcome.fault == "");
  CHECK(outcome.violations.empty());
  return out.values();
}

/// Stores a 32-bit register to the thread's element.
const std::string kStore = "shl.b64 %T, %T, 2; add.s64 %T, %T, %p0; st.global.b32 [%T], ";

template <class F>
std::vector<uint32_t> of_each_thread(F &&f) {
  std::vector<uint32_t> values;
  for (uint32_t t = 0; t < 32; t++) values.push_back(f(t));
  return values;
}

TEST_CASE("a compile error names its location", "[program]") {
  const auto compile_body = [](const std::string &body) { Kernel(module_text("", body)); };
  CHECK_THROWS_WITH(
      compile_body("\nnonsense.b32;"),
      ContainsSubstring("test.ptx:8: unknown instruction in kernel test: nonsense.b32"));
  CHECK_THROWS_WITH(compile_body(".reg .b64 %rd1; .reg .b32 %r1; add.s32 %r1, %r1, %rd1;"),
                    ContainsSubstring("width"));
  CHECK_THROWS_WITH(compile_body(".reg .b32 %r1; mov.u32 %r1, %nothing;"),
                    ContainsSubstring("%nothing"));
  CHECK_THROWS_WITH(compile_body("bra;"), ContainsSubstring("number of operands"));
  CHECK_THROWS_WITH(compile_body(".reg .b64 %rd1; mov.u64 %rd1, nothing;"),
                    ContainsSubstring("nothing"));
  CHECK_THROWS_WITH(compile_body(".reg .b32 %r1; add.s32 5, %r1, %r1;"),
                    ContainsSubstring("destination"));
}

TEST_CASE("function calls in loops return results", "[program]") {
  const Kernel kernel(module_text(".param .u64 p0", R"(
    .reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .pred %q<2>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
LOOP:
    {
      .param .b32 param0; .param .b32 retval0;
      st.param.b32 [param0], %r2;
      call.uni (retval0), square_if_odd, (param0);
      ld.param.b32 %r4, [retval0];
    }
    add.s32 %r3, %r3, %r4;
    add.s32 %r2, %r2, 1;
    setp.le.u32 %q1, %r2, %r1;
    @%q1 bra LOOP;
    ld.param.u64 %rd1, [p0];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r3;)",
                                  R"(
.func (.param .b32 result) square_if_odd(.param .b32 x)
{
  .reg .b32 %r<4>; .reg .pred %q<2>;
  ld.param.b32 %r1, [x];
  and.b32 %r2, %r1, 1;
  setp.ne.u32 %q1, %r2, 0;
  @%q1 bra ODD;
  st.param.b32 [result], 0;
  ret;
ODD:
  mul.lo.s32 %r3, %r1, %r1;
  st.param.b32 [result], %r3;
  ret;
}
)"));
  CHECK(words_of(kernel, 32) == of_each_thread([](uint32_t t) {
          uint32_t sum = 0;
          for (uint32_t i = 1; i <= t; i += 2) sum += i * i;
          return sum;
        }));
}

TEST_CASE("diverged lanes keep their registers", "[program]") {
  // The arms use separate registers, which share slots, while the other lanes wait; %r1 is live in
  // both.
  const auto results = results_of(R"(
    .reg .b32 %r<20>; .reg .pred %q<3>;
    mul.lo.s32 %r1, %t, 3;
    mov.u32 %r2, %t;
    and.b32 %r3, %t, 1;
    setp.eq.u32 %q1, %r3, 0;
AGAIN:
    setp.eq.u32 %q2, %r2, 0;
    @%q2 bra DONE;
    sub.s32 %r2, %r2, 1;
    @%q1 bra EVEN;
    add.s32 %r4, %r2, 100; add.s32 %r5, %r4, %r4; add.s32 %r1, %r1, %r5;
    bra AGAIN;
EVEN:
    add.s32 %r6, %r2, 7; mul.lo.s32 %r7, %r6, %r6; sub.s32 %r1, %r1, %r7;
    bra AGAIN;
DONE:)" + kStore + "%r1;");
  CHECK(results == of_each_thread([](uint32_t t) {
          uint32_t sum = 3 * t;
          for (uint32_t i = 0; i < t; i++) sum += t % 2 ? 2 * (i + 100) : 0 - (i + 7) * (i + 7);
          return sum;
        }));
}

// ---- Mutations

/// Returns the instructions after an edit.
std::vector<std::string> edited(const std::string &edit, std::vector<std::string> statements,
                                const std::string &kernel = "gemm<int>(Args)") {
  const ptx::Rewrite rewrite = make_edit(edit, kernel);
  if (!rewrite) return statements;
  for (std::string &statement : statements) statement = rewrite(statement).value_or(statement);
  return statements;
}

TEST_CASE("SOFTGPU_EDIT selects and changes statements", "[program]") {
  using Lines = std::vector<std::string>;
  const Lines code = {"bar.sync 0", "@%p1 bra L1", "bar.sync 1", "add.s32 %r1, %r1, 1"};
  CHECK(edited("", code) == code);
  CHECK(edited("drop bar.sync", code) == Lines{"", code[1], "", code[3]});
  CHECK(edited("drop bar.sync @1", code) == Lines{code[0], code[1], "", code[3]});
  CHECK(edited("drop bar.sync @2", code) == code);
  CHECK(edited("drop @%p1 bra", code) == Lines{code[0], "", code[2], code[3]});
  CHECK(edited("swap %r1, 1=>%r1, 2", code)[3] == "add.s32 %r1, %r1, 2");
  CHECK(edited("swap %r1=>%r2", code)[3] == "add.s32 %r2, %r1, 1");
  CHECK(edited("swap bar.sync=>bar.warp.sync @0 in gemm", code) ==
        Lines{"bar.warp.sync 0", code[1], code[2], code[3]});
  CHECK(edited("drop bar.sync in gemm<int>", code)[0].empty());
  CHECK(edited("drop bar.sync in conv", code) == code);
  for (const char *bad : {"bar.sync", "drop", "drop ", "swap a", "swap =>b", "remove a"}) {
    INFO(bad);
    CHECK_THROWS_AS(make_edit(bad, "k"), ptx::Error);
  }
}

TEST_CASE("SOFTGPU_EDIT changes the compiled kernel", "[program]") {
  const std::string body =
      ".reg .b32 %r<2>; mov.u32\t%r1, 1;\nadd.s32 \t%r1, %r1, 1;" + kStore + "%r1;";
  CHECK(results_of(body)[0] == 2);
  const WithOptions with(
      [](Options &o) { o.edit = "swap add.s32 %r1, %r1, 1=>add.s32 %r1, %r1, 5"; });
  CHECK(results_of(body)[0] == 6);
}

}  // namespace
