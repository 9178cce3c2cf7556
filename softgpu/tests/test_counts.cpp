// Classes of instructions, counters per region of a program, and SOFTGPU_SKIP_PRODUCTS.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "softgpu/counts.h"
#include "softgpu/program/opcode_class.h"
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
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32", "global", "wmma_store"},
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
    {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group", "tma", "tma_reduce"},
    {"cp.async.bulk.commit_group", "tma", ""},
    {"setmaxnreg.inc.sync.aligned.u32", "other", ""},
};

uint64_t flops_of(const char *opcode) {
  return tensor_flops(opcode_parts(opcode));
}

}  // namespace

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

TEST_CASE("counts: since() returns the difference of two states", "[counts]") {
  KernelCounters before, more;
  before.reset(2);
  before.executed[1] = 5;
  before.accesses[1].sectors = 3;
  before.num_launches = 1;
  more = before;
  more.add(before);
  more.accesses[0].incomplete = 9;
  const KernelCounters rest = more.since(before);
  CHECK(rest.executed == before.executed);
  CHECK(rest.accesses[1].sectors == 3);
  CHECK(rest.accesses[0].incomplete == 9);
  CHECK(rest.num_launches == 1);
}

// ---- skipped products

namespace {

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

}  // namespace

TEST_CASE("counts: SOFTGPU_SKIP_PRODUCTS skips mma and wmma but counts them", "[counts]") {
  check_skipped(product_text("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4));
  check_skipped(product_text("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 8, 8, 8));
}

TEST_CASE("counts: SOFTGPU_SKIP_PRODUCTS skips wgmma but counts it", "[counts]") {
  const WithOptions with([](Options &o) { o.skips_products = true; });
  const Matrix a(64, 16, 1), b(16, 8, 2), start(64, 8, 3);
  const SharedFactors factors = shared_factors(Element::kHalf, {{}, 64}, {{}, 8}, a, b);
  const Kernel kernel(
      body_text(3, wgmma_prologue(static_cast<int>(factors.image.size() * 2), 8) +
                       "wgmma.fence.sync.aligned;\n" + WgmmaText{8}.text() +
                       "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" +
                       store_registers("acc", 4, 2, kWarpgroup) + "ret;"));
  const Buffer<uint16_t> image(factors.image);
  const Buffer<uint64_t> descriptors(factors.descriptors);
  Buffer<float> accumulators(registers_of(start));
  CHECK(kernel(warpgroup_shape(), image, descriptors, accumulators).is_clean());
  CHECK(accumulators_of(accumulators.values(), 8).values == start.values);
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
  CHECK(kernel["issue_slots"] == 11 * num_warps);
  CHECK(kernel["classes"]["global"] == 2 * num_warps);
  CHECK(kernel["classes"]["param"] == num_warps);
  CHECK(kernel["classes"]["integer"] == 4 * num_warps);
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
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("softgpu_counts_" + std::to_string(getpid()));
  for (const char *value : {"1", path.c_str()}) {
    const CaseResult result = run_case("case: counters of regions", {{"SOFTGPU_COUNT", value}});
    INFO(value << ": " << result);
    CHECK(result.passed());
  }
  std::ifstream file(path);
  const json whole = json::parse(file);  // the file includes all regions
  std::filesystem::remove(path);
  CHECK(whole["total"]["launches"] == 3);
  REQUIRE(whole["kernels"].size() == 2);
  for (const json &kernel : whole["kernels"]) CHECK(!kernel["counts"].empty());
}

}  // namespace softgpu::test
