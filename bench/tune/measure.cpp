#include "measure.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "bench/options.h"
#include "bench/shapes/selection.h"
#include "bench/suites/rank.h"

namespace mptune {
namespace {

/// CPU time of this thread.
double cpu_time_us() {
  std::timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

/// Minimum of several interleaved times of each work.  CPU time excludes other processes; their
/// effect on the caches only makes times longer.
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

mp::GemmPlan plan_named(const std::string &name, const mp::GemmProblem &problem,
                        const mp::Device &device) {
  mp::GemmPlan plan;
  const char *why = nullptr;
  if (mp::plan_named_gemm(shape_of(problem), {device, mp::builtin_gemm_tuning()}, name.c_str(),
                          &plan, &why))
    return plan;
  throw std::runtime_error("kernel " + name + " of the library cannot be predicted: " +
                           (why != nullptr ? why : "unknown to this mptune"));
}

mp::Device device_of(const mpbench::Machine &machine) {
  const mp_device_info_t &info = machine.info();
  return make_device(info.target, info.arch, info.num_sms, info.smem_per_block);
}

mp_gemm_desc_t desc_of(const mpbench::Shape &shape) {
  return mpbench::make_desc(shape, kDtype, MP_DTYPE_NONE);
}

}  // namespace

mp::Device make_device(mp_target_t target, int32_t arch, int32_t num_sms, int64_t smem_per_block) {
  mp::Device device{};
  device.target = target;
  device.arch = arch;
  device.has_wgmma = device.has_overlapping_maps = arch == 90;
  device.num_sms = num_sms;
  device.smem_per_block = smem_per_block;
  return device;
}

Run run_of(const mpbench::Shape &shape, const mp::Device &device, const std::string &kernel,
           double us) {
  const mp::GemmPlan plan = plan_named(kernel, mp::gemm_problem(desc_of(shape)), device);
  return {kernel, {plan.kernel, plan.cost, us}};
}

std::vector<mpbench::Shape> shapes_to_measure(const Options &options,
                                              const mpbench::Machine &machine) {
  mpbench::Options of_bench;
  of_bench.set = options.set;
  of_bench.home = options.home;
  of_bench.quick = machine.on_host();
  const std::string grid =
      options.home + "/tune/" + (machine.on_host() ? "grid_host.csv" : "grid_cuda.csv");
  const bool is_of_bench = options.set == "llm" || options.set == "deepbench";
  const std::vector<mpbench::Shape> shapes =
      is_of_bench ? mpbench::read_sets<mpbench::Shape>("gemm", of_bench, machine.on_host())
                  : mpbench::read_shape_file(options.set == "grid" ? grid : options.set);
  if (!options.quick) return shapes;
  constexpr size_t kEvery = 3;
  std::vector<mpbench::Shape> some;
  for (size_t i = 0; i < shapes.size(); i += kEvery) some.push_back(shapes[i]);
  return some;
}

Origin origin_of(const mpbench::Machine &machine) {
  return {.name = machine.info().name,
          .driver = machine.nvml() != nullptr ? machine.nvml()->driver_version() : "none",
          .date = mptools::utc_now(),
          .device = device_of(machine)};
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
  // There are two hundred works per shape, and only large differences between them matter.
  constexpr mpbench::Pace kPace{
      .warm_up_us = 500, .batch_us = 300, .budget_us = 3e3, .least_batches = 7};
  std::vector<double> us;
  for (const mpbench::Timing &timing : stopwatch_.time(works, kPace))
    us.push_back(timing.median_us);
  return us;
}

Measured Measurer::measure(const mpbench::Shape &shape) {
  mpbench::Problem problem(machine_, pool_, gemm_operation(machine_, shape, desc_of(shape)));
  const std::vector<double> us = times_us(works_of_kernels(problem));
  Measured measured{.shape = shape};
  for (size_t i = 0; i < us.size(); ++i)
    measured.runs.push_back(run_of(shape, device_, problem.operation().kernels[i], us[i]));
  return measured;
}

}  // namespace mptune
