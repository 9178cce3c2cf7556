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
  test_core();
  test_defaults();
  test_gemm();
  test_gemm_grouped();
  test_gemm_ragged();
  test_conv();
  test_tensors();
  test_scaler();
  test_optimizer();
  test_model();
  test_comm();
  test_step();
  test_softmax_xent();
  test_linear_xent();
  test_layers();
  test_norm();
  test_pointwise();
  test_rnn();
  test_plan();
  test_sequences();
  test_transformer();
  test_attention();
  test_overlap();
  test_autocast();
  test_graph();
  return finish();
}
