// ld and st: all types, vectors and state spaces, any addresses, and inactive lanes.
#include <array>
#include <numeric>

#include "softgpu/tests/harness.h"
#include "softgpu/tests/recorded.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

constexpr int kLanes = 32;

/// A type in memory and the bits of the registers.  The hashes are those of ld and st.
struct TypeCase {
  const char *type;
  int bytes, register_bits;
  uint32_t ld, st;
};
constexpr TypeCase kTypes[] = {
    {"u8", 1, 16, 0x36679DEC, 0x74F4A08A},  {"s8", 1, 16, 0xF21F8A8E, 0x74F4A08A},
    {"b8", 1, 32, 0x36679DEC, 0x74F4A08A},  {"s8", 1, 32, 0x373C3F46, 0x74F4A08A},
    {"s8", 1, 64, 0xBC6E3FEC, 0x74F4A08A},  {"u16", 2, 16, 0xD5C1E116, 0xB7E0E3C8},
    {"s16", 2, 16, 0xD5C1E116, 0xB7E0E3C8}, {"u16", 2, 32, 0xD5C1E116, 0xB7E0E3C8},
    {"s16", 2, 32, 0xEBE67F68, 0xB7E0E3C8}, {"b16", 2, 64, 0xD5C1E116, 0xB7E0E3C8},
    {"s16", 2, 64, 0x2D98A74A, 0xB7E0E3C8}, {"u32", 4, 32, 0xFE3F83DE, 0xB0D80D86},
    {"s32", 4, 32, 0xFE3F83DE, 0xB0D80D86}, {"f32", 4, 32, 0xFE3F83DE, 0xB0D80D86},
    {"u32", 4, 64, 0xFE3F83DE, 0xB0D80D86}, {"s32", 4, 64, 0x71CF9A12, 0xB0D80D86},
    {"b64", 8, 64, 0x3AC48924, 0x2BA448A4}, {"f64", 8, 64, 0x3AC48924, 0x2BA448A4},
};

/// Sets %w20 to the index of the element that a lane accesses, in different patterns: consecutive,
/// backwards, strided, the same, random, consecutive with one exception.
constexpr char kIndex[] =
    "cvt.u32.u64 %w19, %a; and.b32 %w19, %w19, 63; setp.eq.u32 %q1, %lane, 31;\n"
    "<mov.u32 %w20, %lane/sub.u32 %w20, 31, %lane/shl.b32 %w20, %lane, 1/mov.u32 %w20, 5/"
    "mov.u32 %w20, %w19/selp.b32 %w20, 40, %lane, %q1>;\n";

/// Returns alternatives of an access to vectors of 1, 2 and 4 elements: at %w20 in the memory of
/// the warp, or, in some lanes, in another allocation.  Inactive lanes have an invalid address.
std::string accesses(const TypeCase &c, bool is_store) {
  const std::string name = c.register_bits == 16 ? "h" : c.register_bits == 32 ? "w" : "l";
  std::string all;
  for (int n = 1; n <= 4 && c.bytes * n <= 16; n *= 2)
    for (const std::string space : {".global.", "."})
      for (const std::string other : {"4", "3"}) {
        const std::string opcode = (is_store ? "st" : "ld") + space +
                                   (n == 1 ? "" : "v" + std::to_string(n) + ".") + c.type,
                          data = n == 1 ? "%" + name + "0" : registers(name, n),
                          operands = is_store ? " [%l7+-16], " + data : " " + data + ", [%l7+-16]";
        all += (all.empty() ? "<" : "/") +
               ("mad.wide.u32 %l7, %w20, " + std::to_string(c.bytes * n)) +
               ", %l7; and.b32 %w21, %t, 3; setp.eq.u32 %q1, %w21, " + other +
               "; sub.u32 %w21, %t, %w21; @%q1 mad.wide.u32 %l7, %w21, 8, %p0; "
               "add.u64 %l7, %l7, 16; @!%executes mov.u64 %l7, 0; @%executes " +
               opcode + operands;
      }
  return std::string("and.b32 %w21, %t, 0x3E0; mad.wide.u32 %l7, %w21, 40, %p1; ") + kIndex + all +
         ">;\n";
}

}  // namespace

TEST_CASE("ld and st have the recorded results for each type") {
  for (const TypeCase &c : kTypes) {
    const std::string bits = std::to_string(c.register_bits),
                      name = c.register_bits == 16   ? "%h"
                             : c.register_bits == 32 ? "%w"
                                                     : "%l",
                      wide = c.register_bits == 64 ? "mov.u64" : "cvt.u64.u" + bits,
                      narrow = c.register_bits == 64 ? "mov.u64" : "cvt.u" + bits + ".u64";
    std::string init, set, loaded, stored = "bar.warp.sync -1;\n";
    for (size_t e = 0; e < 4; e++) {
      constexpr const char *kOperands[] = {", %a;\n", ", %b;\n", ", %c;\n", ", %e;\n"};
      const std::string r = name + std::to_string(e);
      init += "mov.b" + bits + " " + r + ", 0x5A5A;\n";
      set += narrow + " " + r + kOperands[e];
      loaded += wide + " %l5, " + r + "; mad.lo.u64 %d, %d, 31, %l5;\n";
      stored += "ld.global.u64 %l5, [%at+" + std::to_string(8 * e + 8) +
                "]; mad.lo.u64 %d, %d, 31, %l5;\n";
    }
    INFO(c.type << " in " << bits << " bits");
    const std::string load = accesses(c, false), store = accesses(c, true);
    const Recorded rows[] = {{"88888", load.c_str(), c.ld}, {"88888", store.c_str(), c.st}};
    check_recorded({rows, 1}, init, loaded);
    check_recorded({rows + 1, 1}, set, stored);
  }
}

TEST_CASE("shared and local memory have the recorded contents") {
  // 64 words per warp: %w22 and %l6 are addresses of the lane's word, %w23 and %l7 of word %w20.
  const std::string shared =
      ".shared .align 16 .b8 pad[32]; .shared .align 16 .b8 array[16384];\n" + std::string(kIndex) +
      "mov.u32 %w21, array; and.b32 %w22, %t, 0x3E0; mad.lo.u32 %w21, %w22, 16, %w21;\n"
      "mad.lo.u32 %w22, %lane, 8, %w21; mad.lo.u32 %w23, %w20, 8, %w21;\n"
      "cvt.u64.u32 %l6, %w22; cvta.shared.u64 %l6, %l6; st.u64 [%l6+256], %b;\n"
      "cvt.u64.u32 %l7, %w23; cvta.shared.u64 %l7, %l7;\n"
      "st<.shared.u64 [%w22]/.volatile.shared.u64 [%w22]/.u64 [%l6]>, %a; bar.warp.sync -1;\n"
      "@%executes ld<.shared.u64 %d, [%w23]/.relaxed.cluster.shared::cluster.u64 %d, [%w23]/"
      ".shared::cta.u64 %d, [%w23]/.u64 %d, [%l7]>;\n";
  const Recorded rows[] = {
      {"888", shared.c_str(), 0xAB989EC0},
      // Local memory is private to a thread.
      {"88",
       ".local .align 16 .b8 pad[32]; .local .align 16 .b8 array[256]; mov.u32 %w21, array;\n"
       "<mov.u32 %w22, %w21/mad.lo.u32 %w22, %lane, 8, %w21>;\n"
       "cvt.u64.u32 %l6, %w22; cvta.local.u64 %l6, %l6; st<.local.u64 [%w22]/.u64 [%l6]>, %a;\n"
       "@%executes ld<.local.u64 %d, [%w22]/.u64 %d, [%l6]>;",
       0xC98C9480},
      // A load may overwrite its address register.
      {"88",
       "add.u64 %l6, %at, 8; ld.global.v2.u32 {%l5, %l6}, [%l6]; mad.lo.u64 %d, %l5, 31, %l6;",
       0x7F6D1E6A}};
  check_recorded(rows);
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
