/* What a test tells the NVML that is none, see nvml.c. */
#ifndef STUB_NVML_H
#define STUB_NVML_H

/** Zero is a GPU that answers every question with 0. */
struct stub_nvml {
  const char *pci_bus_id; /**< of the only GPU */
  unsigned sm_mhz, memory_mhz, max_sm_mhz, milliwatts, limit_milliwatts, celsius;
  unsigned long long reasons;
  int is_silent; /**< it answers "not supported" */
  int readings;  /**< how often it was asked for the SM clock */
};

#endif
