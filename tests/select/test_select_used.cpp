// Every compiled tile is the first choice for some product of the bench on some device: any other
// would be machine code that users compile and load without benefit.
#include <map>
#include <string>
#include <vector>

#include "bench_problems.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/tiles.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Tiles per kernel template that launches them, such as "gemm" or "strided dgrad by wgmma".
using TilesOfKernels = std::map<std::string, mp::GemmTiles>;

const char *const kPasses[] = {"fprop", "dgrad", "wgrad"};

TilesOfKernels compiled_tiles() {
  using namespace mp;
  TilesOfKernels all{{"gemm", kAllGemmTiles},
                     {"fprop by wgmma", FpropDgradWgmmaTiles::kSet},
                     {"strided dgrad by wgmma", StridedDgradWgmmaTiles::kSet},
                     {"wgrad by wgmma", WgradWgmmaTiles::kSet}};
  for (const char *const pass : kPasses)
    all[std::string("conv ") + pass] =
        WmmaTiles::kSet | (pass == kPasses[2] ? WgradSimtTiles::kSet : FpropDgradSimtTiles::kSet);
  return all;
}

constexpr mp::Device kBenchDevices[] = {kT4, kA100, kH20, kH200};

void add_gemms(const mp::GemmTuning &tuning, TilesOfKernels &used) {
  std::vector<mp::GemmProblem> problems;
  for (const char *const path : {"llm_gemm_shapes.csv", "transformer_gemm_shapes.csv"})
    add_bench_gemms(path, mpbench::parse_llm, problems);
  for (const char *const path : {"deepbench_gemm_train.csv", "deepbench_gemm_infer.csv"})
    add_bench_gemms(path, mpbench::parse_deepbench, problems);
  for (const mp::Device &device : kBenchDevices)
    for (const mp::GemmProblem &p : problems)
      used["gemm"] |= mp::gemm_tiles(plan_of(p, device, tuning).kernel->tile);
}

std::string kernel_of(const mp::ConvProblem &p, const mp::ConvPlan &choice) {
  if (choice.family == mp::ConvFamily::gemm) return "gemm";
  if (choice.family == mp::ConvFamily::implicit)
    return std::string("conv ") + kPasses[p.op - MP_CONV_FPROP];
  if (p.op == MP_CONV_WGRAD) return "wgrad by wgmma";
  return mp::is_strided_dgrad(p) ? "strided dgrad by wgmma" : "fprop by wgmma";
}

void add_convolutions(const mp::GemmTuning &tuning, TilesOfKernels &used) {
  for (const char *const path : {"resnet50.csv", "deepbench_conv_train.csv"})
    for (const mp_dtype_t dtype : {MP_FP16, MP_FP32})
      for (const mp::ConvProblem &p : bench_convolutions(path, dtype))
        for (const mp::Device &device : kBenchDevices) {
          const mp::ConvPlan choice = mp::plan_conv(p, {device, tuning});
          if (choice.family == mp::ConvFamily::depthwise) continue;
          used[kernel_of(p, choice)] |= mp::gemm_tiles(choice.gemm.kernel->tile);
        }
}

/// Returns "conv wgrad: wmma_64x64x32_s4" for each tile that is never selected.
std::vector<std::string> unused_tiles(const mp::GemmTuning &tuning) {
  TilesOfKernels used;
  add_gemms(tuning, used);
  add_convolutions(tuning, used);
  std::vector<std::string> unused;
  for (const auto &[name, compiled] : compiled_tiles())
    for (const mp::GemmKernel &kernel : mp::gemm_kernels())
      if ((compiled & ~used[name] & mp::gemm_tiles(kernel.tile)) != 0)
        unused.push_back(name + ": " + kernel.name);
  return unused;
}

}  // namespace

TEST_CASE("used: each tile of each kernel is the first choice for some shape of the bench") {
  CHECK(unused_tiles(mp::builtin_gemm_tuning()) == std::vector<std::string>{});
}

TEST_CASE("used injected: tiles that no shape selects are detected") {
  // A tile that is predicted to take ten times as long.
  const mp::GemmTuning tuning = tuning_with("sm_90 wgmma_64x256x64_s4 10 100");
  CHECK(unused_tiles(tuning) ==
        std::vector<std::string>{"gemm: wgmma_64x256x64_s4", "wgrad by wgmma: wgmma_64x256x64_s4"});
}
