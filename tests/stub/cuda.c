/* Stub of libcuda.so.1 for mpinfo, configured by environment variables:
 *   STUB_DRIVER_CUDA  supported CUDA version, default 13000; 0 = cuDriverGetVersion fails
 *   STUB_DRIVER_INIT  result of cuInit
 *   STUB_DRIVER_GPUS  number of GPUs, default 0
 *   STUB_DRIVER_ARCH  their architecture, default 90 */
#include <stddef.h>
#include <stdlib.h>

enum { INVALID_VALUE = 1, STUB_LIBRARY = 34, NO_DEVICE = 100 };

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text != NULL ? atoi(text) : otherwise;
}

int cuGetErrorName(int error, const char **name) {
  *name = error == STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY"
          : error == NO_DEVICE  ? "CUDA_ERROR_NO_DEVICE"
                                : NULL;
  return *name != NULL ? 0 : INVALID_VALUE;
}

int cuDriverGetVersion(int *version) {
  *version = number("STUB_DRIVER_CUDA", 13000);
  return *version != 0 ? 0 : STUB_LIBRARY;
}

int cuInit(unsigned flags) {
  return flags == 0 ? number("STUB_DRIVER_INIT", 0) : INVALID_VALUE;
}

int cuDeviceGetCount(int *count) {
  *count = number("STUB_DRIVER_GPUS", 0);
  return 0;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const int arch = number("STUB_DRIVER_ARCH", 90);
  (void)device;
  *value = attribute == 75 ? arch / 10 : arch % 10; /* major and minor of the compute capability */
  return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)141 << 30;
  return 0;
}
