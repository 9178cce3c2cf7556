// cp.async: completion, contents of the destination before it, and groups.
#include <numeric>
#include <set>

#include "softgpu/machine/shared_memory.h"
#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr size_t kLanes = 32;

/// Each thread copies 16 bytes from %q to %s.  LOOK writes the first word of the destination to the
/// next of p1's rows of 32 numbers.
std::string copies(std::string body) {
  int row = 0;
  for (size_t at; (at = body.find("LOOK")) != std::string::npos; row++)
    body.replace(
        at, 4, "ld.shared.u32 %x, [%s]; st.global.u32 [%o+" + std::to_string(128 * row) + "], %x");
  return body_text(2, R"(
    .reg .b64 %q, %o; .reg .b32 %s, %x, %n; .reg .pred %g;
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

}  // namespace

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

}  // namespace softgpu::test
