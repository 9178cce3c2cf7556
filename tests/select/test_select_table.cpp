// The table of kernels: names, supported problems, and a plan for every problem.
#include <algorithm>
#include <cstring>
#include <set>

#include "kernels/gemm/plan_text.h"
#include "select_cases.h"
#include "tests/support/numeric.h"

using namespace mptest;

namespace {

const mp::GemmTuning &builtin() {
  return mp::builtin_gemm_tuning();
}

mp::GemmProblem random_problem(Random &random) {
  const auto extent = [&random](int64_t least) {  // small and large with equal probability
    return random.integer(least, int64_t{1} << random.integer(0, 18));
  };
  const auto op = [&random] { return random.integer(0, 1) != 0 ? MP_OP_T : MP_OP_N; };
  mp::GemmProblem p = problem(extent(1), extent(1), extent(0), op(), op());
  p.dtype_ab = static_cast<mp_dtype_t>(random.integer(MP_FP16, MP_FP32));
  p.out.dtype = static_cast<mp_dtype_t>(random.integer(MP_FP16, MP_FP32));
  p.out.beta = static_cast<float>(random.integer(0, 1));
  if (random.integer(0, 3) == 0) p = with_batch(p, random.integer(1, 40));
  if (random.integer(0, 3) == 0) p = with_pointers(p, random.integer(1, 40));
  p.a.ld += random.integer(0, 2) * 4;
  p.b.ld += random.integer(0, 2) * 4;
  return p;
}

}  // namespace

TEST_CASE("select: names are unique, persistent and made of kernel, cluster, split and copies") {
  std::set<std::string> names;
  for (const mp::GemmVariant &variant : mp::gemm_variants()) {
    std::string name = variant.kernel->name;
    if (variant.multicast > 1) name += "_c" + std::to_string(variant.multicast);
    if (variant.split_k > 1) name += "_k" + std::to_string(variant.split_k);
    if (variant.parts > 1) name += "_p" + std::to_string(variant.parts);
    CHECK(name == variant.name);
    CHECK(variant.split_k % variant.parts == 0);
    CHECK(variant.parts * variant.multicast <= mp::kMaxClusterParts);
    CHECK(names.insert(name).second);
    switch (variant.kernel->family) {
      case mp::GemmFamily::thin:
      case mp::GemmFamily::wgmma:
        CHECK(variant.copied_name == variant.name);
        break;
      case mp::GemmFamily::wmma:
        CHECK(name + "_copied" == variant.copied_name);
        CHECK(names.insert(variant.copied_name).second);
        break;
      default:
        CHECK(variant.copied_name == nullptr);
    }
  }
  const auto listed = mp::gemm_names();
  CHECK(std::set<std::string>(listed.begin(), listed.end()) == names);
  CHECK(listed.size() == names.size());
  CHECK(mp::gemm_variants().data() == mp::gemm_variants().data());
}

TEST_CASE("select: names that users stored are valid, similar ones are unknown") {
  // Plans and tuning tables contain names: they stay valid in later releases.
  const auto names = mp::gemm_names();
  for (const std::string_view name :
       {"gemv", "thin_32x64x64_s8_k8_p8", "thin_16x64x64_s8", "wgmma_128x256x64_s4_c2_k4",
        "wgmma_256x128x64_s4_c2", "wgmma_128x192x64_s4", "wgmma_128x128x64_s6_k8_p8",
        "wgmma_64x256x64_s4_k24", "wgmma_256x64x64_s4_k128", "wgmma_64x128x64_s8_k32_p8",
        "wmma_256x128x32_s3", "wmma_128x128x32_s3_k2", "wmma_128x128x32_s3_k3_copied",
        "wmma_64x64x32_s4_k32", "simt_128x128x16", "simt_128x16x16", "simt_16x128x16_k4",
        "simt_64x64x16_k2"}) {
    CAPTURE(name);
    CHECK(std::ranges::find(names, name) != names.end());
  }
  for (const char *name : {"", "wmma", "wmma_64x64x32_s4_k7", "simt_64x64x16_k7",
                           "wmma_64x64x32_s4_c2", "wmma_64x64x32_s4_k2 ", "simt_64x64x16_copied",
                           "gemv_copied", "wgmma_128x256x64_s4_copied"}) {
    CAPTURE(name);
    CHECK(why_not(name, problem(4096, 4096, 8192), kA100) == "unknown");
  }
}

TEST_CASE("select: each reason why a wmma kernel rejects a problem") {
  const mp::GemmProblem p = problem(256, 256, 256), bf16 = with_inputs(p, MP_BF16);
  const char *const name = "wmma_128x128x32_s3";
  CHECK(why_not(name, p, kT4) == "");
  CHECK(why_not(name, with_inputs(p, MP_FP32), kH200) == MP_REQUIRES_HALF_TYPE);
  CHECK(why_not(name, bf16, kT4) == "requires sm_80 or newer for BF16");
  CHECK(why_not(name, bf16, kA100) == "");
  CHECK(why_not(name, p, cuda_device(61, 20, 48 << 10)) == "requires sm_70 or newer");
  CHECK(why_not("wmma_256x128x32_s3", p, kT4) == "requires more shared memory than the device has");
  CHECK(why_not("wmma_256x128x32_s3", p, kV100) == "");
  CHECK(why_not(name, p, kA100, false) == "");
}

TEST_CASE("select: sm_70 multiplies FP16 on tensor cores and BF16 on CUDA cores") {
  for (const int64_t size : {64, 512, 4096}) {
    CAPTURE(size);
    const mp::GemmProblem p = problem(size, size, size), bf16 = with_inputs(p, MP_BF16);
    CHECK(best_name(p, kV100).starts_with("wmma_"));
    CHECK(slow_path_reason(shape(p), kV100) == "");
    CHECK(best_name(bf16, kV100).starts_with("simt_"));
    CHECK(slow_path_reason(shape(bf16), kV100) ==
          "sm_70 has Tensor Cores for FP16, but not for BF16");
  }
}

TEST_CASE("select: each reason why a wmma kernel does not read copies") {
  const mp::GemmProblem aligned = problem(256, 256, 256);
  mp::GemmProblem p = aligned;
  p.b.ld = 257;
  mp::GemmProblem batch = with_batch(aligned, 2);
  batch.a.stride += 4;
  const char *const name = "wmma_128x128x32_s3_copied";
  for (const mp::Device &device : {kT4, kA100, kH200, kH200WithoutWgmma, kHost}) {
    CHECK(why_not(name, p, device) == "");
    CHECK(why_not(name, batch, device) == "");
  }
  CHECK(why_not("wmma_128x128x32_s3_k2_copied", p, kA100) == "");
  CHECK(why_not(name, with_inputs(p, MP_FP32), kH200) == MP_REQUIRES_HALF_TYPE);
  CHECK(why_not(name, with_inputs(p, MP_BF16), kT4) == "requires sm_80 or newer for BF16");
  CHECK(why_not("wmma_256x128x32_s3_copied", p, kT4) ==
        "requires more shared memory than the device has");
  CHECK(why_not("wmma_128x128x32_s3_k3_copied", p, kA100) == "requires a larger k for this split");
  const std::string nothing_to_copy =
      "requires 16-byte aligned matrices and an ld or stride that is not a multiple of 8, and does "
      "not support arrays of pointers";
  CHECK(why_not(name, aligned, kA100) == nothing_to_copy);
  CHECK(why_not(name, p, kA100, false) == nothing_to_copy);
  CHECK(why_not(name, with_pointers(p, 2), kA100) == nothing_to_copy);
  p.k = 0;
  CHECK(why_not(name, p, kA100) == nothing_to_copy);
}

TEST_CASE("select: the reason of a slow path names the operands or the device") {
  using mp::slow_path_reason;
  mp::GemmProblem p = problem(64, 64, 64);
  for (const mp::Device &device : {kT4, kA100, kH200, kHost}) {
    CHECK(slow_path_reason(shape(p), device) == "");
    CHECK(slow_path_reason(shape(p, false), device) == "A or B is not 16-byte aligned");
  }
  p.b.ld = 65;
  CHECK(slow_path_reason(shape(p), kA100) == "ld_b = 65 is not a multiple of 8");
  const mp::GemmShape bf16 = shape(with_inputs(p, MP_BF16));
  CHECK(slow_path_reason(bf16, kT4) == "sm_75 has Tensor Cores for FP16, but not for BF16");
  CHECK(slow_path_reason(bf16, kA100) == "ld_b = 65 is not a multiple of 8");
  CHECK(slow_path_reason(shape(with_inputs(p, MP_FP32), false), kT4) == "");
}

TEST_CASE("select: split-k has at least two slices of at least 128, none of them empty") {
  const auto why = [](const char *name, int64_t k) {
    return why_not(name, problem(64, 64, k), kA100);
  };
  const std::string too_short = "requires a larger k for this split";
  CHECK(why("wmma_64x64x32_s4_k2", 256) == "");
  CHECK(why("wmma_64x64x32_s4_k2", 225) == "");
  CHECK(why("wmma_64x64x32_s4_k2", 192) == too_short);
  CHECK(why("wmma_64x64x32_s4_k2", 0) == too_short);
  // 16 slices of ceil(2080 / 16) = 130, rounded up to 160: the 13th ends past k.
  CHECK(why("wmma_64x64x32_s4_k16", 2080) == too_short);
  CHECK(why("wmma_64x64x32_s4_k16", 15 * 160) == too_short);
  CHECK(why("wmma_64x64x32_s4_k16", 15 * 160 + 1) == "");
  CHECK(why("wmma_64x64x32_s4_k16", 16 * 160) == "");

  constexpr int64_t kRows = int64_t{1} << 17;
  const std::string too_large = "requires D to have fewer than 2^33 elements with this split";
  mp::GemmProblem huge = problem(kRows, (1 << 16) - 4, 4096);
  CHECK(why_not("wmma_64x64x32_s4_k32", huge, kA100) == "");
  huge.out.batch_count = 2;
  CHECK(why_not("wmma_64x64x32_s4_k32", huge, kA100) == too_large);
  huge = problem(kRows, (1 << 16) - 3, 4096);
  CHECK(why_not("wmma_64x64x32_s4_k32", huge, kA100) == too_large);
  CHECK(why_not("wmma_64x64x32_s4", huge, kA100) == "");
}

TEST_CASE("select: simt kernels support every problem without workspace") {
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    const mp::GemmProblem p = random_problem(random);
    for (const mp::Device &device : kDevices)
      for (const char *name :
           {"simt_128x128x16", "simt_128x16x16", "simt_16x128x16", "simt_64x64x16"})
        REQUIRE(plan_named(name, p, device).workspace.bytes == 0);
  }
}

TEST_CASE("select: every problem has a plan on every device, the first that fits") {
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    const mp::GemmProblem p = random_problem(random);
    const bool aligned = random.integer(0, 3) != 0;
    CAPTURE(i, p.out.m, p.out.n, p.k, p.out.batch_count, aligned);
    for (const mp::Device &device : kDevices) {
      CAPTURE(device.arch, device.target);
      const std::vector<mp::RankedGemm> choices = ranking(p, device, aligned);
      REQUIRE(!choices.empty());
      std::set<std::string> names;
      double last_us = 0;
      for (const mp::RankedGemm &choice : choices) {
        REQUIRE(names.insert(choice.name).second);
        REQUIRE(choice.predicted_us >= last_us);
        last_us = choice.predicted_us;
      }
      // The first plan that fits, with any workspace.
      const size_t wanted = choices.front().workspace_bytes;
      for (const size_t bytes : {size_t{0}, wanted / 2, wanted, SIZE_MAX}) {
        const auto first = std::find_if(choices.begin(), choices.end(), [&](const auto &choice) {
          return choice.workspace_bytes <= bytes;
        });
        REQUIRE(first != choices.end());
        const mp::GemmPlan best = plan_of(p, device, builtin(), aligned, bytes);
        REQUIRE(std::string(best.name) == first->name);
        REQUIRE(best.workspace.bytes == first->workspace_bytes);
        REQUIRE(best.predicted_us == first->predicted_us);
        REQUIRE(best.split_k == first->variant->split_k);
        REQUIRE(best.multicast == first->variant->multicast);
      }
    }
  }
}

TEST_CASE("select: the workspace of a wmma split holds the slices of all items") {
  const mp::GemmProblem p = with_batch(problem(100, 60, 1024), 3);
  CHECK(plan_named("wmma_64x64x32_s4_k4", p, kA100).workspace.bytes == 4 * 4 * 3 * 100 * 60);
  CHECK(plan_named("wmma_64x64x32_s4", p, kA100).workspace.bytes == 0);
  mp::GemmProblem odd = p;
  odd.b.ld = 1025;
  // Preceded by three matrices of 60 rows, rounded up to 256 bytes.
  constexpr size_t kCopies = size_t{3} * 60 * 1024 * 2;
  CHECK(plan_named("wmma_64x64x32_s4_copied", odd, kA100).workspace.bytes == kCopies);
  CHECK(plan_named("wmma_64x64x32_s4_k4_copied", odd, kA100).workspace.bytes ==
        kCopies + 4 * 4 * 3 * 100 * 60);
}

TEST_CASE("select: tiles and slices cover the problem") {
  for (const mp::GemmVariant &variant : mp::gemm_variants()) {
    for (const int64_t extent :
         {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{65}, int64_t{127}, int64_t{128},
          int64_t{129}, int64_t{191}, int64_t{192}, int64_t{193}, int64_t{384}, int64_t{1000},
          int64_t{1} << 20, (int64_t{1} << 31) - 1, int64_t{1} << 40}) {
      const mp::GemmKernel &kernel = *variant.kernel;
      const mp::TileCounts tiles = tile_counts(kernel, variant.multicast, extent, extent);
      CAPTURE(variant.name, extent, tiles.m, tiles.n);
      const auto whole = [&](int64_t count, int tile, bool paired) {
        const int64_t least = (extent + tile - 1) / tile;
        return paired ? count ==
                            (least + variant.multicast - 1) / variant.multicast * variant.multicast
                      : count == least;
      };
      CHECK(whole(tiles.m, kernel.tile_m, kernel.cluster_along_m));
      CHECK(whole(tiles.n, kernel.tile_n, !kernel.cluster_along_m));

      const int64_t slice = mp::k_per_slice(kernel, extent, variant.split_k);
      CHECK(slice % kernel.tile_k == 0);
      CHECK(slice * variant.split_k >= extent);
      CHECK((slice - kernel.tile_k) * variant.split_k < extent);
    }
  }
}

TEST_CASE("select: a device's class follows from its architecture, the CPU has its own") {
  const auto class_name = [](const mp::Device &device) {
    return std::string(name_of(class_of(device)));
  };
  CHECK(class_name(kT4) == "sm_75");
  CHECK(class_name(kA100) == "sm_80");
  CHECK(class_name(kH200) == "sm_90");
  for (const auto &[arch, name] : {std::pair{86, "sm_89"},
                                   {87, "sm_89"},
                                   {89, "sm_89"},
                                   {100, "sm_100"},
                                   {103, "sm_100"},
                                   {110, "sm_100"},
                                   {120, "sm_120"},
                                   {121, "sm_120"},
                                   {130, "sm_120"}})
    CHECK(class_name(cuda_device(arch, 100, 99 << 10)) == name);
  CHECK(class_name(kHost) == "host");
}

TEST_CASE("select: the built-in table has constants for every supported kernel") {
  Random random(3);
  for (const mp::Device &device : kDevices) {
    const mp::ClassTuning &tuning = mp::builtin_gemm_tuning().of(class_of(device));
    CAPTURE(name_of(class_of(device)));
    CHECK(tuning.launch_us > 0);
    CHECK((tuning.scalar_load_us > 0) == (device.target == MP_TARGET_CUDA));
    for (const mp_dtype_t dtype : {MP_FP16, MP_FP32}) {
      for (const mp::RankedGemm &choice :
           ranking(with_inputs(problem(4096, 4096, 8192), dtype), device)) {
        CAPTURE(choice.name);
        CHECK(tuning.of(*choice.variant->kernel).k_us > 0);
        CHECK(tuning.of(*choice.variant->kernel).c2 > 0);
      }
    }
  }
}

TEST_CASE("select gemv: supports at most 16 rows or columns of any type and alignment") {
  for (const mp::Device &device : kDevices) {
    for (const mp_dtype_t dtype : kDtypes) {
      const mp::GemmProblem p = with_inputs(problem(1000, 16, 500), dtype);
      CHECK(why_not("gemv", with_inputs(problem(16, 1000, 500), dtype), device, false) == "");
      CHECK(why_not("gemv", p, device) == "");
      CHECK(plan_named("gemv", with_pointers(p, 3), device).workspace.bytes == 0);
    }
    CHECK(why_not("gemv", problem(17, 17, 500), device) == "requires m or n of at most 16");
    CHECK(why_not("gemv_k2", problem(16, 16, 5000), device) == "unknown");
  }
}

TEST_CASE("select gemv: not selected for thousands of tiny products on the host target") {
  for (const mp_dtype_t dtype : {MP_FP16, MP_FP32}) {
    CHECK(best_name(with_inputs(with_batch(problem(8, 8, 8), 2000), dtype), kHost) != "gemv");
    CHECK(best_name(with_inputs(problem(1, 4096, 4096), dtype), kHost) == "gemv");
  }
}
