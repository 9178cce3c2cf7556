// Problems and descriptions of devices for the tests of kernel selection; no device is required.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/gemm/cost.h"
#include "kernels/gemm/plan_text.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"
#include "tests/support/catch.h"
#include "tests/support/input_values.h"

namespace mptest {

constexpr mp::Device device_of(mp_target_t target, int arch, int num_sms, int64_t smem_per_block,
                               bool has_wgmma) {
  mp::Device device{};
  device.target = target;
  device.arch = arch;
  device.num_sms = num_sms;
  device.smem_per_block = smem_per_block;
  device.has_wgmma = device.has_overlapping_maps = has_wgmma;
  return device;
}
constexpr mp::Device cuda_device(int arch, int num_sms, int64_t smem_per_block) {
  return device_of(MP_TARGET_CUDA, arch, num_sms, smem_per_block, arch == 90);
}

constexpr mp::Device kV100 = cuda_device(70, 80, 96 << 10);
constexpr mp::Device kT4 = cuda_device(75, 40, 64 << 10);
constexpr mp::Device kA100 = cuda_device(80, 108, 163 << 10);
constexpr mp::Device kL40s = cuda_device(89, 142, 99 << 10);
constexpr mp::Device kH200 = cuda_device(90, 132, 232448);
constexpr mp::Device kH20 = cuda_device(90, 78, 232448);  ///< Hopper with the fewest SMs
constexpr mp::Device kB200 = cuda_device(100, 148, 232448);
constexpr mp::Device kRtx5090 = cuda_device(120, 170, 99 << 10);
/// An H200 for a build without sm_90a, or whose PTX the driver compiles.
constexpr mp::Device kH200WithoutWgmma = device_of(MP_TARGET_CUDA, 90, 132, 232448, false);
constexpr mp::Device kHost = device_of(MP_TARGET_HOST, 90, 2, 232448, true);
constexpr mp::Device kDevices[] = {kV100, kT4, kA100, kL40s, kH200, kB200, kRtx5090, kHost};

/// Returns a dense FP16 product.
inline mp::GemmProblem problem(int64_t m, int64_t n, int64_t k, mp_op_t op_a = MP_OP_N,
                               mp_op_t op_b = MP_OP_T) {
  mp::GemmProblem p{};
  p.out.m = m;
  p.out.n = n;
  p.k = k;
  p.out.batch_count = 1;
  p.op_a = op_a;
  p.op_b = op_b;
  p.dtype_ab = p.out.dtype = MP_FP16;
  p.a.ld = op_a == MP_OP_N ? k : m;
  p.b.ld = op_b == MP_OP_N ? n : k;
  p.out.c.ld = p.out.d.ld = n;
  return p;
}

inline mp::GemmProblem with_batch(mp::GemmProblem p, int64_t items) {
  p.out.batch_count = items;
  p.a.stride = p.out.m * p.k;
  p.b.stride = p.k * p.out.n;
  p.out.c.stride = p.out.d.stride = p.out.m * p.out.n;
  return p;
}

inline mp::GemmProblem with_fp32_d(mp::GemmProblem p, float beta) {
  p.out.dtype = MP_FP32;
  p.out.beta = beta;
  return p;
}

inline mp::GemmProblem with_inputs(mp::GemmProblem p, mp_dtype_t dtype) {
  p.dtype_ab = dtype;
  return p;
}

inline mp::GemmProblem with_ld_of_d(mp::GemmProblem p, int64_t ld) {
  p.out.d.ld = ld;
  return p;
}

inline mp::GemmProblem with_pointers(mp::GemmProblem p, int64_t items) {
  static const void *const pointers[1] = {};
  p.out.batch_count = items;
  p.a.items = p.b.items = p.out.c.items = p.out.d.items = pointers;
  return p;
}

/// Returns the built-in table with these lines replaced.
inline mp::GemmTuning tuning_with(const std::string &lines) {
  std::string why;
  const std::shared_ptr<const mp::GemmTuning> tuning = mp::parse_gemm_tuning(lines, &why);
  INFO(why);
  REQUIRE(tuning != nullptr);
  return *tuning;
}

constexpr bool kAligned = true;

/// @param aligned  false: A and B are aligned only to their elements
inline mp::GemmShape shape(const mp::GemmProblem &p, bool aligned = kAligned) {
  mp::GemmShape s = mp::shape_of(p);
  if (!aligned) s.a.alignment = s.b.alignment = 2;
  return s;
}

inline mp::GemmPlan plan_of(const mp::GemmProblem &p, const mp::Device &device,
                            const mp::GemmTuning &tuning = mp::builtin_gemm_tuning(),
                            bool aligned = kAligned, size_t workspace_bytes = SIZE_MAX) {
  return mp::plan_gemm(shape(p, aligned), {device, tuning, workspace_bytes});
}

inline std::vector<mp::RankedGemm> ranking(
    const mp::GemmProblem &p, const mp::Device &device, bool aligned = kAligned,
    const mp::GemmTuning &tuning = mp::builtin_gemm_tuning()) {
  return mp::rank_gemm(shape(p, aligned), {device, tuning});
}

inline std::string best_name(const mp::GemmProblem &p, const mp::Device &device) {
  return plan_of(p, device).name;
}

/// Returns the reason why the kernel does not support the problem, or an empty string.
inline std::string why_not(const std::string &name, const mp::GemmProblem &p,
                           const mp::Device &device, bool aligned = kAligned) {
  mp::GemmPlan plan;
  const char *why;
  if (mp::plan_named_gemm(shape(p, aligned), {device, mp::builtin_gemm_tuning()}, name.c_str(),
                          &plan, &why))
    return {};
  return why != nullptr ? why : "unknown";
}

inline mp::GemmPlan plan_named(const char *name, const mp::GemmProblem &p, const mp::Device &device,
                               const mp::GemmTuning &tuning = mp::builtin_gemm_tuning(),
                               bool aligned = kAligned) {
  mp::GemmPlan plan{};
  const char *why;
  REQUIRE(mp::plan_named_gemm(shape(p, aligned), {device, tuning}, name, &plan, &why));
  return plan;
}

inline const mp::GemmKernel &kernel_named(std::string_view name) {
  for (const mp::GemmKernel &kernel : mp::gemm_kernels())
    if (name == kernel.name) return kernel;
  throw std::invalid_argument("no kernel " + std::string(name));
}

}  // namespace mptest
