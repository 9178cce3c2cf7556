// mma.sync: recorded results of all shapes and types, and checks.
#include "softgpu/tests/harness.h"
#include "softgpu/tests/recorded.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

/// Returns statements that set A (%w0 to %w3), B (%w4, %w5) and C (%w6 to %w9) to mixed operands,
/// of which only the bits of `mask` are random.
std::string factors(const std::string &mask, const std::string &set) {
  constexpr const char *kFrom[] = {"%a", "%b", "%c", "%e"},
                       *kMix[] = {"0x3210", "0x5036", "0x1472"};
  std::string text;
  for (size_t i = 0; i < 10; i++) {
    const std::string to = "%w" + std::to_string(i);
    text += std::string("prmt.b32 ") + to + ", " + kFrom[i % 4] + ", " + kFrom[(i + 1) % 4] + ", " +
            kMix[i / 4] + ";\nlop3.b32 " + to + ", " + to + ", " + mask + ", " + set + ", 0xEA;\n";
  }
  return text;
}
const std::string kHalves = factors("0x8FFF8FFF", "0x30003000"),
                  kBfloats = factors("0x81FF81FF", "0x3E003E00"),
                  kFloats = factors("0x81FFFFFF", "0x3E000000");
const std::string kFloatC =
    "lop3.b32 %w6, %a, 0x81FFFFFF, 0x3E000000, 0xEA;\nlop3.b32 %w7, %b, 0x81FFFFFF, 0x3E000000, "
    "0xEA;\n"
    "mov.b32 %w8, %w7;\nmov.b32 %w9, 0;\n";
const std::string kMixD =
    "mad.lo.u32 %d, %w10, 31, %w11;\nmad.lo.u32 %d, %d, 31, %w12;\nmad.lo.u32 %d, %d, 31, %w13;";

const std::string kDeep =
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%w10, %w11, %w12, %w13}, "
    "{%w0, %w1, %w2, %w3}, {%w4, %w5}, {%w6, %w7, %w8, %w9};\n";

TEST_CASE("mma has the recorded results for each shape and type", "[mma]") {
  const Recorded halves[] = {
      {"44444",
       "mma.sync.aligned.m16n8<k16.row.col.f32.f16.f16.f32 {%w10, %w11, %w12, %w13}, {%w0, %w1, "
       "%w2, %w3}, {%w4, %w5}/k8.row.col.f32.f16.f16.f32 {%w10, %w11, %w12, %w13}, {%w0, %w1}, "
       "{%w4}>, {%w6, %w7, %w8, %w9};\n",
       0x7F36DBB8}};
  const Recorded bfloats[] = {
      {"44444",
       "mma.sync.aligned.m16n8<k16.row.col.f32.bf16.bf16.f32 {%w10, %w11, %w12, %w13}, {%w0, %w1, "
       "%w2, %w3}, {%w4, %w5}/k8.row.col.f32.bf16.bf16.f32 {%w10, %w11, %w12, %w13}, {%w0, %w1}, "
       "{%w4}>, {%w6, %w7, %w8, %w9};\n",
       0x2589EA4F}};
  const Recorded floats[] = {
      {"44444",
       "mma.sync.aligned.m16n8<k8.row.col.f32.tf32.tf32.f32 {%w10, %w11, %w12, %w13}, {%w0, %w1, "
       "%w2, %w3}, {%w4, %w5}/k4.row.col.f32.tf32.tf32.f32 {%w10, %w11, %w12, %w13}, {%w0, %w1}, "
       "{%w4}>, {%w6, %w7, %w8, %w9};\n",
       0xDC57A7BB}};
  const Recorded sums[] = {
      {"44444",
       "mov.b32 %w12, 0; mov.b32 %w13, 0; mma.sync.aligned.m16n8<k16.row.col.f16.f16.f16.f16 "
       "{%w10, %w11}, {%w0, %w1, %w2, %w3}, {%w4, %w5}/k8.row.col.f16.f16.f16.f16 {%w10, %w11}, "
       "{%w0, %w1}, {%w4}>, {%w6, %w7};\n",
       0xE1F2D011}};
  check_recorded(halves, kHalves + kFloatC, kMixD);
  check_recorded(bfloats, kBfloats + kFloatC, kMixD);
  check_recorded(floats, kFloats, kMixD);
  check_recorded(sums, kHalves, kMixD);
}

TEST_CASE("mma propagates infinities and NaNs", "[mma]") {
  const Recorded rows[] = {
      {"44444", "mov.b32 %w1, <0x7C003C00/0x7C00FC00/0x7E003C00>;\n", 0x9790EB9A}};
  check_recorded(rows, kHalves + kFloatC, kDeep + kMixD);
}

TEST_CASE("mma requires all lanes of a warp", "[mma]") {
  const Kernel kernel(body_text(0, ".reg .b32 %w<14>;\n" + kDeep));
  CHECK_CONTAINS(kernel({.threads = {16, 1, 1}}).fault, "without all lanes");
}

TEST_CASE("mma waits for diverged lanes", "[mma]") {
  const std::string before = kHalves + kFloatC;
  const auto together = run_recorded("44444", before + kDeep + kMixD);
  const WithOptions with([](Options &o) { o.diverges = true; });
  CHECK(run_recorded("44444", before +
                                  "setp.lt.u32 %q1, %lane, 7;\n@%q1 bra join;\nmov.b32 %w6, %w6;\n"
                                  "mov.b32 %w7, %w7;\njoin:\n" +
                                  kDeep + kMixD) == together);
}

// ---- ldmatrix and stmatrix

TEST_CASE("ldmatrix and stmatrix have the recorded results", "[matrix_rows]") {
  // Each lane has 16 bytes at %w21 and the address %w22 of another lane's row.
  const std::string rows =
      ".shared .align 16 .b8 rows[16384];\nmov.u32 %w20, rows; mad.lo.u32 %w21, %t, 16, %w20;\n"
      "mad.lo.u32 %w22, %t, 7, 5; and.b32 %w22, %w22, 31; and.b32 %w23, %t, 0x3E0;\n"
      "add.u32 %w22, %w22, %w23; mad.lo.u32 %w22, %w22, 16, %w20;\n"
      "st.shared.v4.u32 [%w21], {%a, %b, %c, %e};\nbar.warp.sync -1;\n";
  std::string zeros, loads, stores;
  for (int i = 10; i < 14; i++) zeros += "mov.b32 %w" + std::to_string(i) + ", 0;\n";
  for (const std::string count : {"1", "2", "4"})
    for (const std::string trans : {"", ".trans"}) {
      const std::string form = ".sync.aligned.m8n8.x" + count + trans + ".shared.b16 ";
      const std::string to = count == "1"   ? "{%w10}"
                             : count == "2" ? "{%w10, %w11}"
                                            : "{%w10, %w11, %w12, %w13}";
      loads += (loads.empty() ? "<" : "/") + ("ldmatrix" + form) + to + ", [%w22];\n";
      const std::string from = count == "1"   ? "{%a}"
                               : count == "2" ? "{%b, %a}"
                                              : "{%e, %b, %a, %c}";
      stores += (stores.empty() ? "<" : "/") + ("stmatrix" + form) + "[%w22], " + from + ";\n";
    }
  const Recorded load{"44444", (loads += ">").c_str(), 0x94533B7C},
      store{"44444", (stores += ">").c_str(), 0x3AA83FFA};
  check_recorded({&load, 1}, rows + zeros, kMixD);
  check_recorded({&store, 1}, rows,
                 "bar.warp.sync -1;\nld.shared.v4.u32 {%w10, %w11, %w12, %w13}, [%w21];\n" + kMixD);
}

TEST_CASE("ldmatrix rows must be aligned and in shared memory", "[matrix_rows]") {
  const auto run = [](const std::string &change) {
    const Kernel kernel(body_text(
        0,
        ".shared .align 16 .b8 rows[512];\n.reg .b32 %s, %r;\n.reg .pred %q;\nmov.u32 %s, rows;\n"
        "mad.lo.u32 %s, %t, 16, %s;\n" +
            change + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r}, [%s];\n"));
    return kernel({});
  };
  CHECK(run("").is_clean());
  CHECK_CONTAINS(run("add.u32 %s, %s, 8;\n").fault, "misaligned");
  CHECK_CONTAINS(run("add.u32 %s, %s, 4096;\n").fault, "shared memory");
  // Lanes without a row may pass any address.
  CHECK(run("setp.gt.u32 %q, %t, 7;\n@%q mov.u32 %s, 3;\n").is_clean());
}

// ---- wmma

/// Returns a product of 16 x 16 matrices in the 1280 bytes of a warp at %w22, in rows of 80 bytes:
/// D in the first 64 bytes, A in the first 32, B in the next 32.  C has the words %w0 to %w7.
std::string wmma_text(const std::string &type, const std::string &a, const std::string &b) {
  const bool is_half = type == "f16";
  const std::string shape = ".m16n16k16.shared.", load = "wmma.load.",
                    fa = registers("fa", is_half ? 8 : 4), fb = registers("fb", is_half ? 8 : 4),
                    sum = registers("sum", 8);
  std::string text;
  for (int i = 0; i < 8; i++)
    text += "and.b32 %w10, %w" + std::to_string(i) +
            ", 0x81FFFFFF; or.b32 %w10, %w10, 0x3E000000; " + "mov.b32 %sum" + std::to_string(i) +
            ", %w10;\n";
  return text + load + "a.sync.aligned." + a + shape + type + " " + fa + ", [%w22], 40;\n" + load +
         "b.sync.aligned." + b + shape + type + " " + fb + ", [%w22+32], 40;\n" +
         "wmma.mma.sync.aligned." + a + "." + b + ".m16n16k16.f32" + (is_half ? "" : ".bf16.bf16") +
         ".f32 " + sum + ", " + fa + ", " + fb + ", " + sum + ";\nbar.warp.sync -1;\n" +
         "wmma.store.d.sync.aligned.row" + shape + "f32 [%w22], " + sum + ", 20;\n";
}

void check_wmma(const std::string &type, const std::string &mask, const std::string &set,
                uint32_t hash) {
  std::string before =
      ".shared .align 32 .b8 memory[40960];\n.reg .b32 %fa<8>, %fb<8>;\n.reg .f32 %sum<8>;\n"
      "and.b32 %w22, %t, 0x3E0; mov.u32 %w20, memory;\n"
      "mad.lo.u32 %w21, %t, 40, %w20; mad.lo.u32 %w22, %w22, 40, %w20;\n" +
      factors(mask, set);
  std::string after = "bar.warp.sync -1;\n", products;
  for (int i = 0; i < 10; i++) {
    const std::string n = std::to_string(i), word = "[%w21+" + std::to_string(4 * i) + "]";
    before += "st.shared.b32 " + word + ", %w" + n + ";\n";
    after += "ld.shared.b32 %w" + n + ", " + word + "; mad.lo.u32 %d, %d, 31, %w" + n + ";\n";
  }
  for (const std::string a : {"row", "col"})
    for (const std::string b : {"row", "col"})
      products += (products.empty() ? "<" : "/") + wmma_text(type, a, b);
  products += ">";
  const Recorded row{"44444", products.c_str(), hash};
  check_recorded({&row, 1}, before + "bar.warp.sync -1;\n", after);
}

TEST_CASE("wmma has the recorded results for each layout and type", "[wmma]") {
  check_wmma("f16", "0x8FFF8FFF", "0x30003000", 0xB42F265D);
  check_wmma("bf16", "0x81FF81FF", "0x3E003E00", 0xCDF2E190);
}

TEST_CASE("wmma with an invalid address or stride is a fault", "[wmma]") {
  const auto fault_of = [](const std::string &change) {
    const Kernel kernel(body_text(
        0,
        ".shared .align 32 .b8 memory[8192];\n.reg .b32 %a<8>, %m, %stride;\nmov.u32 %m, memory;\n"
        "mov.u32 %stride, 24;\n" +
            change + "\nwmma.load.a.sync.aligned.row.m16n16k16.shared.f16 " + registers("a", 8) +
            ", [%m], %stride;"));
    return kernel({}).fault;
  };
  CHECK(fault_of("") == "");
  CHECK_CONTAINS(fault_of("add.u32 %m, %m, 16;"), "not 32-byte aligned");
  CHECK_CONTAINS(fault_of("mov.u32 %stride, 17;"), "stride 17");
  CHECK_CONTAINS(fault_of("mad.lo.u32 %m, %t, 32, %m;"), "differ in the address of wmma");
  CHECK_CONTAINS(fault_of("add.u32 %stride, %stride, %t;"), "differ in the stride of wmma");
  CHECK_CONTAINS(fault_of("add.u32 %m, %m, 7904;"), "shared memory");
}

}  // namespace
}  // namespace softgpu::test
