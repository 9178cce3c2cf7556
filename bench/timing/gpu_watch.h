// Clocks, power and temperature while something is timed.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/peers/nvml.h"

namespace mpbench {

/// What a GPU was like over some time.  NaN = the driver does not say.
struct GpuLoad {
  int64_t readings;
  double sm_mhz, least_sm_mhz;  ///< median and least
  double power_w;               ///< median; the driver averages over up to a second
  double temperature_c;         ///< highest
  double power_capped;  ///< share of the readings in which power held the clocks down, 0 to 1
  double heat_capped;   ///< the same for heat
};

/// @param readings  at least one
GpuLoad summarize(const std::vector<GpuReading> &readings);

/// Reads in a thread of its own, from when it is made until it is stopped.
class GpuWatch {
 public:
  explicit GpuWatch(const Nvml &nvml);
  GpuWatch(const GpuWatch &) = delete;
  GpuWatch &operator=(const GpuWatch &) = delete;
  ~GpuWatch();

  /// Once.  What was over before the first reading was due has one reading, of its end.
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
