// shfl, vote, match, redux, elect and activemask, compared with plain loops.
#include <functional>
#include <random>

#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = Buffer<uint32_t>;

/// Returns a kernel in which thread t has p1[t], p2[t] and p3[t] in %x, %y and %z.  After `body`,
/// it stores %r to p0[t] and the predicate %s to p0[32 + t].
Kernel kernel_of(const std::string &body) {
  return Kernel(body_text(4, R"(
    .reg .pred %q, %s;
    .reg .b32 %r, %x, %y, %z, %m;
    .reg .b64 %a, %d;
    mul.wide.u32 %d, %t, 4;
    add.u64 %a, %p1, %d;
    ld.global.u32 %x, [%a];
    add.u64 %a, %p2, %d;
    ld.global.u32 %y, [%a];
    add.u64 %a, %p3, %d;
    ld.global.u32 %z, [%a];
    mov.u32 %r, 0xabcd;
    setp.ne.u32 %s, %t, %t;
  )" + body + R"(
    add.u64 %a, %p0, %d;
    st.global.u32 [%a], %r;
    selp.b32 %r, 1, 0, %s;
    st.global.u32 [%a+128], %r;
  )"));
}

std::vector<uint32_t> random_words(uint64_t seed, uint32_t below) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> words(32);
  for (uint32_t &word : words) word = static_cast<uint32_t>(random() % below);
  return words;
}

struct Shuffled {
  uint32_t lane;
  bool is_inside;
};
/// Returns the source lane of a lane: PTX ISA, shfl.sync.
Shuffled shuffled(const std::string &mode, int lane, uint32_t b, uint32_t c) {
  const int index = b % 32, clamp = c % 32, mask = c >> 8 & 31;
  const int last = (lane & mask) | (clamp & ~mask);
  int j = 0;
  bool is_inside = true;
  if (mode == "up") {
    j = lane - index;
    is_inside = j >= last;
  } else {
    j = mode == "down"   ? lane + index
        : mode == "bfly" ? lane ^ index
                         : (lane & mask) | (index & ~mask);
    is_inside = j <= last;
  }
  return {static_cast<uint32_t>(is_inside ? j : lane), is_inside};
}

TEST_CASE("shfl.sync of a full warp matches the PTX ISA", "[exchange]") {
  const std::string mode = GENERATE(as<std::string>(), "up", "down", "bfly", "idx");
  const Kernel kernel = kernel_of("shfl.sync." + mode + ".b32 %r|%s, %x, %y, %z, 0xffffffff;\n");
  const Kernel in_place =
      kernel_of("shfl.sync." + mode + ".b32 %x, %x, %y, %z, -1;\nmov.b32 %r, %x;\n");
  for (uint64_t seed = 0; seed < 8; seed++) {
    Words out(64), again(64), x(random_words(seed, 0xffffffff)), y(random_words(seed + 100, 64)),
        z(random_words(seed + 200, 0x2000));
    CHECK(kernel(Shape{}, out, x, y, z).is_clean());
    CHECK(in_place(Shape{}, again, x, y, z).is_clean());
    for (uint32_t i = 0; i < 32; i++) {
      const Shuffled from = shuffled(mode, static_cast<int>(i), y[i], z[i]);
      CHECK(out[i] == x[from.lane]);
      CHECK(out[32 + i] == from.is_inside);
      CHECK(again[i] == x[from.lane]);
    }
  }
}

TEST_CASE("shfl.sync works with guarded lanes", "[exchange]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 20;
    @%q shfl.sync.bfly.b32 %r|%s, %x, 1, 31, 0xfffff;
  )");
  Words out(64), x(random_words(1, 1000)), y(32), z(32);
  CHECK(kernel(Shape{}, out, x, y, z).is_clean());
  for (uint32_t i = 0; i < 32; i++) {
    CHECK(out[i] == (i < 20 ? x[i ^ 1] : 0xabcd));
    CHECK(out[32 + i] == (i < 20));
  }
}

TEST_CASE("shfl.sync from an inactive lane is a violation", "[exchange]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 20;
    @%q shfl.sync.down.b32 %r, %x, 1, 31, 0xfffff;
  )");
  Words out(64), x(random_words(1, 1000)), y(32), z(32);
  const Outcome outcome = kernel(Shape{}, out, x, y, z);
  REQUIRE(outcome.violations.size() == 1);
  CHECK_THAT(outcome.violations[0], ContainsSubstring("reads lane 20"));
  CHECK_THAT(outcome.violations[0], ContainsSubstring("thread 19"));
}

TEST_CASE("a lane outside its member mask is a fault", "[exchange]") {
  const std::string statement = GENERATE(
      as<std::string>(), "shfl.sync.idx.b32 %r, %x, 0, 31, 0xffff;",
      "vote.sync.any.pred %s, %s, 0xffff;", "match.any.sync.b32 %r, %x, 0xffff;",
      "redux.sync.add.u32 %r, %x, 0xffff;", "elect.sync %r|%s, 0xffff;", "bar.warp.sync 0xffff;");
  const Kernel kernel = kernel_of(statement + "\n");
  Words out(64), x(32), y(32), z(32);
  CHECK_THAT(kernel(Shape{}, out, x, y, z).fault, ContainsSubstring("not in its member mask"));
}

TEST_CASE("shfl.sync waits for diverged lanes of its mask", "[exchange]") {
  const Kernel kernel = kernel_of(R"(
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
    Words out(64), x(random_words(2, 1000)), y(32), z(32);
    CHECK(kernel(Shape{}, out, x, y, z).is_clean());
    for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == x[i ^ 16] + (i < 16 ? 1 : 0));
  }
}

TEST_CASE("member masks in one instruction are independent", "[exchange]") {
  // Like the tiles of cooperative groups: %y is the mask of the half.
  const Kernel kernel = kernel_of(R"(
    setp.ne.u32 %q, %x, 0;
    setp.lt.u32 %s, %t, 16;
    selp.b32 %m, 0xffff, 0xffff0000, %s;
    vote.sync.ballot.b32 %r, %q, %m;
    vote.sync.all.pred %s, %q, %m;
    redux.sync.add.s32 %z, %x, %m;
    shl.b32 %z, %z, 24;
    xor.b32 %r, %r, %z;
  )");
  Words out(64), x(32), y(32), z(32);
  for (uint32_t i = 0; i < 32; i++) x[i] = i < 16 ? 1 : i % 2;
  CHECK(kernel(Shape{}, out, x, y, z).is_clean());
  for (uint32_t i = 0; i < 32; i++) {
    CHECK(out[i] == (i < 16 ? 0xffff ^ 16u << 24 : 0xaaaa0000 ^ 8u << 24));
    CHECK(out[32 + i] == (i < 16));
  }
}

TEST_CASE("an incomplete member mask does not block other masks", "[exchange]") {
  // Lanes 16 to 23 wait for 24 to 31, which wait for an action of lane 0 after its vote.
  const Kernel kernel = kernel_of(R"(
    .reg .pred %low;
    setp.lt.u32 %low, %t, 16;
    selp.b32 %m, 0xffff, 0xffff0000, %low;
    setp.ge.u32 %q, %t, 24;
    @%q bra late;
  vote:
    vote.sync.ballot.b32 %r, %s, %m;
    @!%low bra end;
    setp.eq.u32 %q, %t, 0;
    mov.u32 %z, 1;
    @%q st.volatile.global.u32 [%p3], %z;
    bra.uni end;
  late:
    ld.volatile.global.u32 %z, [%p3];
    setp.eq.u32 %q, %z, 0;
    @%q bra late;
    vote.sync.ballot.b32 %r, !%s, %m;
  end:
  )");
  Words out(64), x(32), y(32), z(32);
  const WithOptions with([](Options &o) { o.max_instructions = 1'000'000; });
  const Outcome outcome = kernel(Shape{}, out, x, y, z);
  // The two votes are different instructions, for which hardware does not guarantee convergence.
  CHECK(z[0] == 1);
  CHECK_THAT(outcome.fault, ContainsSubstring("deadlock"));
}

TEST_CASE("vote.sync combines predicates", "[exchange]") {
  const std::string mode = GENERATE(as<std::string>(), "all", "any", "uni");
  const std::string vote =
      "setp.ne.u32 %q, %x, 0;\nvote." + GENERATE_COPY("sync." + mode, mode + ".sync") + ".pred ";
  const Kernel kernel = kernel_of(vote + "%s, %q, -1;\n");
  const Kernel negated = kernel_of(vote + "%s, !%q, -1;\n");
  for (const uint32_t num_true : {0u, 1u, 31u, 32u}) {
    Words out(64), x(32), y(32), z(32);
    for (uint32_t i = 0; i < num_true; i++) x[i] = 1;
    const auto expected = [&](uint32_t n) -> uint32_t {
      return mode == "all" ? n == 32 : mode == "any" ? n > 0 : n == 0 || n == 32;
    };
    CHECK(kernel(Shape{}, out, x, y, z).is_clean());
    CHECK(out[32] == expected(num_true));
    CHECK(out[63] == expected(num_true));
    CHECK(negated(Shape{}, out, x, y, z).is_clean());
    CHECK(out[32] == expected(32 - num_true));
  }
}

TEST_CASE("activemask and a constant ballot return the active lanes", "[exchange]") {
  const Kernel kernel = kernel_of(R"(
    setp.lt.u32 %q, %t, 9;
    @%q bra low;
    activemask.b32 %r;
    bra.uni end;
  low:
    vote.sync.ballot.b32 %r, 1, 0x1ff;
  end:
  )");
  Words out(64), x(32), y(32), z(32);
  CHECK(kernel(Shape{}, out, x, y, z).is_clean());
  for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i < 9 ? 0x1ff : 0xfffffe00));
}

TEST_CASE("match.any and match.all compare lanes", "[exchange]") {
  const Kernel any = kernel_of("match.any.sync.b32 %r, %x, -1;\n");
  const Kernel all = kernel_of("match.all.sync.b32 %r|%s, %x, -1;\n");
  const Kernel wide = kernel_of(R"(
    .reg .b64 %w;
    mov.b64 %w, {%y, %x};
    match.any.sync.b64 %r, %w, -1;
  )");
  for (const uint32_t num_values : {1u, 3u, 1000u}) {
    Words out(64), x(random_words(num_values, num_values)), y(32), z(32);
    const auto same_as = [&](uint32_t i) {
      uint32_t mask = 0;
      for (uint32_t j = 0; j < 32; j++) mask |= uint32_t{x[j] == x[i]} << j;
      return mask;
    };
    CHECK(any(Shape{}, out, x, y, z).is_clean());
    for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == same_as(i));
    CHECK(wide(Shape{}, out, x, y, z).is_clean());
    for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == same_as(i));
    CHECK(all(Shape{}, out, x, y, z).is_clean());
    for (uint32_t i = 0; i < 32; i++) {
      CHECK(out[i] == (num_values == 1 ? 0xffffffff : 0));
      CHECK(out[32 + i] == (num_values == 1));
    }
  }
}

TEST_CASE("redux.sync reduces over lanes", "[exchange]") {
  using Reduce = std::function<uint32_t(uint32_t, uint32_t)>;
  const auto as_signed = [](uint32_t x) { return static_cast<int32_t>(x); };
  const std::vector<std::pair<std::string, Reduce>> operations = {
      {"add.u32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"add.s32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"min.u32", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"max.u32", [](uint32_t a, uint32_t b) { return std::max(a, b); }},
      {"min.s32", [&](uint32_t a, uint32_t b) { return as_signed(a) < as_signed(b) ? a : b; }},
      {"max.s32", [&](uint32_t a, uint32_t b) { return as_signed(a) > as_signed(b) ? a : b; }},
      {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
      {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},
      {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }}};
  for (const auto &[name, f] : operations) {
    INFO(name);
    // Lanes 3 to 30 participate.
    const Kernel kernel =
        kernel_of("add.u32 %y, %t, -3;\nsetp.lt.u32 %q, %y, 28;\n@%q redux.sync." + name +
                  " %r, %x, 0x7ffffff8;\n");
    Words out(64), x(random_words(5, 0xffffffff)), y(32), z(32);
    uint32_t expected = x[3];
    for (uint32_t i = 4; i <= 30; i++) expected = f(expected, x[i]);
    CHECK(kernel(Shape{}, out, x, y, z).is_clean());
    for (uint32_t i = 0; i < 32; i++) CHECK(out[i] == (i >= 3 && i <= 30 ? expected : 0xabcd));
  }
}

TEST_CASE("elect.sync elects one lane", "[exchange]") {
  const Kernel kernel = kernel_of(R"(
    setp.ge.u32 %q, %t, 6;
    @%q elect.sync %r|%s, 0xffffffc0;
  )");
  Words out(64), x(32), y(32), z(32);
  CHECK(kernel(Shape{}, out, x, y, z).is_clean());
  for (uint32_t i = 0; i < 32; i++) {
    CHECK(out[i] == (i >= 6 ? 6 : 0xabcd));
    CHECK(out[32 + i] == (i == 6));
  }
}

}  // namespace
}  // namespace softgpu::test
