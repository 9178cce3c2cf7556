// ld and st: all types, vectors and state spaces, any addresses, and inactive lanes.
#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr int kLanes = 32;
constexpr size_t kBytes = 4096;  // size of the accessed memory
constexpr uint64_t kBefore = 0x5A5A5A5A5A5A5A5A;

/// Representation of a type in memory and in a register.
struct TypeCase {
  const char *type;
  int bytes;
  bool is_signed;
  int register_bits;  // 16, 32 or 64
};
constexpr TypeCase kTypes[] = {
    {"u8", 1, false, 16},  {"s8", 1, true, 16},   {"b8", 1, false, 32},  {"s8", 1, true, 32},
    {"s8", 1, true, 64},   {"u16", 2, false, 16}, {"s16", 2, true, 16},  {"u16", 2, false, 32},
    {"s16", 2, true, 32},  {"b16", 2, false, 64}, {"s16", 2, true, 64},  {"u32", 4, false, 32},
    {"s32", 4, true, 32},  {"f32", 4, false, 32}, {"u32", 4, false, 64}, {"s32", 4, true, 64},
    {"b64", 8, false, 64}, {"f64", 8, false, 64},
};

std::string str(int n) {
  return std::to_string(n);
}

/// Returns the register after a load of these bytes as 64 bits; bits above the register are 0.
uint64_t extended(const TypeCase &c, const std::byte *from) {
  uint64_t value = 0;
  std::memcpy(&value, from, static_cast<size_t>(c.bytes));
  const int shift = 64 - 8 * c.bytes;
  if (c.is_signed) value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
  return c.register_bits == 64 ? value : value & ((uint64_t{1} << c.register_bits) - 1);
}

std::vector<std::byte> random_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte &b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

/// Offsets of the lanes in multiples of `bytes`.
using Offsets = std::array<uint64_t, kLanes>;
std::vector<std::pair<std::string, Offsets>> patterns(uint64_t bytes) {
  Offsets consecutive, backwards, strided, same, shuffled, almost;
  std::mt19937 random(7);
  for (uint64_t l = 0; l < kLanes; l++) {
    consecutive[l] = l * bytes;
    backwards[l] = (kLanes - 1 - l) * bytes;
    strided[l] = l * 128;
    same[l] = 5 * bytes;
    shuffled[l] = random() % (kBytes / bytes) * bytes;
    almost[l] = (l == 31 ? 40 : l) * bytes;
  }
  return {{"consecutive", consecutive}, {"backwards", backwards},
          {"strided", strided},         {"same", same},
          {"shuffled", shuffled},       {"almost", almost}};
}
constexpr uint32_t kMasks[] = {~0u, 0x1, 0x80000000, 0x0FF0A5C3};

/// Returns the operand for n elements: %v0, or {%v0, %v1}.
std::string registers(int n) {
  if (n == 1) return "%v0";
  std::string text = "{%v0";
  for (int e = 1; e < n; e++) text += ", %v" + str(e);
  return text + "}";
}

/// Prologue of the kernels: %a is the lane's number of p0, %g whether it is active, from the bits
/// in p1.
std::string begin(const TypeCase &c) {
  return R"(
    .reg .b64 %a, %o, %w; .reg .b32 %m, %s, %x; .reg .b16 %zero; .reg .pred %g;
    .reg .b)" +
         str(c.register_bits) + R"( %v<4>;
    mov.u16 %zero, 0;
    shl.b64 %o, %T, 3; add.s64 %a, %p0, %o; ld.global.u64 %a, [%a];
    ld.global.u32 %m, [%p1]; shr.u32 %m, %m, %t; and.b32 %m, %m, 1; setp.ne.u32 %g, %m, 0;
  )";
}
}  // namespace

TEST_CASE("ld loads all types from global memory") {
  const int vector = GENERATE(1, 2, 4);
  const TypeCase c = GENERATE(from_range(std::begin(kTypes), std::end(kTypes)));
  if (c.bytes * vector > 16) return;
  const bool is_generic = GENERATE(false, true);
  const std::string name = std::string(is_generic ? "ld" : "ld.global") +
                           (vector == 1 ? "" : ".v" + str(vector)) + "." + c.type;
  std::string body = begin(c);
  const char *const init = c.register_bits == 16   ? "mov.b16 %v0, 0x5A5A;"
                           : c.register_bits == 32 ? "mov.b32 %v0, 0x5A5A5A5A;"
                                                   : "mov.b64 %v0, 0x5A5A5A5A5A5A5A5A;";
  for (int e = 0; e < vector; e++) {
    std::string one = init;
    one.replace(one.find("%v0"), 3, "%v" + str(e));
    body += one;
  }
  body += "@%g " + name + " " + registers(vector) + ", [%a+-16];\n";
  body += "mul.lo.u64 %o, %T, " + str(8 * vector) + "; add.s64 %o, %p2, %o;\n";
  for (int e = 0; e < vector; e++) {
    const std::string v = "%v" + str(e);
    // The upper half of a 16-bit register must be 0 when two are packed.
    if (c.register_bits == 16) body += "mov.b32 %x, {" + v + ", %zero}; cvt.u64.u32 %w, %x;\n";
    if (c.register_bits == 32) body += "cvt.u64.u32 %w, " + v + ";\n";
    if (c.register_bits == 64) body += "mov.b64 %w, " + v + ";\n";
    body += "st.global.b64 [%o+" + str(8 * e) + "], %w;\n";
  }
  const Kernel kernel(body_text(3, body + "ret;"));

  const Buffer<std::byte> memory(random_bytes(kBytes, 1)), other(random_bytes(kBytes, 2));
  const auto bytes = static_cast<uint64_t>(c.bytes) * static_cast<uint64_t>(vector);
  for (const auto &[pattern, offsets] : patterns(bytes))
    for (const uint32_t mask : kMasks)
      for (const bool uses_both : {false, true}) {
        INFO(name << " into " << c.register_bits << " bits, " << pattern << ", lanes " << std::hex
                  << mask);
        Buffer<uint64_t> addresses(kLanes), out(static_cast<size_t>(kLanes * vector));
        Buffer<uint32_t> lanes(std::vector{mask});
        const auto source = [&](size_t l) -> const Buffer<std::byte> & {
          return uses_both && l % 3 == 1 ? other : memory;
        };
        for (size_t l = 0; l < kLanes; l++)
          addresses[l] = mask >> l & 1 ? source(l).address() + offsets[l] + 16 : 0;
        const Outcome outcome = kernel({}, addresses, lanes, out);
        REQUIRE(outcome.is_clean());
        const uint64_t before =
            c.register_bits == 64 ? kBefore : kBefore & ((uint64_t{1} << c.register_bits) - 1);
        for (size_t l = 0; l < kLanes; l++)
          for (size_t e = 0; e < static_cast<size_t>(vector); e++) {
            INFO("lane " << l << " element " << e);
            const std::byte *at = &source(l)[offsets[l] + e * static_cast<size_t>(c.bytes)];
            REQUIRE(out[l * static_cast<size_t>(vector) + e] ==
                    (mask >> l & 1 ? extended(c, at) : before));
          }
      }
}

TEST_CASE("st stores all types to global memory") {
  const int vector = GENERATE(1, 2, 4);
  const TypeCase c = GENERATE(from_range(std::begin(kTypes), std::end(kTypes)));
  if (c.bytes * vector > 16) return;
  const std::string name =
      std::string("st.global") + (vector == 1 ? "" : ".v" + str(vector)) + "." + c.type;
  std::string body = begin(c);
  body += "mul.lo.u64 %o, %T, " + str(8 * vector) + "; add.s64 %o, %p2, %o;\n";
  for (int e = 0; e < vector; e++)
    body += "ld.global.b" + str(c.register_bits) + " %v" + str(e) + ", [%o+" + str(8 * e) + "];\n";
  body += "@%g " + name + " [%a+-16], " + registers(vector) + ";\n";
  const Kernel kernel(body_text(3, body + "ret;"));

  const auto bytes = static_cast<uint64_t>(c.bytes) * static_cast<uint64_t>(vector);
  for (const auto &[pattern, offsets] : patterns(bytes))
    for (const uint32_t mask : kMasks) {
      INFO(name << " from " << c.register_bits << " bits, " << pattern << ", lanes " << std::hex
                << mask);
      Buffer<std::byte> memory(random_bytes(kBytes, 3));
      std::vector<std::byte> expected = memory.values();
      Buffer<uint64_t> addresses(kLanes), values(static_cast<size_t>(kLanes * vector));
      Buffer<uint32_t> lanes(std::vector{mask});
      std::mt19937_64 random(11);
      for (uint64_t &v : values.values()) v = random();
      for (size_t l = 0; l < kLanes; l++) {
        addresses[l] = memory.address() + offsets[l] + 16;
        if ((mask >> l & 1) == 0) continue;
        for (size_t e = 0; e < static_cast<size_t>(vector); e++)
          std::memcpy(&expected[offsets[l] + e * static_cast<size_t>(c.bytes)],
                      &values[l * static_cast<size_t>(vector) + e], static_cast<size_t>(c.bytes));
      }
      REQUIRE(kernel({}, addresses, lanes, values).is_clean());
      REQUIRE(memory.values() == expected);
    }
}

namespace {

/// Returns a kernel that gives each lane 8 bytes of p2 in a state space, exchanges them between
/// lanes there, and writes the result to p3.  p0 has offsets in multiples of 8.
std::string through(const std::string &space, const std::string &type, const std::string &write,
                    const std::string &read) {
  const std::string r = type == "u64" ? "%d" : "%x";
  return body_text(4, R"(
    .reg .b64 %a, %o, %d, %q, %base; .reg .b32 %x, %n, %s, %b;
    )" + space + R"(
    shl.b64 %o, %T, 3; shl.b32 %n, %t, 3;
    add.s64 %a, %p2, %o; ld.global.)" +
                          type + " " + r + R"(, [%a];
    add.s64 %q, %base, %o; add.s32 %s, %b, %n;
    )" + write + R"(
    add.s64 %a, %p0, %o; ld.global.u64 %q, [%a]; cvt.u32.u64 %s, %q;
    add.s64 %q, %base, %q; add.s32 %s, %b, %s;
    bar.sync 0;
    )" + read + R"(
    add.s64 %a, %p3, %o; st.global.)" +
                          type + " [%a], " + r + "; ret;");
}

void check_through(const std::string &text, bool is_wide, bool own = false) {
  const Kernel kernel(text);
  for (const auto &[pattern, offsets] : patterns(8)) {
    INFO(pattern);
    Buffer<uint64_t> addresses(kLanes), in(kLanes), out(kLanes);
    Buffer<uint32_t> unused(1);
    for (size_t l = 0; l < kLanes; l++) {
      addresses[l] = own ? 8 * l : offsets[l] % 256;
      in[l] = 0x0123456789ABCDEF * (l + 1);
    }
    REQUIRE(kernel({}, addresses, unused, in, out).is_clean());
    for (size_t l = 0; l < kLanes; l++) {
      const uint64_t value = in[addresses[l] / 8];
      REQUIRE(out[l] == (is_wide ? value : value & 0xFFFFFFFF));
    }
  }
}

constexpr const char *kShared = R"(
  .shared .align 16 .b8 pad[32]; .shared .align 16 .b8 array[256];
  mov.u32 %b, array; cvta.shared.u64 %base, array;)";
constexpr const char *kLocal = R"(
  .local .align 16 .b8 pad[32]; .local .align 16 .b8 array[256];
  mov.u32 %b, array; cvta.local.u64 %base, array;)";

}  // namespace

TEST_CASE("shared memory is accessible by any kind of address") {
  check_through(through(kShared, "u64", "st.shared.u64 [%s], %d;", "ld.shared.u64 %d, [%s];"),
                true);
  check_through(through(kShared, "u32", "st.shared.u32 [%s], %x;", "ld.shared.u32 %x, [%s];"),
                false);
  check_through(through(kShared, "u32", "st.volatile.shared.u32 [%s], %x;",
                        "ld.relaxed.cluster.shared::cluster.u32 %x, [%s];"),
                false);
  check_through(through(kShared, "u64", "st.u64 [%q], %d;", "ld.shared::cta.u64 %d, [%s];"), true);
  check_through(through(kShared, "u64", "st.shared.u64 [%s], %d;", "ld.u64 %d, [%q];"), true);
}

TEST_CASE("local memory is private to a thread") {
  check_through(through(kLocal, "u64", "st.local.u64 [%s], %d;", "ld.local.u64 %d, [%s];"), true,
                true);
  check_through(through(kLocal, "u64", "st.u64 [%q], %d;", "ld.local.u64 %d, [%s];"), true, true);
  check_through(through(kLocal, "u32", "st.local.u32 [%s], %x;", "ld.u32 %x, [%q];"), false, true);
}

TEST_CASE("a load may overwrite its address register") {
  const Kernel kernel(body_text(2, R"(
    .reg .b64 %b;
    shl.b64 %o, %T, 4; add.s64 %a, %p0, %o;
    ld.global.v2.u64 {%b, %a}, [%a];
    add.s64 %o, %p1, %o; st.global.v2.u64 [%o], {%a, %b}; ret;)"));
  Buffer<uint64_t> in(64), out(64);
  std::iota(in.values().begin(), in.values().end(), 100);
  REQUIRE(kernel({}, in, out).is_clean());
  for (size_t l = 0; l < kLanes; l++) {
    REQUIRE(out[2 * l] == 101 + 2 * l);
    REQUIRE(out[2 * l + 1] == 100 + 2 * l);
  }
}

TEST_CASE("parameters are readable by symbol and by address") {
  const Kernel kernel(module_text(".param .u64 out, .param .align 16 .b8 s[64]", R"(
    .reg .b64 %o, %a, %T; .reg .b32 %t, %x, %y, %v<4>;
    mov.u32 %t, %tid.x; cvt.u64.u32 %T, %t;
    ld.param.u64 %o, [out]; shl.b64 %a, %T, 3; add.s64 %o, %o, %a;
    ld.param.v4.b32 {%v0, %v1, %v2, %v3}, [s+16];
    mov.b64 %a, s; and.b64 %T, %T, 15; shl.b64 %T, %T, 2; add.s64 %a, %a, %T;
    ld.param.u32 %y, [%a];
    st.v2.u32 [%o], {%v2, %y}; ret;)"));
  std::array<uint32_t, 16> s;
  std::iota(s.begin(), s.end(), 1000);
  Buffer<uint32_t> out(64);
  REQUIRE(kernel({}, out, s).is_clean());
  for (size_t l = 0; l < kLanes; l++) {
    REQUIRE(out[2 * l] == 1006);
    REQUIRE(out[2 * l + 1] == 1000 + l % 16);
  }
}

TEST_CASE("constants and module variables are accessible") {
  const Kernel kernel(module_text(".param .u64 out", R"(
    .reg .b64 %o; .reg .b32 %x, %y;
    ld.param.u64 %o, [out]; ld.const.u32 %x, [table+4]; ld.global.u32 %y, [counter];
    add.u32 %y, %y, %x; st.global.u32 [counter], %y; st.global.u32 [%o], %y; ret;)",
                                  ".const .align 4 .u32 table[2] = {5, 7};\n"
                                  ".global .align 4 .u32 counter = 30;\n"));
  Buffer<uint32_t> out(1);
  REQUIRE(kernel({}, out).is_clean());
  REQUIRE(out[0] == 37);
  REQUIRE(kernel({}, out).is_clean());
  REQUIRE(out[0] == 44);
}

TEST_CASE("fences, hints and cache policies have no effect on values") {
  const Kernel kernel(body_text(2, R"(
    .reg .b64 %policy;
    membar.gl; membar.cta; membar.sys; fence.sc.gpu; fence.acq_rel.cluster;
    prefetch.global.L2 [%p0]; prefetch.global.L1 [%p0]; nanosleep.u32 100;
    griddepcontrol.wait; griddepcontrol.launch_dependents;
    createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;
    ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %x, [%p0], %policy;
    st.global.L1::evict_last.L2::cache_hint.u32 [%p1], %x, %policy;
    ld.acquire.gpu.global.u32 %x, [%p0+4]; st.release.sys.global.u32 [%p1+4], %x;
    ld.global.cg.u32 %x, [%p0+8]; st.global.wt.u32 [%p1+8], %x;
    ld.global.L2::128B.u32 %x, [%p0+12]; st.global.u32 [%p1+12], 7; ret;)"));
  Buffer<uint32_t> in(std::vector<uint32_t>{1, 2, 3, 4}), out(4);
  REQUIRE(kernel({}, in, out).is_clean());
  REQUIRE(out.values() == std::vector<uint32_t>{1, 2, 3, 7});
}

}  // namespace softgpu::test
