// Compares the declarations of nvml.h with NVIDIA's, at compile time; empty where those are not on the
// include path.
#if __has_include(<nvml.h>)

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#if defined(NVML_API_VERSION)  // hwloc has a header of that name too

#include "nvml.h"
#include "same_call.h"

namespace mpbench {
namespace {

constexpr nvml::Functions kNvml{};
static_assert(same_call(kNvml.init, nvmlInit_v2));
static_assert(same_call(kNvml.error_string, nvmlErrorString));
static_assert(same_call(kNvml.get_driver_version, nvmlSystemGetDriverVersion));
static_assert(same_call(kNvml.get_device, nvmlDeviceGetHandleByPciBusId_v2));
static_assert(same_call(kNvml.get_clock, nvmlDeviceGetClockInfo));
static_assert(same_call(kNvml.get_max_clock, nvmlDeviceGetMaxClockInfo));
static_assert(same_call(kNvml.get_power, nvmlDeviceGetPowerUsage));
static_assert(same_call(kNvml.get_power_limit, nvmlDeviceGetEnforcedPowerLimit));

static_assert(int{NVML_SUCCESS} == 0);
static_assert(int{nvml::kSmClock} == int{NVML_CLOCK_SM});
static_assert(int{nvml::kMemoryClock} == int{NVML_CLOCK_MEM});
static_assert(int{nvml::kGpuDie} == int{NVML_TEMPERATURE_GPU});
static_assert(nvml::kSwPowerCap == nvmlClocksThrottleReasonSwPowerCap);
static_assert(nvml::kSwThermal == nvmlClocksThrottleReasonSwThermalSlowdown);
static_assert(nvml::kHwThermal == nvmlClocksThrottleReasonHwThermalSlowdown);
static_assert(nvml::kHwPowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown);

// Both are deprecated since CUDA 13 and work with every driver.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static_assert(same_call(kNvml.get_temperature, nvmlDeviceGetTemperature));
static_assert(same_call(kNvml.get_reasons, nvmlDeviceGetCurrentClocksThrottleReasons));
#pragma GCC diagnostic pop

}  // namespace
}  // namespace mpbench

#endif
#endif
