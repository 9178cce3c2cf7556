/* The C ABI as a C99 program sees it: every documented error of every function once, and what a
 * caller may rely on when a call fails.  Prints one line per case.
 *
 * The cases are in capi_core.c, capi_gemm.c, ..., one file per group of header sections.
 */
#include <stdio.h>
#include <stdlib.h>

#include "capi_harness.h"

#ifdef __SANITIZE_ADDRESS__
/* One case asks for 2^60 bytes: the answer is to be NULL, not an abort. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1";
}
#endif

int main(void) {
  if (!start()) return EXIT_FAILURE;
  test_core();
  test_gemm();
  test_tensors();
  test_scaler();
  test_optimizer();
  test_train();
  return finish();
}
