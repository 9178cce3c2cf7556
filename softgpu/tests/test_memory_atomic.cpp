// atom and red: recorded results in global and shared memory, order of lanes, several host threads.
#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "softgpu/machine/shared_memory.h"
#include "softgpu/tests/harness.h"
#include "softgpu/tests/recorded.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr size_t kLanes = 32;

struct AtomicCase {
  const char *operations;
  int bits;
  const char *mask, *set;  ///< random bits of all operands, and their constant bits
  uint32_t atom, red;      ///< hashes; 0: no such operation
  const char *third = "";  ///< second operand
};
constexpr AtomicCase kCases[] = {
    {"<add.u32/add.s32/inc.u32/dec.u32/min.u32/min.s32/max.u32/max.s32/and.b32/or.b32/xor.b32>", 32,
     "-1", "0", 0x6FC9EBA0, 0xC4D2C8A5},
    {"<add.u64/min.u64/min.s64/max.u64/max.s64/and.b64/or.b64/xor.b64>", 64, "-1", "0", 0xCBA23D49,
     0x3E43C2C0},
    {"exch.b32", 32, "-1", "0", 0x07172F98, 0},
    {"exch.b64", 64, "-1", "0", 0x33095243, 0},
    {"cas.b32", 32, "-1", "0", 0x203E88DA, 0, ", %b"},
    {"cas.b64", 64, "-1", "0", 0x03EFD423, 0, ", %b"},
    {"cas.b16", 16, "-1", "0", 0x4D4F88DA, 0, ", %b"},
    {"add.f32", 32, "0x81FFFFFF", "0x3E000000", 0xD63D2A20, 0x4746AFC5},
    {"add.f64", 64, "0x803FFFFFFFFFFFFF", "0x3FC0000000000000", 0x56340B93, 0xE40FD365},
    {"add.noftz.f16", 16, "0x8FFF", "0x3000", 0xE9ABB1BC, 0x63083A45},
    {"add.noftz.bf16", 16, "0x81FF", "0x3E00", 0xA8EE859C, 0x9DECB785},
    {"add.noftz.f16x2", 32, "0x8FFF8FFF", "0x30003000", 0x68B6D230, 0xA13F6B85},
    {"add.noftz.bf16x2", 32, "0x81FF81FF", "0x3E003E00", 0x530A93A0, 0xC2A959C5},
};

TEST_CASE("atom and red have the recorded results in global, generic and shared memory") {
  for (const AtomicCase &c : kCases)
    for (const std::string space : {".global", "", ".shared"})
      for (const bool is_red : {false, true}) {
        if ((is_red ? c.red : c.atom) == 0) continue;
        const std::string bits = std::to_string(c.bits), r = c.bits == 64   ? "%l"
                                                             : c.bits == 32 ? "%w"
                                                                            : "%h";
        const std::string at = space == ".shared" ? "[%w22]" : "[%l7]";
        // Four cells per warp, with the operands %c of lanes 0 to 3; some operands are small.
        std::string text = R"(
          .shared .align 8 .b8 cells[1024];
          and.b32 %w20, %t, 0x3E3; mad.wide.u32 %l7, %w20, 40, %p1; add.u64 %l7, %l7, 32;
          and.b32 %w20, %lane, 3; shr.u32 %w21, %t, 5; mad.lo.u32 %w20, %w21, 4, %w20;
          mov.u32 %w22, cells; mad.lo.u32 %w22, %w20, 8, %w22;
        )";
        for (const std::string x : {"%a", "%b", "%c"}) {
          const std::string to = " " + x + ", " + x + ", ";
          text += "@%executes and.b" + bits + to + "7; and.b" + bits + to + c.mask + "; or.b" +
                  bits + to + c.set + ";\n";
        }
        text += "setp.lt.u32 %q0, %lane, 4; @%q0 st" + space + ".b" + bits + " " + at +
                ", %c; bar.warp.sync -1;\n";
        text += "mov.b" + bits + " " + r + "1, 0;\n" + (is_red ? "red" : "atom") + space + "." +
                c.operations + (is_red ? " " : " " + r + "1, ") + at + ", %a" + c.third +
                ";\nbar.warp.sync -1;\n";
        text += "ld" + space + ".b" + bits + " " + r + "2, " + at + "; mad.lo.u" + bits + " %d, " +
                r + "1, 31, " + r + "2;";
        const std::string signature(4, c.bits == 64 ? '8' : c.bits == 32 ? '4' : '2');
        const Recorded row{signature.c_str(), text.c_str(), is_red ? c.red : c.atom};
        check_recorded({&row, 1});
      }
}

TEST_CASE("fp32 atomics flush subnormals in global but not in shared memory") {
  const Kernel kernel(body_text(1, R"(
    .reg .f32 %x; .reg .b32 %s; .shared .align 4 .f32 sum;
    atom.global.add.f32 %x, [%p0], 0f80000001;
    mov.u32 %s, sum; mov.f32 %x, 0f00000001; st.shared.f32 [%s], %x;
    red.shared.add.f32 [%s], 0f00000001; ld.shared.f32 %x, [%s]; st.global.f32 [%p0+4], %x;
    atom.global.add.f32 %x, [%p0+8], 0f80800000; ret;)"));
  Buffer<uint32_t> memory(std::vector<uint32_t>{0x80000001, 0, 0x00800001});
  REQUIRE(kernel({.threads = {1, 1, 1}}, memory).is_clean());
  REQUIRE(memory[0] == 0x80000000);
  REQUIRE(memory[1] == 2);
  REQUIRE(memory[2] == 0);
}

TEST_CASE("a seed randomizes the order of lanes in an atomic") {
  const Kernel kernel(body_text(2, R"(
    atom.global.add.u32 %x, [%p0], 1; shl.b64 %o, %T, 2; add.s64 %o, %p1, %o;
    st.global.u32 [%o], %x; ret;)"));
  const auto order = [&](uint64_t seed) {
    const WithOptions with([&](Options &o) { o.seed = seed; });
    Buffer<uint32_t> counter(1), out(kLanes);
    REQUIRE(kernel({}, counter, out).is_clean());
    REQUIRE(counter[0] == kLanes);
    return out.values();
  };
  const std::vector<uint32_t> plain = order(0);
  REQUIRE(std::is_sorted(plain.begin(), plain.end()));
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    std::vector<uint32_t> numbers = order(seed);
    orders.insert(numbers);
    std::sort(numbers.begin(), numbers.end());
    REQUIRE(numbers == plain);
  }
  REQUIRE(orders.size() > 1);
}

TEST_CASE("atomics are not lost between host threads") {
  const WithOptions with([](Options &o) { o.num_threads = 4; });
  const Kernel kernel(body_text(1, R"(
    .reg .f32 %f;
    mov.u32 %i, 0;
  LOOP:
    red.global.add.u32 [%p0], 1; atom.global.add.f32 %f, [%p0+4], 0f3F800000;
    red.global.add.noftz.f16x2 [%p0+8], 0x3C000000; atom.global.inc.u32 %x, [%p0+12], 0xFFFFFFFF;
    add.u32 %i, %i, 1; setp.lt.u32 %g, %i, 100; @%g bra LOOP; ret;)"));
  Buffer<uint32_t> memory(4);
  REQUIRE(kernel({.blocks = {64, 1, 1}}, memory).is_clean());
  constexpr uint32_t kTimes = 64 * 32 * 100;
  REQUIRE(memory[0] == kTimes);
  REQUIRE(std::bit_cast<float>(memory[1]) == kTimes);
  REQUIRE(memory[2] == 0x68000000);  // 2048, at which adding 1 to an fp16 has no effect
  REQUIRE(memory[3] == kTimes);
}

// ---- cp.async

/// Each thread copies 16 bytes from %q to %s.  LOOK writes the first word of the destination to the
/// next of p1's rows of 32 numbers.
std::string copies(std::string body) {
  int row = 0;
  for (size_t at; (at = body.find("LOOK")) != std::string::npos; row++)
    body.replace(
        at, 4, "ld.shared.u32 %x, [%s]; st.global.u32 [%o+" + std::to_string(128 * row) + "], %x");
  return body_text(2, R"(
    .reg .b64 %q; .reg .b32 %s;
    .shared .align 16 .b8 smem[1024];
    mov.u32 %s, smem; shl.b32 %x, %t, 4; add.u32 %s, %s, %x;
    shl.b64 %q, %T, 4; add.s64 %q, %p0, %q; shl.b64 %o, %T, 2; add.s64 %o, %p1, %o;
    )" + body + " ret;");
}

std::vector<uint32_t> input() {
  std::vector<uint32_t> values(8 * kLanes);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

/// Returns the values of each LOOK in every lane.
std::vector<std::vector<uint32_t>> looks(const std::string &body, size_t count) {
  const Kernel kernel(copies(body));
  Buffer<uint32_t> in(input()), out(count * kLanes);
  REQUIRE(kernel({}, in, out).is_clean());
  std::vector<std::vector<uint32_t>> rows;
  for (size_t r = 0; r < count; r++)
    rows.emplace_back(out.values().begin() + static_cast<ptrdiff_t>(r * kLanes),
                      out.values().begin() + static_cast<ptrdiff_t>((r + 1) * kLanes));
  return rows;
}

std::vector<uint32_t> all(uint32_t value) {
  return std::vector<uint32_t>(kLanes, value);
}
/// Returns the first word of each lane's 16 bytes, plus a number.
std::vector<uint32_t> firsts(uint32_t offset = 0) {
  std::vector<uint32_t> values(kLanes);
  for (uint32_t l = 0; l < kLanes; l++) values[l] = 1 + 4 * l + offset;
  return values;
}

constexpr const char *kCopy = "cp.async.cg.shared.global [%s], [%q], 16; ";

TEST_CASE("cp.async completes at its wait") {
  const std::string copy = kCopy;
  auto seen = looks(copy + "LOOK; cp.async.commit_group; LOOK; cp.async.wait_group 0; LOOK;", 3);
  REQUIRE(seen[0] == all(kPoison));
  REQUIRE(seen[1] == all(kPoison));
  REQUIRE(seen[2] == firsts());
  seen = looks(copy + "LOOK; cp.async.wait_all; LOOK;", 2);
  REQUIRE(seen[0] == all(kPoison));
  REQUIRE(seen[1] == firsts());
  // Uncommitted copies are not waited for.
  seen = looks(
      copy + "cp.async.wait_group 0; LOOK; cp.async.commit_group; cp.async.wait_group 0; LOOK;", 2);
  REQUIRE(seen[0] == all(kPoison));
  REQUIRE(seen[1] == firsts());
}

TEST_CASE("wait_group excludes the newest groups") {
  const std::string next = "cp.async.commit_group; add.u32 %s, %s, 512; ";
  const std::string back = "sub.u32 %s, %s, 512; LOOK; add.u32 %s, %s, 512; LOOK; ";
  const auto seen =
      looks(kCopy + next + "cp.async.ca.shared.global [%s], [%q+4], 4; cp.async.commit_group;" +
                "cp.async.wait_group 2;" + back + "cp.async.wait_group 1;" + back +
                "cp.async.wait_group 0;" + back,
            6);
  REQUIRE(seen[0] == all(kPoison));
  REQUIRE(seen[1] == all(kPoison));
  REQUIRE(seen[2] == firsts());
  REQUIRE(seen[3] == all(kPoison));
  REQUIRE(seen[4] == firsts());
  REQUIRE(seen[5] == firsts(1));
}

TEST_CASE("a pending cp.async poisons its destination") {
  const auto seen = looks(
      std::string("st.shared.u32 [%s], 77; LOOK; ") + kCopy + "LOOK; cp.async.wait_all; LOOK;", 3);
  REQUIRE(seen[0] == all(77));
  REQUIRE(seen[1] == all(kPoison));
  REQUIRE(seen[2] == firsts());
}

TEST_CASE("cp.async waits are per lane") {
  const auto seen = looks(std::string(kCopy) + "setp.lt.u32 %g, %t, 10; cp.async.commit_group;" +
                              "@%g cp.async.wait_group 0; LOOK; cp.async.wait_all; LOOK;",
                          2);
  std::vector<uint32_t> some = firsts();
  std::fill(some.begin() + 10, some.end(), kPoison);
  REQUIRE(seen[0] == some);
  REQUIRE(seen[1] == firsts());
}

TEST_CASE("cp.async fills bytes that it does not read with 0") {
  const Kernel kernel(body_text(2, R"(
    .reg .b64 %q; .reg .b32 %s, %x, %v<4>; .shared .align 16 .b8 smem[512];
    mov.u32 %s, smem; shl.b32 %x, %t, 4; add.u32 %s, %s, %x;
    cp.async.cg.shared.global.L2::128B [%s], [%p0], 16, %t; cp.async.wait_all;
    ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%s];
    shl.b64 %q, %T, 4; add.s64 %q, %p1, %q; st.global.v4.u32 [%q], {%v0, %v1, %v2, %v3}; ret;)"));
  Buffer<std::byte> in(16, std::byte{0xAB}), out(17 * 16);
  REQUIRE(kernel({.threads = {17, 1, 1}}, in, out).is_clean());
  for (size_t l = 0; l <= 16; l++)
    for (size_t b = 0; b < 16; b++) REQUIRE(out[16 * l + b] == (b < l ? in[b] : std::byte{0}));
}

TEST_CASE("cp.async supports all sizes and ignore-src") {
  const std::string size = GENERATE("4", "8", "16");
  const auto seen =
      looks("cp.async.ca.shared.global [%s], [%q], " + size + "; cp.async.wait_all; LOOK;" +
                "setp.ge.u32 %g, %t, 16; cp.async.ca.shared.global [%s], [%q], " + size +
                ", %g; cp.async.wait_all; LOOK;",
            2);
  REQUIRE(seen[0] == firsts());
  std::vector<uint32_t> half = firsts();
  std::fill(half.begin() + 16, half.end(), 0);
  REQUIRE(seen[1] == half);
}

TEST_CASE("cp.async may complete early or at random") {
  const std::string body = std::string(kCopy) + "LOOK; cp.async.wait_all; LOOK;";
  {
    const WithOptions with([](Options &o) { o.completion = Completion::kEarly; });
    REQUIRE(looks(body, 2)[0] == firsts());
  }
  const Kernel kernel(copies(kCopy + std::string(R"(
      mov.u32 %n, 0;
    LOOP:
      add.u32 %n, %n, 1; setp.lt.u32 %g, %n, 40; @%g bra LOOP;
      LOOK; cp.async.wait_all; LOOK;)")));
  std::set<uint32_t> numbers_landed;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    const WithOptions with([&](Options &o) {
      o.seed = seed;
      o.completion = Completion::kRandom;
      o.quantum = 3;
    });
    Buffer<uint32_t> in(input()), out(2 * kLanes);
    REQUIRE(kernel({}, in, out).is_clean());
    uint32_t num_landed = 0;
    for (size_t l = 0; l < kLanes; l++) {
      REQUIRE((out[l] == firsts()[l] || out[l] == kPoison));
      REQUIRE(out[kLanes + l] == firsts()[l]);
      num_landed += out[l] != kPoison;
    }
    numbers_landed.insert(num_landed);
  }
  REQUIRE(numbers_landed.size() > 1);
}

TEST_CASE("a kernel may end with pending cp.async") {
  looks(std::string(kCopy) + "cp.async.commit_group;", 0);
}

}  // namespace
}  // namespace softgpu::test
