#include "measure.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "bench/gemm_problem.h"

namespace mptune {
namespace {

constexpr mp_dtype_t kDtype = MP_FP16;  // bf16 has the same rates

/// Of this thread.
double cpu_time_us() {
  std::timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

/// The least of several times of each work, in turns.  A CPU has other things to do, which a clock of
/// its own does not count; what they do to its caches makes times longer, never shorter.
std::vector<double> least_cpu_times(const std::vector<mpbench::Work> &works) {
  constexpr int kRounds = 5;
  std::vector<double> least(works.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < works.size(); ++i) {
      const double start = cpu_time_us();
      works[i]();
      least[i] = std::min(least[i], cpu_time_us() - start);
    }
  }
  return least;
}

/// As capi makes it of a descriptor; the data are aligned, as all of mp_malloc are.
mp::GemmProblem problem_of(const mp_gemm_desc_t &d) {
  mp::GemmProblem p{};
  p.m = d.m;
  p.n = d.n;
  p.k = d.k;
  p.batch_count = d.batch_count;
  p.op_a = d.op_a;
  p.op_b = d.op_b;
  p.dtype_ab = d.dtype_ab;
  p.dtype_cd = d.dtype_cd;
  p.alpha = d.alpha;
  p.beta = d.beta;
  p.a.ld = d.lda;
  p.b.ld = d.ldb;
  p.c.ld = d.ldc;
  p.d.ld = d.ldd;
  return p;
}

const mp::GemmVariant &variant_named(const std::string &name) {
  for (const mp::GemmVariant &variant : mp::gemm_variants())
    if (name == variant.name) return variant;
  throw std::runtime_error("the library has a kernel " + name +
                           " that this mptune was not built with");
}

Sample sample_of(const mp_gemm_desc_t &desc, const mp::Device &device, const std::string &name,
                 double us) {
  const mp::GemmProblem problem = problem_of(desc);
  const mp::GemmVariant &variant = variant_named(name);
  const mp::GemmCounter counter(*variant.kernel, variant.cluster, problem, device,
                                mp::has_vector_rows(problem));
  return {variant.kernel, counter.load(variant.split_k), us};
}

}  // namespace

mp::Device device_of(const mpbench::Machine &machine) {
  const mp_device_info_t &info = machine.info();
  mp::Device device{};
  device.target = info.target;
  device.arch = info.arch;
  device.num_sms = info.num_sms;
  device.smem_per_block = info.smem_per_block;
  device.l2_bytes = info.l2_bytes;
  return device;
}

mpbench::Machine open_machine(int32_t device) {
  constexpr int32_t kAllSms = 0;
  const bool on_host = mpbench::Machine(device).on_host();
  return mpbench::Machine(device, on_host ? 1 : kAllSms);
}

Measurer::Measurer(const mpbench::Machine &machine)
    : machine_(machine), device_(device_of(machine)), stopwatch_(machine), pool_(machine, kDtype) {}

std::vector<double> Measurer::times_us(const std::vector<mpbench::Work> &works) const {
  if (machine_.on_host()) return least_cpu_times(works);
  std::vector<double> us;
  for (const mpbench::Timing &timing : stopwatch_.time(works, mpbench::brief_pace(machine_)))
    us.push_back(timing.median_us);
  return us;
}

Measured Measurer::measure(const mpbench::Shape &shape) {
  const mp_gemm_desc_t desc = mpbench::make_desc(shape, kDtype, MP_DTYPE_NONE);
  mpbench::GemmProblem problem(machine_, pool_, desc);
  std::vector<mpbench::Work> works;
  for (const char *kernel : problem.kernels()) works.push_back(problem.own(kernel));
  const std::vector<double> us = times_us(works);

  Measured measured{.shape = shape, .runs = {}};
  for (size_t i = 0; i < works.size(); ++i) {
    const std::string name = problem.kernels()[i];
    measured.runs.push_back({name, sample_of(desc, device_, name, us[i])});
  }
  return measured;
}

}  // namespace mptune
