// Estimated constants of the tuning table compared with documented peaks, and predictions: none may
// be faster than its multiply-adds at the peak rate.  Changed formulas change the digests
// of test_select_plans.cpp.
#include <algorithm>
#include <string>
#include <vector>

#include "bench_problems.h"
#include "select_cases.h"

using namespace mptest;

namespace {

/// Peak rates per SM and clock, except the last two.
struct Peak {
  double tensor;  ///< multiply-adds on tensor cores
  double fma;     ///< multiply-adds on CUDA cores
  double smem;    ///< bytes from L1 and shared memory
  double l2;      ///< bytes from L2
  double clock;   ///< clocks per microsecond
  double dram;    ///< bytes per microsecond, of the device
};

/// T4: data sheet (65 TFLOP/s, 320 GB/s), Jia et al. 2019 (L2).  A100: white paper.  L40S and
/// RTX 5090: data sheets; L2 as fast as that of the A100.  H200: data sheet; the clock of short
/// runs in bench/results; L2 as measured in arXiv:2402.13499.  B200: no faster per SM.
Peak peak_of(const mp::Device &device) {
  if (device.arch == 75) return {512, 64, 64, 20, 1200, 320e3};
  if (device.arch == 80) return {1024, 64, 128, 47, 1380, 1935e3};
  if (device.arch == 89) return {512, 128, 128, 20, 2520, 864e3};
  if (device.arch == 120) return {256, 128, 128, 17, 2407, 1792e3};
  return {2048, 128, 128, 34, 1980, 4800e3};
}

/// Returns the multiply-adds per microsecond of an SM.
double peak_rate(const mp::GemmKernel &kernel, const mp::Device &device) {
  const bool has_tensor_cores = mp::uses_tma(kernel) || kernel.family == mp::GemmFamily::wmma;
  const Peak peak = peak_of(device);
  return (has_tensor_cores ? peak.tensor : peak.fma) * peak.clock;
}

/// Appends the name unless `value` is from `least` to `most` times `counted`.
void check(std::vector<std::string> &wrong, const std::string &name, double value, double counted,
           double least, double most) {
  if (value < least * counted || value > most * counted)
    wrong.push_back(name + " = " + std::to_string(value) + ", counted " + std::to_string(counted));
}

/// Checks kernels of one family, whose larger tiles reach a larger part of the peak.
void check_family(std::vector<std::string> &wrong, mp::GemmFamily family, const mp::Device &device,
                  const mp::ClassTuning &tuning) {
  const Peak peak = peak_of(device);
  std::vector<const mp::GemmKernel *> kernels;
  for (const mp::GemmKernel &kernel : mp::gemm_kernels())
    if (kernel.family == family) kernels.push_back(&kernel);
  const auto area = [](const mp::GemmKernel *kernel) { return kernel->tile_m * kernel->tile_n; };
  std::ranges::sort(kernels, {}, area);
  double part_before = 0;
  for (const mp::GemmKernel *const kernel : kernels) {
    const mp::KernelTuning &constants = tuning.of(*kernel);
    const double peak_us = 1024.0 * area(kernel) / peak_rate(*kernel, device);
    check(wrong, std::string(kernel->name) + " K_US", constants.k_us, peak_us, 1, 2.5);
    if (peak_us / constants.k_us < part_before)
      wrong.push_back(std::string(kernel->name) + " is slower than smaller tiles");
    part_before = peak_us / constants.k_us;
    // Two memory latencies (arXiv:2402.13499), which other blocks of the SM hide, and the stores.
    const double tile_us =
        2 * 479 / peak.clock / kernel->blocks_per_sm + 4.0 * area(kernel) / peak.l2 / peak.clock;
    check(wrong, std::string(kernel->name) + " TILE_US", constants.tile_us, tile_us, 0.25, 4);
  }
}

/// Returns the constants of the classes without measurements that contradict the peaks.
std::vector<std::string> wrong_constants(const mp::GemmTuning &all) {
  std::vector<std::string> wrong;
  for (const mp::Device &device : {kT4, kA100}) {
    if (!is_estimated(mp::builtin_gemm_tuning(), device)) continue;
    const mp::ClassTuning &tuning = all.of(class_of(device));
    const Peak peak = peak_of(device);
    const double dram_us = 1e6 / peak.dram, l2_us = 1e6 / peak.l2 / peak.clock / device.num_sms;
    check(wrong, "dram_us_per_mb", tuning.dram_us_per_mb, dram_us, 1, 2);
    check(wrong, "copy_us_per_mb", tuning.copy_us_per_mb, 2 * dram_us, 1, 2);
    // Neighboring lanes load elements 16 bytes apart: 32 bytes of L1 and banks per element.
    check(wrong, "scalar_load_us", tuning.scalar_load_us, (32 << 20) / peak.smem / peak.clock, 1,
          2);
    check(wrong, "l2_us_per_mb", tuning.l2_us_per_mb, l2_us, 0.5, 4);
    check(wrong, "partial_us_per_mb", tuning.partial_us_per_mb, l2_us, 0.5, 4);
    check(wrong, "source_us_per_mb", tuning.source_us_per_mb, 1e6 / peak.l2 / peak.clock, 0.5, 2);
    check(wrong, "op_us", tuning.op_us, (1 << 20) / 128.0 / peak.clock, 1, 2);
    check(wrong, "launch_us", tuning.launch_us, 4, 0.5, 2);
    // An SM has 32 KB of loads in flight, for 0.6 us; each vector adds its products.
    const mp::KernelTuning &gemv = tuning.of(kernel_named("gemv"));
    check(wrong, "gemv TILE_US", gemv.tile_us, (2 << 20) / (32 << 10) * 0.6, 0.5, 2);
    check(wrong, "gemv K_US", gemv.k_us, (1 << 20) / peak.fma / peak.clock, 1, 2);
    check_family(wrong, mp::GemmFamily::wmma, device, tuning);
    check_family(wrong, mp::GemmFamily::simt, device, tuning);
  }
  return wrong;
}

/// Counts predictions shorter than their multiply-adds at the peak rate.
int64_t impossible_predictions(const mp::GemmTuning &tuning) {
  std::vector<mp::GemmProblem> problems;
  for (const char *const path : {"llm_gemm_shapes.csv", "transformer_gemm_shapes.csv"})
    add_bench_gemms(path, mpbench::parse_llm, problems);
  for (const char *const path : {"deepbench_gemm_train.csv", "deepbench_gemm_infer.csv"})
    add_bench_gemms(path, mpbench::parse_deepbench, problems);
  int64_t count = 0;
  for (const mp::Device &device : {kT4, kA100, kL40s, kH200, kB200, kRtx5090})
    for (const mp::GemmProblem &p : problems) {
      const double macs = double(p.out.m) * double(p.out.n) * double(p.k) * p.out.batch_count;
      for (const mp::RankedGemm &choice : ranking(p, device, kAligned, tuning))
        count += choice.predicted_us <
                 macs / peak_rate(*choice.variant->kernel, device) / device.num_sms;
    }
  return count;
}

}  // namespace

TEST_CASE("peaks: estimated constants agree with data sheets and counted work") {
  CHECK(wrong_constants(mp::builtin_gemm_tuning()) == std::vector<std::string>{});
}

TEST_CASE("peaks: no prediction is faster than the peak of its units") {
  CHECK(impossible_predictions(mp::builtin_gemm_tuning()) == 0);
}

TEST_CASE("peaks injected: tables with injected bugs are detected") {
  // Constants of two kernels exchanged, a digit lost, a cost multiplied by ten.
  for (const char *const lines :
       {"sm_80 wmma_128x128x32_s3 0.5 5.9\nsm_80 wmma_64x64x32_s4 1.4 14.5",
        "sm_75 simt_128x16x16 0.6 84\nsm_75 simt_64x64x16 1.2 54",
        "sm_80 wmma_256x128x32_s3 2.5 2.8", "sm_80 dram_us_per_mb=6", "sm_75 scalar_load_us=44",
        "sm_80 scalar_load_us=1900", "sm_75 copy_us_per_mb=74", "sm_80 wmma_64x64x32_s4 5 5.9",
        "sm_80 launch_us=40", "sm_80 gemv 400 17", "sm_80 gemv 40 1.7"}) {
    CAPTURE(lines);
    CHECK(!wrong_constants(tuning_with(lines)).empty());
  }
  // A table in which an SM of an A100 would have 128 fp32 units.
  CHECK(impossible_predictions(tuning_with("sm_80 simt_128x128x16 3 136")) > 0);
}
