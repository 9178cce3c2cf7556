// NVML, the driver's library behind nvidia-smi: clocks, power, temperature.  Declared here because
// CUDA toolkits often lack its header.
// Source of names and values: NVML API Reference Guide, "Device Queries", "Clocks Event Reasons".
#pragma once

#include <cstdint>
#include <string>

#include "dynamic_library.h"

namespace mpbench {

namespace nvml {

using Status = int;  // nvmlReturn_t; 0 is success
using Device = struct nvmlDevice_st *;

enum ClockType : int { kSmClock = 1, kMemoryClock = 2 };
enum Sensor : int { kGpuDie = 0 };

/// Bits for the reasons of reduced clocks.
enum Reason : uint64_t {
  kSwPowerCap = 0x4,
  kSwThermal = 0x20,
  kHwThermal = 0x40,
  kHwPowerBrake = 0x80,
};

// Drivers before 535 lack the newer name of the last function, ...ClocksEventReasons.
#define MPBENCH_NVML_FUNCTIONS(X)                                                           \
  X(Status, init, nvmlInit_v2)                                                              \
  X(const char *, error_string, nvmlErrorString, Status)                                    \
  X(Status, get_driver_version, nvmlSystemGetDriverVersion, char *, unsigned length)        \
  X(Status, get_device, nvmlDeviceGetHandleByPciBusId_v2, const char *pci_bus_id, Device *) \
  X(Status, get_clock, nvmlDeviceGetClockInfo, Device, ClockType, unsigned *mhz)            \
  X(Status, get_max_clock, nvmlDeviceGetMaxClockInfo, Device, ClockType, unsigned *mhz)     \
  X(Status, get_power, nvmlDeviceGetPowerUsage, Device, unsigned *milliwatts)               \
  X(Status, get_power_limit, nvmlDeviceGetEnforcedPowerLimit, Device, unsigned *milliwatts) \
  X(Status, get_temperature, nvmlDeviceGetTemperature, Device, Sensor, unsigned *celsius)   \
  X(Status, get_reasons, nvmlDeviceGetCurrentClocksThrottleReasons, Device, unsigned long long *)
MPBENCH_TABLE(Functions, MPBENCH_NVML_FUNCTIONS)

}  // namespace nvml

/// State at one moment; NaN = not reported by the driver.
struct GpuReading {
  double sm_mhz, memory_mhz, power_w, temperature_c;
  uint64_t reasons;  ///< bits of nvml::Reason; 0 if not reported
};

/// One GPU; thread-safe.
class Nvml {
 public:
  /// @throws std::runtime_error if the library is missing or does not list the GPU.
  explicit Nvml(const std::string &pci_bus_id);

  GpuReading read() const;
  /// Empty = not reported by the driver.
  std::string driver_version() const;
  /// NaN = not reported by the driver.
  double max_sm_mhz() const;
  double power_limit_w() const;
  const DynamicLibrary &library() const { return library_; }

 private:
  DynamicLibrary library_;
  nvml::Functions nvml_;
  nvml::Device device_ = nullptr;
};

}  // namespace mpbench
