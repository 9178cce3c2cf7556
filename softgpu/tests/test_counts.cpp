// Classes of instructions, counters per region of a program, and SOFTGPU_SKIP_PRODUCTS.
#include <fstream>
#include <nlohmann/json.hpp>

#include "softgpu/counts.h"
#include "softgpu/program/kernel_counters.h"
#include "softgpu/tests/harness.h"
#include "softgpu/tests/runtime_case.h"
#include "softgpu/tests/wgmma_kernel.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

using nlohmann::json;

struct Known {
  const char *opcode, *name, *path;
};
constexpr Known kKnown[] = {
    {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", "wgmma", ""},
    {"wgmma.wait_group.sync.aligned", "barrier", ""},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma", ""},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "mma", ""},
    {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", "shared", "wmma_load"},
    {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32", "shared", "wmma_store"},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", "shared", "ldmatrix"},
    {"stmatrix.sync.aligned.m8n8.x4.shared.b16", "shared", "stmatrix"},
    {"fma.rn.f32", "fp32", ""},
    {"max.NaN.f16x2", "fp16", ""},
    {"add.f64", "fp64", ""},
    {"mul.wide.u32", "integer", ""},
    {"and.b32", "integer", ""},
    {"and.pred", "move", ""},
    {"setp.lt.f32", "move", ""},
    {"ex2.approx.ftz.f32", "special", ""},
    {"cvt.rn.f16.f32", "convert", ""},
    {"bra", "control", ""},
    {"bar.sync", "barrier", ""},
    {"mbarrier.try_wait.parity.shared::cta.b64", "barrier", ""},
    {"fence.proxy.async", "barrier", ""},
    {"shfl.sync.bfly.b32", "exchange", ""},
    {"ld.global.nc.v4.u32", "global", "load"},
    {"ld.u32", "generic", "load"},
    {"st.shared::cta.v4.b32", "shared", "store"},
    {"ld.param.u64", "param", "load"},
    {"ld.const.u32", "constant", "load"},
    {"st.local.u32", "local", "store"},
    {"red.global.add.f32", "global", "atomic"},
    {"cp.async.cg.shared.global", "async_copy", "cp_async"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", "tma",
     "tma_load"},
    {"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", "tma", "tma_store"},
    {"cp.async.bulk.commit_group", "tma", ""},
    {"setmaxnreg.inc.sync.aligned.u32", "other", ""},
};

uint64_t flops_of(const char *opcode) {
  return tensor_flops(opcode_parts(opcode));
}

TEST_CASE("counts: opcodes map to classes and memory paths", "[counts]") {
  for (const Known &known : kKnown) {
    INFO(known.opcode);
    const Opcode opcode = opcode_parts(known.opcode);
    CHECK(class_of(opcode) == known.name);
    CHECK(path_of(opcode) == known.path);
    CHECK(std::ranges::count(kOpcodeClasses, class_of(opcode)) == 1);
  }
  CHECK(opcode_text("@%p1 ld.global.v4.u32 {%r1}, [%rd1];") == "ld.global.v4.u32");
  CHECK(opcode_text("ret;") == "ret");
}

TEST_CASE("counts: tensor operations follow from the shape", "[counts]") {
  CHECK(flops_of("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16") == 2 * 16 * 256 * 16);
  CHECK(flops_of("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32") == 2 * 16 * 8 * 8);
  CHECK(flops_of("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32") == 2 * 16 * 16 * 16);
  CHECK(flops_of("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16") == 0);
  CHECK(flops_of("fma.rn.f32") == 0);
}

TEST_CASE("counts: acquires of tensor maps are fences of their proxy", "[counts]") {
  const auto is_acquire = [](const char *opcode) {
    return is_tensor_map_acquire(opcode_parts(opcode));
  };
  CHECK(is_acquire("fence.proxy.tensormap::generic.acquire.gpu"));
  CHECK(!is_acquire("fence.proxy.tensormap::generic.release.gpu"));
  CHECK(!is_acquire("fence.proxy.async.shared::cta"));
  CHECK(!is_acquire("fence.acq_rel.gpu"));
}

TEST_CASE("counts: waits for bulk stores are distinguished by their number", "[counts]") {
  CHECK(is_bulk_wait(opcode_parts("cp.async.bulk.wait_group.read")));
  CHECK(!is_bulk_wait(opcode_parts("cp.async.bulk.commit_group")));
  CHECK(!is_bulk_wait(opcode_parts("cp.async.wait_group")));
  CHECK(waits_for_all("@%p1 cp.async.bulk.wait_group.read 0;"));
  CHECK(waits_for_all("cp.async.bulk.wait_group\t0;"));
  CHECK(!waits_for_all("cp.async.bulk.wait_group.read 1;"));
  CHECK(!waits_for_all("cp.async.bulk.wait_group.read 10;"));
}

// ---- skipped products

/// Adds a product of ones, 16 deep, to 5; has D and the executed instructions.
struct Product {
  float d;
  std::vector<uint64_t> executed;
};
Product run(const Kernel &kernel, bool skips) {
  const WithOptions with([&](Options &o) { o.skips_products = skips; });
  Buffer<float> out(32);
  kernel.program().totals->tally = {};
  REQUIRE(kernel({}, out).is_clean());
  return {out[0], kernel.program().totals->tally.executed};
}

std::string ones(const std::string &name, int count, const std::string &value) {
  std::string text = ".reg .b32 %" + name + "<" + std::to_string(count) + ">;\n";
  for (int i = 0; i < count; i++)
    text += "mov.b32 %" + name + std::to_string(i) + ", " + value + ";\n";
  return text;
}

std::string product_text(const std::string &opcode, int num_a, int num_b, int num_sums) {
  return body_text(1, ones("a", num_a, "0x3C003C00") + ones("b", num_b, "0x3C003C00") +
                          ones("c", num_sums, "0f40A00000") + ones("d", num_sums, "0") + opcode +
                          " " + registers("d", num_sums) + ", " + registers("a", num_a) + ", " +
                          registers("b", num_b) + ", " + registers("c", num_sums) +
                          ";\nst.global.b32 [%p0], %d0;\nret;");
}

void check_skipped(const std::string &module) {
  const Kernel kernel(module);
  const Product computed = run(kernel, false), skipped = run(kernel, true);
  CHECK(computed.d == 21);
  CHECK(skipped.d == 5);
  CHECK(computed.executed == skipped.executed);
}

TEST_CASE("counts: SOFTGPU_SKIP_PRODUCTS skips mma and wmma but counts them", "[counts]") {
  check_skipped(product_text("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4));
  check_skipped(product_text("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 8, 8, 8));
}

TEST_CASE("counts: SOFTGPU_SKIP_PRODUCTS skips wgmma but counts it", "[counts]") {
  const WithOptions with([](Options &o) { o.skips_products = true; });
  const WgmmaText wgmma{.num_columns = 8};
  Buffer<float> before(64 * 8), after(before.size());
  CHECK(Kernel(wgmma.module(
      store_registers("acc", 4, 0, kWarpgroup) + "wgmma.fence.sync.aligned;\n" + wgmma.text() +
      "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n{\n" +
      store_registers("acc", 4, 1, kWarpgroup) + "}\n"))({.threads = {kWarpgroup, 1, 1}}, before,
                                                         after)
            .is_clean());
  CHECK(before.values() == after.values());
}

// ---- regions

TEST_CASE("case: counters of regions", "[.]") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  cudaStream_t stream = make_stream();
  for (int i = 0; i < 2; i++) REQUIRE(kernels.increment(words) == cudaSuccess);

  const json first = json::parse(softgpu_take_counts());
  REQUIRE(first["kernels"].size() == 1);
  CHECK(first["counted"] == true);
  CHECK(first["total"]["launches"] == 2);
  const json &kernel = first["kernels"][0];
  const uint64_t num_warps = 2 * kCount / 32;
  CHECK(kernel["name"] == "increment");
  CHECK(kernel["blocks"] == num_warps);
  CHECK(kernel["issue_slots"] == 10 * num_warps);
  CHECK(kernel["classes"]["global"] == 2 * num_warps);
  CHECK(kernel["classes"]["param"] == num_warps);
  CHECK(kernel["classes"]["integer"] == 3 * num_warps);
  CHECK(kernel["classes"]["move"] == 3 * num_warps);
  CHECK(kernel["classes"]["control"] == num_warps);
  const json sectors = {{"requests", num_warps},
                        {"bytes", 128 * num_warps},
                        {"sectors", 4 * num_warps},
                        {"least_sectors", 4 * num_warps}};
  CHECK(kernel["global"] == json{{"load", sectors}, {"store", sectors}});
  CHECK(kernel["shared"].empty());
  CHECK(!kernel.contains("counts"));

  // Only softgpu_take_counts waits for this kernel.
  REQUIRE(kernels.set(words, kNew, stream) == cudaSuccess);
  const json second = json::parse(softgpu_take_counts());
  REQUIRE(second["kernels"].size() == 1);
  CHECK(second["kernels"][0]["name"] == "set");
  CHECK(second["total"]["global"].size() == 1);
  const json nothing = json::parse(softgpu_take_counts());
  CHECK(nothing["kernels"].empty());
  CHECK(nothing["total"]["issue_slots"] == 0);
}

TEST_CASE("case: counters are disabled", "[.]") {
  CHECK(softgpu_take_counts() == nullptr);
}

TEST_CASE("counts: softgpu_take_counts returns the counters of a region", "[counts]") {
  passes_in_every_order("case: counters are disabled");
  const TemporaryFile file;
  for (const char *value : {"1", file.path.c_str()}) {
    const CaseResult result = run_case("case: counters of regions", {{"SOFTGPU_COUNT", value}});
    INFO(value << ": " << result);
    CHECK(result.passed());
  }
  const json whole = json::parse(std::ifstream(file.path));  // the file includes all regions
  CHECK(whole["total"]["launches"] == 3);
  REQUIRE(whole["kernels"].size() == 2);
  for (const json &kernel : whole["kernels"]) CHECK(!kernel["counts"].empty());
}

// ---- accesses to memory

using Catch::Matchers::ContainsSubstring;

/// Returns the counters of the instruction that contains a text, after one launch.
AccessCount count_of(const std::string &body, const std::string &text, uint32_t threads = 32) {
  const WithOptions with([](Options &o) { o.counts_memory = true; });
  const Kernel kernel(body_text(1, R"(
    .reg .b32 %s, %v<4>; .reg .f64 %d;
    .shared .align 16 .b8 smem[8192]; mov.u32 %s, smem;
    )" + body + " ret;"));
  Buffer<uint32_t> buffer(4096);
  // First 256-byte boundary in the buffer, like an address from cudaMalloc.
  const uint64_t aligned = (buffer.address() + 255) / 256 * 256;
  REQUIRE(kernel({.threads = {threads, 1, 1}}, aligned).is_clean());
  return kernel.program().totals->tally.accesses.at(kernel.statement(text));
}

/// An instruction on word %t of global memory at [%a] and of shared memory at [%s], which are
/// `stride` bytes apart, with `before` in between.
struct CountCase {
  int stride;
  const char *instruction;
  uint64_t requests, bytes, global_bytes, sectors, least_sectors;
  uint64_t shared_bytes, wavefronts, least_wavefronts;
  const char *before = "";
  uint32_t threads = 32;
};

constexpr const char *kLoad4 = "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%s];";
constexpr CountCase kCounted[] = {
    {4, "ld.global.u32 %x, [%a];", 1, 128, 128, 4, 4, 0, 0, 0},
    {4, "ld.global.u32 %x, [%a];", 1, 128, 128, 5, 4, 0, 0, 0, "add.s64 %a, %a, 4;"},
    {64, "st.global.u32 [%a], %x;", 1, 128, 128, 32, 4, 0, 0, 0},
    {16, "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a];", 1, 512, 512, 16, 16, 0, 0, 0},
    {4, "atom.global.add.u32 %x, [%a], 1;", 1, 128, 128, 4, 4, 0, 0, 0},
    {0, "ld.global.u32 %x, [%a];", 3, 384, 12, 3, 3, 0, 0, 0, "", 96},
    // All lanes at the same address count once.
    {0, "ld.global.u32 %x, [%a];", 1, 128, 4, 1, 1, 0, 0, 0},
    {4, "ld.const.u32 %x, [%a];", 1, 128, 0, 0, 0, 0, 0, 0},
    {4, "ld.shared.u32 %x, [%s];", 1, 128, 0, 0, 0, 128, 1, 1},
    {8, "ld.shared.u32 %x, [%s];", 1, 128, 0, 0, 0, 128, 2, 1},
    {128, "ld.shared.u32 %x, [%s];", 1, 128, 0, 0, 0, 128, 32, 1},
    {132, "ld.shared.u32 %x, [%s];", 1, 128, 0, 0, 0, 128, 1, 1},
    {0, "ld.shared.u32 %x, [%s];", 1, 128, 0, 0, 0, 4, 1, 1},
    {16, kLoad4, 1, 512, 0, 0, 0, 512, 4, 4},
    // Rows of 128 bytes: 8 lanes at a time, all in the same four banks.
    {128, "st.shared.v4.u32 [%s], {%v0, %v1, %v2, %v3};", 1, 512, 0, 0, 0, 512, 32, 4},
    {8, "ld.shared.f64 %d, [%s];", 1, 256, 0, 0, 0, 256, 2, 2},
    // Generic addresses are counted in their actual space.
    {0, "ld.u32 %x, [%a];", 1, 128, 0, 0, 0, 4, 1, 1, "cvta.shared.u64 %a, smem;"},
    {16, "cp.async.cg.shared.global [%s], [%a], 16;", 1, 512, 512, 16, 16, 512, 4, 4},
    // 8 and 16 bytes of each sector: a partially copied sector is counted once.
    {16, "cp.async.ca.shared.global [%s], [%a], 16, %x;", 1, 384, 384, 16, 12, 512, 4, 4,
     "and.b32 %x, %t, 1; shl.b32 %x, %x, 3; add.u32 %x, %x, 8;"},
};

TEST_CASE("sectors and wavefronts of accesses are counted") {
  for (const CountCase &c : kCounted) {
    const std::string stride = std::to_string(c.stride);
    const AccessCount n = count_of("mul.lo.u64 %a, %T, " + stride + "; add.s64 %a, %a, %p0;\n" +
                                       "mul.lo.u32 %x, %t, " + stride + "; add.u32 %s, %s, %x;\n" +
                                       c.before + c.instruction + " cp.async.wait_all;",
                                   std::string(c.instruction).substr(0, 10), c.threads);
    INFO(c.instruction << " " << c.before << ", stride " << c.stride);
    CHECK(std::vector{n.requests, n.bytes, n.global_bytes, n.sectors, n.least_sectors,
                      n.shared_bytes, n.wavefronts, n.least_wavefronts} ==
          std::vector{c.requests, c.bytes, c.global_bytes, c.sectors, c.least_sectors,
                      c.shared_bytes, c.wavefronts, c.least_wavefronts});
  }
  const AccessCount parameters = count_of("", "ld.param");
  CHECK(parameters.requests == 1);
  CHECK(parameters.global_bytes == 0);
}

TEST_CASE("bytes are always counted, sectors only on request") {
  const Kernel kernel(body_text(1, ".reg .b32 %x; ld.global.u32 %x, [%p0]; ret;"));
  Buffer<uint32_t> buffer(1);
  REQUIRE(kernel({}, buffer).is_clean());
  const AccessCount &load = kernel.program().totals->tally.accesses[kernel.statement("ld.global")];
  REQUIRE(load.bytes == 128);
  REQUIRE(load.sectors == 0);
}

/// Runs with SOFTGPU_INITCHECK=1; the first `written` of 64 bytes of a buffer are initialized.
Outcome check(const std::string &body, uint64_t written) {
  const WithOptions with([](Options &o) { o.checks_initialised = true; });
  const Kernel kernel(body_text(1, R"(
    .reg .b32 %s, %v<4>;
    .shared .align 16 .b8 smem[1024]; mov.u32 %s, smem;
    )" + body + " ret;"));
  Buffer<uint32_t> buffer(256);
  note_written(buffer.address(), written);
  return kernel({.threads = {1, 1, 1}}, buffer);
}
std::string message(const Outcome &outcome) {
  REQUIRE(outcome.fault.empty());
  REQUIRE(outcome.violations.size() == 1);
  return outcome.violations[0];
}

TEST_CASE("a read of uninitialized global memory is a violation") {
  REQUIRE(check("ld.global.u32 %x, [%p0+60];", 64).is_clean());
  REQUIRE_THAT(message(check("ld.global.u32 %x, [%p0+64];", 64)),
               ContainsSubstring("uninitialized read: 4 of 4 bytes of global memory") &&
                   ContainsSubstring("ld.global.u32 %x, [%p0+64]"));
  CHECK_CONTAINS(message(check("ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%p0+48];", 62)),
                 "2 of 16 bytes");
  CHECK_CONTAINS(message(check("ld.u8 %x, [%p0+64];", 64)), "1 of 1 bytes");
  CHECK_CONTAINS(message(check("atom.global.add.u32 %x, [%p0+64], 1;", 64)), "4 of 4");
  REQUIRE(check("st.global.u32 [%p0+64], 1; ld.global.u32 %x, [%p0+64];", 64).is_clean());
  CHECK_CONTAINS(message(check("st.global.u16 [%p0+64], 1; ld.global.u32 %x, [%p0+64];", 64)),
                 "2 of 4 bytes");
  // The result of an atomic operation is initialized, so the violation is not repeated.
  REQUIRE(
      check("red.global.add.u32 [%p0+64], 1; ld.global.u32 %x, [%p0+64];", 64).violations.size() ==
      1);
}

TEST_CASE("a read of uninitialized shared memory is a violation") {
  CHECK_CONTAINS(message(check("ld.shared.u32 %x, [%s+16];", 64)), "4 of 4 bytes of shared memory");
  REQUIRE(check("st.shared.u32 [%s+16], 1; ld.shared.u32 %x, [%s+16];", 64).is_clean());
  CHECK_CONTAINS(message(check("st.shared.u8 [%s+16], 1; ld.shared.u16 %x, [%s+16];", 64)),
                 "1 of 2 bytes");
}

TEST_CASE("cp.async initializes its destination at completion and checks its source") {
  const std::string copy = "cp.async.cg.shared.global [%s], [%p0], 16; ";
  REQUIRE(check(copy + "cp.async.wait_all; ld.shared.u32 %x, [%s];", 16).is_clean());
  // The copy is not waited for; the destination was initialized before.
  CHECK_CONTAINS(message(check("st.shared.u32 [%s], 1; " + copy + "ld.shared.u32 %x, [%s];", 16)),
                 "of shared memory");
  CHECK_CONTAINS(message(check(copy + "cp.async.wait_all;", 12)), "4 of 16 bytes of global memory");
  REQUIRE(
      check("cp.async.cg.shared.global [%s], [%p0], 16, 12; cp.async.wait_all;", 12).is_clean());
  REQUIRE_THAT(
      message(check("cp.async.cg.shared.global [%s], [%p0], 16, 12; cp.async.wait_all;", 8)),
      ContainsSubstring("4 of 12 bytes of global memory") && ContainsSubstring("thread 0"));
}

TEST_CASE("without SOFTGPU_INITCHECK uninitialized reads are not reported") {
  const Kernel kernel(body_text(1, ".reg .b32 %x; ld.global.u32 %x, [%p0]; ret;"));
  Buffer<uint32_t> buffer(1);
  REQUIRE(kernel({}, buffer).is_clean());
}

}  // namespace
}  // namespace softgpu::test
