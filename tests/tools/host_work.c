/* host_work KERNEL M N K DTYPE COUNT: COUNT times the same dense product on the CPU, for
 *  test_host_work.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpcore.h"

int main(int argc, char **argv) {
  mp_context_config_t config = mp_context_config_default();
  mp_context_t context;
  config.device = MP_DEVICE_HOST;
  if (argc != 7 || mp_context_create(&context, &config) != MP_SUCCESS) return 1;
  const long m = atol(argv[2]), n = atol(argv[3]), k = atol(argv[4]);
  const mp_dtype_t dtype = strcmp(argv[5], "fp16") == 0 ? MP_FP16 : MP_FP32;
  mp_gemm_desc_t desc = mp_gemm_desc_default(m, n, k, dtype, dtype);
  const mp_plan_t plan = mp_plan_default(argv[1]);
  desc.plan = &plan;
  const size_t element = mp_dtype_size(dtype);
  void *const a = calloc((size_t)(m * k), element), *const b = calloc((size_t)(k * n), element);
  void *const d = calloc((size_t)(m * n), element);
  for (int i = 0; i < atoi(argv[6]); i++)
    if (mp_gemm(context, &desc, a, b, NULL, d, NULL, NULL, 0, NULL) != MP_SUCCESS) {
      fprintf(stderr, "%s\n", mp_last_error());
      return 1;
    }
  free(a), free(b), free(d);
  mp_context_destroy(context);
  return 0;
}
