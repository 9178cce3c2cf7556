/* The C ABI as a C99 program sees it: every documented error of every function once, and what a
 * caller may rely on when a call fails.  Prints one line per case.
 *
 * The cases are in core.c, gemm.c, ..., one file per group of header sections.
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

int main(void) {
  if (!start()) return EXIT_FAILURE;
#define RUN_TEST(test) test();
  ALL_TESTS(RUN_TEST)
  return finish();
}
