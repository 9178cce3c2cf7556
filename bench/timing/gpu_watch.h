// Clocks, power and temperature of a GPU during a measurement.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/peers/nvml.h"

namespace mpbench {

/// State of a GPU over some time.  NaN = not reported by the driver.
struct GpuLoad {
  int64_t readings;
  double sm_mhz, least_sm_mhz;  ///< median and least
  double power_w;               ///< median; the driver averages over up to a second
  double temperature_c;         ///< highest
  double power_capped;          ///< fraction of readings with clocks limited by power, 0 to 1
  double heat_capped;           ///< fraction with clocks limited by heat
};

/// @param readings  at least one
GpuLoad summarize(const std::vector<GpuReading> &readings);

/// Polls the GPU from a separate thread, from construction to stop().
class GpuWatch {
 public:
  explicit GpuWatch(const Nvml &nvml);
  GpuWatch(const GpuWatch &) = delete;
  GpuWatch &operator=(const GpuWatch &) = delete;
  ~GpuWatch();

  /// Stops polling; may be called once.  An interval without a reading gets one at its end.
  GpuLoad stop();

 private:
  void watch();
  void end_thread();

  const Nvml &nvml_;
  std::vector<GpuReading> readings_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace mpbench
