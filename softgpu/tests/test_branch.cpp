// Branches, exits, and divergence and reconvergence of lanes.
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = Buffer<uint32_t>;

/// Returns a kernel that stores %r of each thread to its first buffer after `body`, at label
/// `store`.
Kernel kernel_of(const std::string &body, size_t num_buffers = 1) {
  return Kernel(
      body_text(num_buffers, ".reg .pred %q, %s;\n.reg .b32 %r, %i, %j;\n.reg .b64 %a;\n" + body +
                                 "store:\nmad.wide.u32 %a, %t, 4, %p0;\n"
                                 "st.global.u32 [%a], %r;\nret;"));
}

/// Returns the executions, in warps, of the statement that contains the text.
uint64_t num_executed(const Kernel &kernel, const std::string &text) {
  const Program &program = kernel.program();
  for (size_t i = 0; i < program.source.size(); i++) {
    if (program.source[i].text.find(text) != std::string::npos)
      return program.totals->tally.executed[i];
  }
  FAIL("no statement has " << text);
  return 0;
}

constexpr char kTwoWays[] = R"(
  setp.lt.u32 %q, %t, 10;
  @%q bra low;
  mov.u32 %r, 200;
  bra.uni store;
low:
  mov.u32 %r, 100;
)";

TEST_CASE("diverged lanes reconverge after the branch", "[branch]") {
  const Kernel kernel = kernel_of(kTwoWays);
  Words out(32);
  CHECK(kernel(Shape{}, out).is_clean());
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i < 10 ? 100 : 200));
  CHECK(num_executed(kernel, "st.global") == 1);
  CHECK(num_executed(kernel, "mov.u32 %r, 100") == 1);
}

TEST_CASE("a uniform branch does not split the warp", "[branch]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 32;
    @%q bra low;
    mov.u32 %r, 200;
    bra.uni store;
  low:
    mov.u32 %r, 100;
  )");
  Words out(64);
  Shape shape;
  shape.threads = {64, 1, 1};
  CHECK(kernel(shape, out).is_clean());
  for (uint32_t i = 0; i < 64; i++) CHECK(out[i] == (i < 32 ? 100 : 200));
  CHECK(num_executed(kernel, "mov.u32 %r, 200") == 1);
}

constexpr char kLoopOfOwnLength[] = R"(
    mov.u32 %r, 0;
    mov.u32 %i, 0;
  again:
    setp.ge.u32 %q, %i, %t;
    @%q bra store;
    add.u32 %r, %r, %i;
    add.u32 %i, %i, 1;
    bra.uni again;
)";

TEST_CASE("lanes may leave a loop one by one", "[branch]") {
  const Kernel kernel = kernel_of(kLoopOfOwnLength);
  Words out(32);
  CHECK(kernel(Shape{}, out).is_clean());
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == i * (i - 1) / 2);
  CHECK(num_executed(kernel, "add.u32 %r") == 31);
  CHECK(num_executed(kernel, "st.global") == 1);
}

TEST_CASE("the result does not depend on the order of diverged lanes", "[branch]") {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    const WithOptions with([&](Options &o) {
      o.diverges = true;
      o.seed = seed;
    });
    const Kernel kernel = kernel_of(kLoopOfOwnLength);
    Words out(32);
    CHECK(kernel(Shape{}, out).is_clean());
    for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == i * (i - 1) / 2);
  }
}

TEST_CASE("a guard excludes some or all lanes", "[branch]") {
  const Kernel kernel = kernel_of(R"(
    setp.eq.u32 %q, %t, 7;
    setp.eq.u32 %s, %t, 99;
    mov.u32 %r, 1;
    @%q mov.u32 %r, 2;
    @%s mov.u32 %r, 3;
    @!%s add.u32 %r, %r, 10;
  )");
  Words out(32);
  CHECK(kernel(Shape{}, out).is_clean());
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i == 7 ? 12 : 11));
  CHECK(num_executed(kernel, "mov.u32 %r, 3") == 0);
}

constexpr char kTable[] = R"(
    and.b32 %i, %t, 3;
    mov.u32 %r, 50;
    setp.lt.u32 %q, %t, 24;
    @%q brx.idx %i, table;
    bra.uni store;
  zero:
    mov.u32 %r, 1000;
    bra.uni store;
  one:
    mov.u32 %r, 1001;
    bra.uni store;
  two:
    mov.u32 %r, 1002;
    bra.uni store;
)";

TEST_CASE("brx.idx branches each lane by its index", "[branch]") {
  const Kernel kernel =
      kernel_of(std::string("table: .branchtargets zero, one, two, store;\n") + kTable);
  Words out(32);
  CHECK(kernel(Shape{}, out).is_clean());
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i >= 24 || i % 4 == 3 ? 50 : 1000 + i % 4));
  CHECK(num_executed(kernel, "st.global") == 1);
}

TEST_CASE("brx.idx beyond its table is a fault", "[branch]") {
  const Kernel kernel = kernel_of(std::string("table: .branchtargets zero, one, two;\n") + kTable);
  Words out(32);
  CHECK_THAT(kernel(Shape{}, out).fault, ContainsSubstring("index 3 in a table of 3"));
}

TEST_CASE("exiting lanes do not affect other lanes", "[branch]") {
  const Kernel kernel = kernel_of(R"(
    setp.ge.u32 %q, %t, 5;
    @%q exit;
    mov.u32 %r, 7;
    bar.sync 0;
  )");
  Words out(64);
  Shape shape;
  shape.threads = {64, 1, 1};
  CHECK(kernel(shape, out).is_clean());
  for (uint32_t i = 0; i < 64; i++) CHECK(out[i] == (i < 5 ? 7 : 0));
}

TEST_CASE("trap is a fault with its location", "[branch]") {
  const Kernel kernel = kernel_of("setp.eq.u32 %q, %t, 3;\nmov.u32 %r, 0;\n@%q trap;\n");
  Words out(32);
  const Outcome outcome = kernel(Shape{}, out);
  CHECK_THAT(outcome.fault, ContainsSubstring("trap"));
  CHECK_THAT(outcome.fault, ContainsSubstring("thread 3"));
  CHECK_THAT(outcome.fault, ContainsSubstring("test.ptx:"));
}

TEST_CASE("a lane may poll for another lane of its warp", "[branch]") {
  // The polling lanes have the lower program counter and would always run first.
  const Kernel kernel = kernel_of(R"(
    mov.u32 %r, 1;
    setp.eq.u32 %q, %t, 31;
    @%q bra release;
  spin:
    ld.volatile.global.u32 %i, [%p1];
    setp.eq.u32 %s, %i, 0;
    @%s bra spin;
    bra.uni store;
  release:
    mov.u32 %j, 1;
    st.volatile.global.u32 [%p1], %j;
  )",
                                  2);
  Words out(32), flag(1);
  const WithOptions with([](Options &o) { o.max_instructions = 1'000'000; });
  CHECK(kernel(Shape{}, out, flag).is_clean());
  CHECK(out[0] == 1);
}

TEST_CASE("an endless kernel is stopped at the limit", "[branch]") {
  const Kernel kernel = kernel_of("mov.u32 %r, 0;\nforever: bra.uni forever;\n");
  Words out(32);
  const WithOptions with([](Options &o) { o.max_instructions = 10'000; });
  const Outcome outcome = kernel(Shape{}, out);
  CHECK_THAT(outcome.fault, ContainsSubstring("SOFTGPU_LIMIT"));
  CHECK_THAT(outcome.fault, ContainsSubstring("bra.uni forever"));
}

}  // namespace
}  // namespace softgpu::test
