#include "gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "quartiles.h"

namespace mpbench {
namespace {

// A batch lasts 2 ms and a row half a second: some dozens of readings at little cost to the host.
constexpr std::chrono::milliseconds kInterval{20};

constexpr uint64_t kPowerReasons = nvml::kSwPowerCap | nvml::kHwPowerBrake;
constexpr uint64_t kHeatReasons = nvml::kSwThermal | nvml::kHwThermal;

/// Values in ascending order, without those that the driver does not report.
std::vector<double> known(const std::vector<GpuReading> &readings, double GpuReading::*field) {
  std::vector<double> values;
  for (const GpuReading &reading : readings)
    if (!std::isnan(reading.*field)) values.push_back(reading.*field);
  std::sort(values.begin(), values.end());
  return values;
}

double share_with(const std::vector<GpuReading> &readings, uint64_t reasons) {
  const auto count = std::count_if(readings.begin(), readings.end(),
                                   [&](const GpuReading &r) { return (r.reasons & reasons) != 0; });
  return static_cast<double>(count) / static_cast<double>(readings.size());
}

}  // namespace

GpuLoad summarize(const std::vector<GpuReading> &readings) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const auto median = [](const std::vector<double> &values) {
    return values.empty() ? kUnknown : quartiles_of(values).median;
  };
  const std::vector<double> sm_mhz = known(readings, &GpuReading::sm_mhz);
  const std::vector<double> temperature_c = known(readings, &GpuReading::temperature_c);
  return {.readings = static_cast<int64_t>(readings.size()),
          .sm_mhz = median(sm_mhz),
          .least_sm_mhz = sm_mhz.empty() ? kUnknown : sm_mhz.front(),
          .power_w = median(known(readings, &GpuReading::power_w)),
          .temperature_c = temperature_c.empty() ? kUnknown : temperature_c.back(),
          .power_capped = share_with(readings, kPowerReasons),
          .heat_capped = share_with(readings, kHeatReasons)};
}

GpuWatch::GpuWatch(const Nvml &nvml) : nvml_(nvml), thread_([this] { watch(); }) {}

GpuWatch::~GpuWatch() {
  end_thread();
}

GpuLoad GpuWatch::stop() {
  end_thread();
  if (readings_.empty()) readings_.push_back(nvml_.read());
  return summarize(readings_);
}

void GpuWatch::end_thread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ends_.notify_one();
  thread_.join();
}

void GpuWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, kInterval, [this] { return has_ended_; }))
    readings_.push_back(nvml_.read());
}

}  // namespace mpbench
