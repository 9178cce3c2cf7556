/* Interface between tests and the stub of NVML (nvml.c). */
#ifndef STUB_NVML_H
#define STUB_NVML_H

/** Zero-initialized: a GPU with all readings 0. */
struct stub_nvml {
  const char *pci_bus_id; /**< id of the only GPU */
  unsigned sm_mhz, memory_mhz, max_sm_mhz, milliwatts, limit_milliwatts, celsius;
  unsigned long long reasons;
  int is_silent; /**< returns "not supported" */
  int readings;  /**< number of readings of the SM clock */
};

#endif
