/* Stub of libnvidia-ml.so.1: the functions that the bench loads, without a GPU. */
#include "nvml.h"

#include <string.h>

struct stub_nvml stub_nvml;

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6 };

static int answer(unsigned value, unsigned *out) {
  if (stub_nvml.is_silent) return NOT_SUPPORTED;
  *out = value;
  return 0;
}

int nvmlInit_v2(void) {
  return 0;
}

const char *nvmlErrorString(int status) {
  return status == NOT_FOUND ? "Not Found" : "Not Supported";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
  strncpy(version, "1.2.3", length);
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) {
  if (strcmp(id, stub_nvml.pci_bus_id) != 0) return NOT_FOUND;
  *device = &stub_nvml;
  return 0;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz) {
  struct stub_nvml *gpu = device;
  gpu->readings += type == 1;
  return answer(type == 1 ? gpu->sm_mhz : type == 2 ? gpu->memory_mhz : 0, mhz);
}

int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *mhz) {
  struct stub_nvml *gpu = device;
  return answer(type == 1 ? gpu->max_sm_mhz : 0, mhz);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  struct stub_nvml *gpu = device;
  return answer(gpu->milliwatts, milliwatts);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
  struct stub_nvml *gpu = device;
  return answer(gpu->limit_milliwatts, milliwatts);
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) {
  struct stub_nvml *gpu = device;
  return answer(sensor == 0 ? gpu->celsius : 0, celsius);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  struct stub_nvml *gpu = device;
  if (gpu->is_silent) return NOT_SUPPORTED;
  *reasons = gpu->reasons;
  return 0;
}
