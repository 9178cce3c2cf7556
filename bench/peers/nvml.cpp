#include "nvml.h"

#include <limits>

namespace mpbench {
namespace {

/// Returns the value that get(..., &value) stores.
template <typename Get, typename... Arguments>
double value_of(Get get, Arguments... arguments) {
  unsigned value = 0;
  return get(arguments..., &value) == 0 ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

// nvmlShutdown is not called: NVML is used until the process ends.
Nvml::Nvml(const std::string &pci_bus_id) : library_({"libnvidia-ml.so.1"}) {
  nvml_.load(library_);
  const auto check = [&](nvml::Status status, const char *call) {
    if (status != 0)
      throw std::runtime_error(std::string(call) + ": " + nvml_.error_string(status));
  };
  check(nvml_.init(), "nvmlInit");
  check(nvml_.get_device(pci_bus_id.c_str(), &device_), "nvmlDeviceGetHandleByPciBusId");
}

GpuReading Nvml::read() const {
  unsigned long long reasons = 0;
  if (nvml_.get_reasons(device_, &reasons) != 0) reasons = 0;
  return {.sm_mhz = value_of(nvml_.get_clock, device_, nvml::kSmClock),
          .memory_mhz = value_of(nvml_.get_clock, device_, nvml::kMemoryClock),
          .power_w = 1e-3 * value_of(nvml_.get_power, device_),
          .temperature_c = value_of(nvml_.get_temperature, device_, nvml::kGpuDie),
          .reasons = reasons};
}

std::string Nvml::driver_version() const {
  char version[80] = {};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
  return nvml_.get_driver_version(version, sizeof version) == 0 ? version : std::string();
}

double Nvml::max_sm_mhz() const {
  return value_of(nvml_.get_max_clock, device_, nvml::kSmClock);
}

double Nvml::power_limit_w() const {
  return 1e-3 * value_of(nvml_.get_power_limit, device_);
}

}  // namespace mpbench
