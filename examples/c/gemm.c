/* Multiplies two host matrices on the device and prints the result.
 *
 *   cc gemm.c $(pkg-config --cflags --libs mpcore) -o gemm && ./gemm
 */
#include <stdio.h>
#include <stdlib.h>

#include "mpcore.h"

#define CHECK(call) \
  if ((call) != MP_SUCCESS) exit((fprintf(stderr, "%s\n", mp_last_error()), 1))

enum { M = 3, N = 2, K = 4 };

int main(void) {
  const float a[M * K] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; /* row by row */
  const float b[K * N] = {1, 0, 0, 1, 1, 0, 0, 1};
  float d[M * N];

  mp_context_t context;
  CHECK(mp_context_create(&context, NULL)); /* the GPU if there is one, else the CPU */

  /* Matrices are in device memory, and tensor cores multiply 16-bit values. */
  void *fp32, *a_fp16, *b_fp16, *d_fp32;
  CHECK(mp_malloc(context, &fp32, sizeof a));
  CHECK(mp_malloc(context, &a_fp16, M * K * 2));
  CHECK(mp_malloc(context, &b_fp16, K * N * 2));
  CHECK(mp_malloc(context, &d_fp32, sizeof d));
  CHECK(mp_memcpy(context, fp32, a, sizeof a, NULL));
  CHECK(mp_cast(context, fp32, MP_FP32, a_fp16, MP_FP16, M * K, NULL));
  CHECK(mp_memcpy(context, fp32, b, sizeof b, NULL));
  CHECK(mp_cast(context, fp32, MP_FP32, b_fp16, MP_FP16, K * N, NULL));

  /* d = a b: fp16 operands, fp32 accumulation and result. */
  const mp_gemm_desc_t desc = mp_gemm_desc_default(M, N, K, MP_FP16, MP_FP32);
  CHECK(mp_gemm(context, &desc, a_fp16, b_fp16, NULL, d_fp32, NULL, NULL, 0, NULL));

  CHECK(mp_memcpy(context, d, d_fp32, sizeof d, NULL));
  CHECK(mp_stream_sync(context, NULL)); /* calls are asynchronous; wait here */
  for (int row = 0; row < M; row++) printf("%g %g\n", (double)d[row * N], (double)d[row * N + 1]);

  mp_free(context, fp32);
  mp_free(context, a_fp16);
  mp_free(context, b_fp16);
  mp_free(context, d_fp32);
  mp_context_destroy(context);
  return 0;
}
