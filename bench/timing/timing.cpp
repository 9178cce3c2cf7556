#include "timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "bench/options.h"

namespace mpbench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFillerBytes = int64_t{64} << 20;
// A stream holds about a thousand launches before the host must wait; a call may be several
// launches.
constexpr int64_t kMaxCalls = 200;
constexpr int64_t kMaxBatches = 1000;
// Limit in time_host(): a call may be a dozen launches.
constexpr int64_t kHostCalls = 50;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

int64_t whole_between(double value, int64_t least, int64_t most) {
  return static_cast<int64_t>(
      std::clamp(std::round(value), static_cast<double>(least), static_cast<double>(most)));
}

/// Number of calls of `call_us` in a batch; one untimed call precedes them.
int64_t calls_in(double batch_us, double call_us, const Work &work) {
  return whole_between(batch_us / call_us, 1, std::min(kMaxCalls, work.most_calls() - 1));
}

/// `call_us`: one value per batch.
void set_quartiles(Timing &timing, std::vector<double> call_us) {
  timing.batches = static_cast<int64_t>(call_us.size());
  const Quartiles quartiles = quartiles_of(call_us);
  timing.batch_us = std::move(call_us);
  timing.q1_us = quartiles.q1;
  timing.median_us = quartiles.median;
  timing.q3_us = quartiles.q3;
}

/// Orders of works, another one each round: the work before may leave the GPU cool or hot.
class Rounds {
 public:
  explicit Rounds(size_t works) : order_(works) {
    std::iota(order_.begin(), order_.end(), size_t{0});
  }
  const std::vector<size_t> &next() {
    std::shuffle(order_.begin(), order_.end(), bits_);
    return order_;
  }

 private:
  std::vector<size_t> order_;
  std::mt19937 bits_{1};
};

}  // namespace

Timing timing_of(std::vector<double> call_us, int64_t calls_per_batch) {
  Timing timing{};
  set_quartiles(timing, std::move(call_us));
  timing.enqueue_us = timing.median_us;
  timing.calls_per_batch = calls_per_batch;
  return timing;
}

Quartiles ratio_between(const Timing &one, const Timing &other) {
  std::vector<double> ratios(one.batch_us.size());
  std::transform(one.batch_us.begin(), one.batch_us.end(), other.batch_us.begin(), ratios.begin(),
                 std::divides<>());
  return quartiles_of(std::move(ratios));
}

size_t fastest_of(const std::vector<Timing> &timings) {
  const auto fastest =
      std::min_element(timings.begin(), timings.end(),
                       [](const Timing &x, const Timing &y) { return x.median_us < y.median_us; });
  return static_cast<size_t>(fastest - timings.begin());
}

Pace normal_pace(const Machine &machine) {
  if (machine.on_host())
    return {.warm_up_us = 0, .batch_us = 1e3, .budget_us = 2e5, .least_batches = 5};
  return {.warm_up_us = 5e4, .batch_us = 2e3, .budget_us = 1e5, .least_batches = 20};
}

Pace brief_pace(const Machine &machine) {
  if (machine.on_host())
    return {.warm_up_us = 0, .batch_us = 1e3, .budget_us = 2e4, .least_batches = 3};
  return {.warm_up_us = 2e3, .batch_us = 5e2, .budget_us = 2e4, .least_batches = 20};
}

Pace pace_of(const Options &options, const Machine &machine) {
  return options.is_brief() ? brief_pace(machine) : normal_pace(machine);
}

double measuring_us(const Machine &machine, const Pace &pace, double flop) {
  // The software device needs about 1e5 us for the launches and data of a call.
  if (machine.is_counted()) return 1e5 + flop / 1e5;
  const double flop_per_us = machine.on_host() ? 1e4 : 1e8;
  const double call_us = flop / flop_per_us;
  const double least_us =
      static_cast<double>(pace.least_batches) * std::max(pace.batch_us, call_us);
  return 2 * call_us + pace.warm_up_us + std::max(pace.budget_us, least_us);
}

std::optional<GpuState> gpu_state_under(const Machine &machine, const Work &work,
                                        const Timing &timing, const std::string &during) {
  if (machine.on_host() || machine.is_counted()) return std::nullopt;
  constexpr double kLoadUs = 2e6;
  for (double us = 0; us < kLoadUs; us += timing.median_us) work();
  const std::optional<GpuState> state = machine.gpu_state(during);
  machine.synchronize();
  return state;
}

Stopwatch::Stopwatch(const Machine &machine) : machine_(machine) {
  if (machine.on_host() || machine.is_counted()) return;
  filler_ = Buffer(machine.context(), kFillerBytes);
  const Work fill = [this] { machine_.call(mp_memset, filler_.data(), 0, kFillerBytes); };
  constexpr int64_t kCalls = 50;
  run_batch(fill, kCalls, 0);
  filler_us_ = run_batch(fill, kCalls, 0).call_us;
}

std::vector<Timing> Stopwatch::time(const std::vector<Work> &works, const Pace &pace,
                                    const std::function<void()> &other) const {
  std::vector<Timing> timings(works.size());
  int64_t batches = kMaxBatches;
  for (size_t i = 0; i < works.size(); ++i) {
    const Batch one = warm_up(works[i], pace);
    timings[i].enqueue_us = one.enqueue_us;
    timings[i].calls_per_batch = calls_in(pace.batch_us, one.call_us, works[i]);
    const double batch_us = one.call_us * static_cast<double>(timings[i].calls_per_batch);
    // All works get equally many batches: the slowest one decides.
    const int64_t affordable = whole_between(pace.budget_us / batch_us, 1, kMaxBatches);
    batches = std::max(pace.least_batches, std::min(batches, affordable));
  }

  std::vector<std::vector<double>> call_us(works.size());
  Rounds rounds(works.size());
  std::optional<GpuWatch> watch;
  if (machine_.nvml() != nullptr) watch.emplace(*machine_.nvml());
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (const size_t i : rounds.next())
      call_us[i].push_back(
          run_batch(works[i], timings[i].calls_per_batch, timings[i].enqueue_us).call_us);
    if (other) other();
  }

  const std::optional<GpuLoad> gpu = watch ? std::optional(watch->stop()) : std::nullopt;
  for (size_t i = 0; i < works.size(); ++i) {
    set_quartiles(timings[i], std::move(call_us[i]));
    timings[i].gpu = gpu;
  }
  return timings;
}

Timing Stopwatch::sustain(const Work &work, double seconds) const {
  constexpr double kBatchUs = 2e3;
  const Batch one =
      warm_up(work, {.warm_up_us = 0, .batch_us = kBatchUs, .budget_us = 0, .least_batches = 1});
  Timing timing{};
  timing.enqueue_us = one.enqueue_us;
  timing.calls_per_batch = calls_in(kBatchUs, one.call_us, work);
  // The first half lets the clocks settle, the second is timed; each has at least one batch.
  std::vector<double> call_us;
  const auto run_for = [&](double us) {
    call_us.clear();
    const Clock::time_point start = Clock::now();
    do {
      call_us.push_back(run_batch(work, timing.calls_per_batch, one.enqueue_us).call_us);
    } while (us_since(start) < us);
  };
  run_for(seconds * 1e6 / 2);
  std::optional<GpuWatch> watch;
  if (machine_.nvml() != nullptr) watch.emplace(*machine_.nvml());
  run_for(seconds * 1e6 / 2);
  if (watch) timing.gpu = watch->stop();
  set_quartiles(timing, std::move(call_us));
  return timing;
}

std::vector<Timing> Stopwatch::time_host(const std::vector<Work> &works, int64_t batches) const {
  std::vector<Timing> timings(works.size());
  std::vector<double> expected_us;
  for (size_t i = 0; i < works.size(); ++i) {
    const int64_t calls = std::min(kHostCalls, works[i].most_calls() - 1);
    timings[i].calls_per_batch = calls;
    run_batch(works[i], calls, 0);  // the first call may load code
    expected_us.push_back(run_batch(works[i], calls, 0).enqueue_us);
  }
  std::vector<std::vector<double>> host_us(works.size());
  Rounds rounds(works.size());
  for (int64_t batch = 0; batch < batches; ++batch)
    for (const size_t i : rounds.next())
      host_us[i].push_back(
          run_batch(works[i], timings[i].calls_per_batch, expected_us[i]).enqueue_us);

  for (size_t i = 0; i < works.size(); ++i)
    timings[i] = timing_of(std::move(host_us[i]), timings[i].calls_per_batch);
  return timings;
}

Stopwatch::Batch Stopwatch::run_batch(const Work &work, int64_t calls, double enqueue_us) const {
  const CudaRuntime *const cuda = machine_.cuda();
  work.prepare();
  if (cuda != nullptr) {
    keep_busy(enqueue_us * static_cast<double>(calls + 1));
    work();  // not timed: leaves L2 in the state of mid-batch
    cuda->record_start();
  }
  const Clock::time_point start = Clock::now();
  for (int64_t call = 0; call < calls; ++call) work();
  const double enqueue_all_us = us_since(start);
  double device_us = enqueue_all_us;
  if (cuda != nullptr) {
    cuda->record_stop();
    device_us = cuda->elapsed_us();
  }
  const auto count = static_cast<double>(calls);
  return {.call_us = device_us / count, .enqueue_us = enqueue_all_us / count};
}

Stopwatch::Batch Stopwatch::warm_up(const Work &work, const Pace &pace) const {
  // The first call may load code; the second gives the number of calls per batch.
  run_batch(work, 1, 0);
  Batch one = run_batch(work, 1, 0);
  const Clock::time_point start = Clock::now();
  while (us_since(start) < pace.warm_up_us) {
    const int64_t calls = calls_in(pace.batch_us, one.call_us, work);
    one = run_batch(work, calls, one.enqueue_us);
  }
  return one;
}

void Stopwatch::keep_busy(double us) const {
  for (double busy_us = 0; busy_us < us; busy_us += filler_us_)
    machine_.call(mp_memset, filler_.data(), 0, kFillerBytes);
}

}  // namespace mpbench
