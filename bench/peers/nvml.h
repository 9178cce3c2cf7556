// NVML, the driver's library behind nvidia-smi: clocks, power, temperature.  Declared here so that
// the bench builds without NVIDIA's headers; check_nvml.cpp compares the declarations with nvml.h,
// if it is on the include path.
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

struct Functions {
  Status (*init)();
  const char *(*error_string)(Status);
  Status (*get_driver_version)(char *, unsigned length);
  Status (*get_device)(const char *pci_bus_id, Device *);
  Status (*get_clock)(Device, ClockType, unsigned *mhz);
  Status (*get_max_clock)(Device, ClockType, unsigned *mhz);
  Status (*get_power)(Device, unsigned *milliwatts);
  Status (*get_power_limit)(Device, unsigned *milliwatts);
  Status (*get_temperature)(Device, Sensor, unsigned *celsius);
  Status (*get_reasons)(Device, unsigned long long *);
};

// Each function with its symbol name, for dlsym and for the comparison with the headers.  Drivers
// before 535 lack the newer name of the last one, ...ClocksEventReasons.
#define MPBENCH_NVML_FUNCTIONS(X)                     \
  X(init, nvmlInit_v2)                                \
  X(error_string, nvmlErrorString)                    \
  X(get_driver_version, nvmlSystemGetDriverVersion)   \
  X(get_device, nvmlDeviceGetHandleByPciBusId_v2)     \
  X(get_clock, nvmlDeviceGetClockInfo)                \
  X(get_max_clock, nvmlDeviceGetMaxClockInfo)         \
  X(get_power, nvmlDeviceGetPowerUsage)               \
  X(get_power_limit, nvmlDeviceGetEnforcedPowerLimit) \
  X(get_temperature, nvmlDeviceGetTemperature)        \
  X(get_reasons, nvmlDeviceGetCurrentClocksThrottleReasons)

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
