// Compile-time comparison of the declarations of nvml.h with NVIDIA's; empty if its header is not
// on the include path.
#if __has_include(<nvml.h>)

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#if defined(NVML_API_VERSION)  // hwloc has a header with the same name

#include "nvml.h"
#include "same_call.h"

namespace mpbench {
namespace {

// Two functions are deprecated since CUDA 13 and work with every driver.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
MPBENCH_SAME_CALLS(nvml::Functions, MPBENCH_NVML_FUNCTIONS, MPBENCH_SAME_CALL)
#pragma GCC diagnostic pop

static_assert(int{NVML_SUCCESS} == 0);
static_assert(int{nvml::kSmClock} == int{NVML_CLOCK_SM});
static_assert(int{nvml::kMemoryClock} == int{NVML_CLOCK_MEM});
static_assert(int{nvml::kGpuDie} == int{NVML_TEMPERATURE_GPU});
static_assert(nvml::kSwPowerCap == nvmlClocksThrottleReasonSwPowerCap);
static_assert(nvml::kSwThermal == nvmlClocksThrottleReasonSwThermalSlowdown);
static_assert(nvml::kHwThermal == nvmlClocksThrottleReasonHwThermalSlowdown);
static_assert(nvml::kHwPowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown);

}  // namespace
}  // namespace mpbench

#endif
#endif
