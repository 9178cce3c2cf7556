/* host_work [KERNEL M N K DTYPE]...: each dense product, three times, on the CPU, for
 *  test_host_work.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

enum { NUM_ARGUMENTS = 5, NUM_CALLS = 3 };

static mp_status_t multiply(mp_context_t context, char **argv) {
  const long m = atol(argv[1]), n = atol(argv[2]), k = atol(argv[3]);
  const mp_dtype_t dtype = strcmp(argv[4], "fp16") == 0 ? MP_FP16 : MP_FP32;
  mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, dtype, dtype);
  const mp_plan_t plan = mp_plan_default(argv[0]);
  desc.plan = &plan;
  const size_t element = mp_dtype_size(dtype);
  void *const a = calloc((size_t)(m * k), element), *const b = calloc((size_t)(k * n), element);
  void *const d = calloc((size_t)(m * n), element);
  mp_status_t status = MP_SUCCESS;
  for (int i = 0; i < NUM_CALLS && status == MP_SUCCESS; i++)
    status = mp_gemm(context, &desc, a, b, NULL, d, NULL, NULL, 0, NULL);
  free(a), free(b), free(d);
  return status;
}

int main(int argc, char **argv) {
  mp_context_config_t config = mp_context_config_default();
  mp_context_t context;
  config.device = MP_DEVICE_HOST;
  if (mp_context_create(&context, &config) != MP_SUCCESS) return 1;
  for (int i = 1; i + NUM_ARGUMENTS <= argc; i += NUM_ARGUMENTS)
    if (multiply(context, argv + i) != MP_SUCCESS) {
      fprintf(stderr, "%s\n", mp_last_error());
      return 1;
    }
  mp_context_destroy(context);
  return 0;
}
