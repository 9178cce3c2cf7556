// Branches, exits, and divergence and reconvergence of lanes.
#include "softgpu/tests/harness.h"
#include "softgpu/tests/recorded.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

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
  return kernel.program().totals->tally.executed[kernel.statement(text)];
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
  const auto out = words_of(kernel, 32);
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i < 10 ? 100 : 200));
  CHECK(num_executed(kernel, "st.global") == 1);
  CHECK(num_executed(kernel, "mov.u32 %r, 100") == 1);
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

TEST_CASE("lanes may leave a loop one by one, in any order", "[branch]") {
  for (uint64_t seed = 0; seed <= 5; seed++) {
    const WithOptions with([&](Options &o) {
      o.diverges = seed != 0;
      o.seed = seed;
    });
    const Kernel kernel = kernel_of(kLoopOfOwnLength);
    const auto out = words_of(kernel, 32);
    for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == i * (i - 1) / 2);
    if (seed != 0) continue;
    CHECK(num_executed(kernel, "add.u32 %r") == 31);
    CHECK(num_executed(kernel, "st.global") == 1);
  }
}

TEST_CASE("a register keeps its slot along loops and backward branches", "[branch]") {
  // %w3 would get the slot of %w1 if a branch were not followed.  The results are 300, 14 and 75.
  constexpr Recorded kRows[] = {
      {"4",
       "mov.u32 %w1, 5; mov.u32 %w2, 0; mov.u32 %d, 0; HEAD: bra FAR; READ: add.u32 %d, %d, %w1; "
       "bra LATCH; NEAR: bra LAST; FAR: bra NEAR; LAST: bra READ; LATCH: mov.u32 %w3, 70; "
       "add.u32 %d, %d, %w3; add.u32 %w2, %w2, 1; setp.lt.u32 %q1, %w2, 4; @%q1 bra HEAD;",
       0x34389DC5},
      {"4",
       "bra INIT; LATER: mov.u32 %w3, 9; add.u32 %d, %d, %w3; add.u32 %d, %d, %w1; bra END; "
       "INIT: mov.u32 %w1, 5; mov.u32 %d, 0; bra LATER; END:",
       0x67519DC5},
      {"4",
       "bra START; BACK: add.u32 %d, %d, %w1; bra END; START: mov.u32 %d, 0; mov.u32 %w1, 5; "
       "mov.u32 %w3, 70; add.u32 %d, %d, %w3; mov.u32 %w2, 1; table: .branchtargets END, BACK; "
       "brx.idx %w2, table; END:",
       0x72401DC5},
  };
  check_recorded(kRows);
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
  const auto out = words_of(kernel, 32);
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i >= 24 || i % 4 == 3 ? 50 : 1000 + i % 4));
  CHECK(num_executed(kernel, "st.global") == 1);
}

TEST_CASE("brx.idx beyond its table is a fault", "[branch]") {
  const Kernel kernel = kernel_of(std::string("table: .branchtargets zero, one, two;\n") + kTable);
  Words out(32);
  CHECK_CONTAINS(kernel(Shape{}, out).fault, "index 3 in a table of 3");
}

TEST_CASE("trap and brkpt are faults with their location", "[branch]") {
  const std::string statement = GENERATE(as<std::string>(), "trap;\n", "brkpt;\n");
  const Kernel kernel = kernel_of("setp.eq.u32 %q, %t, 3;\nmov.u32 %r, 0;\n@%q " + statement);
  Words out(32);
  const Outcome outcome = kernel(Shape{}, out);
  CHECK_CONTAINS(outcome.fault, "trap");
  CHECK_CONTAINS(outcome.fault, "thread 3");
  CHECK_CONTAINS(outcome.fault, "test.ptx:");
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
  CHECK_CONTAINS(outcome.fault, "SOFTGPU_LIMIT");
  CHECK_CONTAINS(outcome.fault, "bra.uni forever");
}

// ---- exchanges between lanes

TEST_CASE("exchanges have the recorded results", "[exchange]") {
  constexpr Recorded kRows[] = {
      {"4444",
       "and.b32 %w1, %b, 63; and.b32 %w2, %c, 0x1FFF; shfl.sync.<up/down/bfly/idx>.b32 %w3|%q1, "
       "%a, %w1, %w2, -1;",
       0xB68F32AA},
      {"4444",
       "and.b32 %w1, %b, 63; and.b32 %w2, %c, 0x1FFF; shfl.sync.<up/down/bfly/idx>.b32 %a, %a, "
       "%w1, %w2, -1; mov.b32 %w3, %a;",
       0x9126406B},
      {"44", "setp.lt.u32 %q2, %lane, 20; @%q2 shfl.sync.bfly.b32 %w3|%q1, %a, 1, 31, 0xFFFFF;",
       0x08A6BA59},
      {"44",
       "setp.lt.s32 %q2, %a, 0; setp.lt.u32 %q3, %lane, 16; selp.b32 %w1, 0xFFFF, 0xFFFF0000, %q3; "
       "vote.sync.ballot.b32 %w3, %q2, %w1; vote.sync.<all/any>.pred %q1, !%q2, %w1; "
       "redux.sync.add.s32 %w2, %a, %w1; xor.b32 %w3, %w3, %w2;",
       0x3992B0A0},
      {"4",
       "setp.<ge/eq/ne/lt>.u32 %q2, %lane, <0/31>; "
       "vote.<sync.all/sync.any/sync.uni/all.sync/any.sync/uni.sync>.pred %q1, <%q2/!%q2>, -1;",
       0x22365E00},
      {"4",
       "setp.lt.u32 %q2, %lane, 9; @%q2 bra low; activemask.b32 %w3; bra.uni end; low: "
       "vote.sync.ballot.b32 %w3, 1, 0x1FF; end:",
       0xC5CB1DC5},
      {"44", "and.b32 %w1, %a, <0/1/7/-1>; match.any.sync.b32 %w3, %w1, -1;", 0x5107E634},
      {"44", "and.b32 %w1, %a, <0/1>; match.all.sync.b32 %w3|%q1, %w1, -1;", 0xB8B8B8A0},
      {"44",
       "and.b32 %w1, %a, 1; mov.b64 %l1, {<0, %w1/%w1, 0>}; match.<any/all>.sync.b64 %w3, %l1, -1;",
       0x65048090},
      {"44",
       "add.u32 %w1, %lane, -3; setp.lt.u32 %q2, %w1, 28; @%q2 "
       "redux.sync.<add.u32/add.s32/min.u32/min.s32/max.u32/max.s32/and.b32/or.b32/xor.b32> %w3, "
       "%a, 0x7FFFFFF8;",
       0x11596B55},
      {"4", "setp.ge.u32 %q2, %lane, 6; @%q2 elect.sync %w3|%q1, 0xFFFFFFC0;", 0x88B915C5},
  };
  check_recorded(kRows, "mov.u32 %w3, 0xABCD; setp.ne.u32 %q1, 0, 0;",
                 "selp.b32 %d, 77, 0, %q1; add.u32 %d, %d, %w3;");
}

TEST_CASE("shfl.sync from an inactive lane is a violation", "[exchange]") {
  const Kernel kernel =
      kernel_of("setp.lt.u32 %q, %t, 20;\n@%q shfl.sync.down.b32 %r, %t, 1, 31, 0xfffff;\n");
  Words out(32);
  const std::string message = only_violation(kernel({}, out));
  CHECK_CONTAINS(message, "reads lane 20");
  CHECK_CONTAINS(message, "thread 19");
}

TEST_CASE("a lane outside its member mask is a fault", "[exchange]") {
  const std::string statement = GENERATE(
      as<std::string>(), "shfl.sync.idx.b32 %r, %t, 0, 31, 0xffff;",
      "vote.sync.any.pred %s, %s, 0xffff;", "match.any.sync.b32 %r, %t, 0xffff;",
      "redux.sync.add.u32 %r, %t, 0xffff;", "elect.sync %r|%s, 0xffff;", "bar.warp.sync 0xffff;");
  Words out(32);
  CHECK_CONTAINS(kernel_of(statement)({}, out).fault, "not in its member mask");
}

TEST_CASE("shfl.sync waits for diverged lanes of its mask", "[exchange]") {
  const Kernel kernel = kernel_of(R"(
    mul.lo.u32 %x, %t, 7;
    setp.lt.u32 %q, %t, 16;
    @%q bra meet;
    add.u32 %x, %x, 1;
    bar.warp.sync 0xffff0000;
  meet:
    shfl.sync.bfly.b32 %r, %x, 16, 31, -1;
  )");
  for (uint64_t seed = 1; seed < 6; seed++) {
    const WithOptions with([&](Options &o) {
      o.diverges = true;
      o.seed = seed;
    });
    const auto out = words_of(kernel, 32);
    for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == 7 * (i ^ 16) + (i < 16 ? 1 : 0));
  }
}

TEST_CASE("an incomplete member mask does not block other masks", "[exchange]") {
  // Lanes 16 to 23 wait for 24 to 31, which wait for an action of lane 0 after its vote.
  const Kernel kernel = kernel_of(R"(
    .reg .pred %low;
    setp.lt.u32 %low, %t, 16;
    selp.b32 %j, 0xffff, 0xffff0000, %low;
    setp.ge.u32 %q, %t, 24;
    @%q bra late;
  vote:
    vote.sync.ballot.b32 %r, %s, %j;
    @!%low bra end;
    setp.eq.u32 %q, %t, 0;
    mov.u32 %i, 1;
    @%q st.volatile.global.u32 [%p1], %i;
    bra.uni end;
  late:
    ld.volatile.global.u32 %i, [%p1];
    setp.eq.u32 %q, %i, 0;
    @%q bra late;
    vote.sync.ballot.b32 %r, !%s, %j;
  end:
  )",
                                  2);
  Words out(32), flag(1);
  const WithOptions with([](Options &o) { o.max_instructions = 1'000'000; });
  const Outcome outcome = kernel({}, out, flag);
  // The two votes are different instructions, for which hardware does not guarantee convergence.
  CHECK(flag[0] == 1);
  CHECK_CONTAINS(outcome.fault, "deadlock");
}

}  // namespace

}  // namespace softgpu::test
