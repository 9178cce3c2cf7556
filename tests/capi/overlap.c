/* Outputs that share memory with arguments that tests/support/calls/test_arguments.cpp does not
 * move: matrices in columns of a wider matrix, items of a group, arrays of pointers, and arguments
 * that no call of the catalog has.  Matrices have 16 x 16 elements of fp32: 1 KiB. */
#include "harness.h"

enum { kSide = 16, kElems = kSide * kSide, kBytes = 4 * kElems };
enum { kFirst = 0, kSecond = kBytes, kThird = 2 * kBytes, kOut = 3 * kBytes };

/** Offsets at which an argument of `bytes` bytes has the last or the first element of kOut. */
#define ENDS(bytes) \
  { kOut + kBytes - 4, kOut - (bytes) + 4 }

/** aux and bias of a backward pass are read. */
static void test_gemm_of_matrices(void) {
  const mp_gemm_desc_t d = mp_gemm_desc_default(kSide, kSide, kSide, MP_FP32, MP_FP32);
  void *const a = at(kFirst), *const b = at(kSecond), *const D = at(kOut);
  mp_epilogue_t e = mp_epilogue_default();
  e.activation = MP_ACT_DRELU;
  const size_t matrices[] = ENDS(kBytes), biases[] = ENDS(4 * kSide);
  for (int i = 0; i < 2; i++) {
    e.aux = at(matrices[i]);
    INVALID(mp_gemm, (context, &d, a, b, NULL, D, &e, NULL, 0, NULL), "D");
    e.aux = at(kThird), e.bias = at(biases[i]), e.dtype_bias = MP_FP32;
    INVALID(mp_gemm, (context, &d, a, b, NULL, D, &e, NULL, 0, NULL), "D");
    e.bias = NULL;
  }
  e.aux = D;
  INVALID(mp_gemm, (context, &d, a, b, NULL, D, &e, NULL, 0, NULL), "D");
  const void *const *arrays = at(kFirst), *const *others = at(kSecond);
  INVALID(mp_gemm_batched, (context, &d, arrays, others, NULL, at(kFirst), NULL, NULL, 0, NULL),
          "D");
  INVALID(mp_gemm_batched, (context, &d, arrays, others, NULL, at(kSecond), NULL, NULL, 0, NULL),
          "D");
}

/** D in columns of a wider matrix that A and B do not use. */
static void test_columns(void) {
  mp_gemm_desc_t d = mp_gemm_desc_default(8, 8, 8, MP_FP32, MP_FP32);
  d.ld_a = d.ld_b = d.ld_c = d.ld_d = 24;
  reset();
  WORKS(mp_gemm(context, &d, at(0), at(32), NULL, at(64), NULL, NULL, 0, NULL));
  d.batch_count = 2, d.stride_a = d.stride_b = d.stride_d = d.stride_c = 8 * 24;
  WORKS(mp_gemm(context, &d, at(0), at(32), NULL, at(64), NULL, NULL, 0, NULL));
  INVALID(mp_gemm, (context, &d, at(0), at(36), NULL, at(64), NULL, NULL, 0, NULL), "D");
  d.ld_b = 25; /* rows of B overlap rows of D */
  d.batch_count = 1;
  INVALID(mp_gemm, (context, &d, at(0), at(32), NULL, at(64), NULL, NULL, 0, NULL), "D");
}

/** Two items of a group that write the same elements, or adjacent elements. */
static void test_group(void) {
  const mp_gemm_desc_t d = mp_gemm_desc_default(0, 0, 0, MP_FP32, MP_FP32);
  mp_gemm_group_item_t items[3];
  for (int i = 0; i < 3; i++) {
    items[i] = mp_gemm_group_item_default(8, 8, 8);
    items[i].A = at(kFirst), items[i].B = at(kSecond);
    items[i].D = at(kOut + 32 * (size_t)i), items[i].ld_d = 24;
  }
  reset();
  WORKS(mp_gemm_grouped(context, &d, 3, items, NULL, NULL, 0, NULL));
  reset();
  items[2].D = at(kOut + 4);
  INVALID(mp_gemm_grouped, (context, &d, 3, items, NULL, NULL, 0, NULL), "items[2]");
}

static void test_softmax_lengths(void) {
  mp_softmax_desc_t d = mp_softmax_desc_default(kSide, kSide, MP_FP32);
  d.mask = MP_SOFTMAX_MASK_LENGTHS;
  d.mask_rows = 1;
  const size_t lengths[] = ENDS(4 * kSide);
  for (int i = 0; i < 2; i++) {
    INVALID(mp_softmax_forward, (context, &d, at(kFirst), at(lengths[i]), at(kOut), NULL), "y");
    INVALID(mp_softmax_backward,
            (context, &d, at(kFirst), at(kSecond), at(lengths[i]), at(kOut), NULL, NULL), "dx");
  }
}

static void test_copies(void) {
  const size_t sources[] = ENDS(kBytes);
  reset();
  WORKS(mp_cast(context, at(kOut), MP_FP32, at(kOut), MP_FP32, kElems, NULL));
  WORKS(mp_memcpy(context, at(kOut), at(kOut), kBytes, NULL));
  reset();
  for (int i = 0; i < 2; i++) {
    INVALID(mp_cast, (context, at(sources[i]), MP_FP32, at(kOut), MP_FP32, kElems, NULL), "dst");
    INVALID(mp_memcpy, (context, at(kOut), at(sources[i]), kBytes, NULL), "dst");
  }
}

void test_overlap(void) {
  test_gemm_of_matrices();
  test_columns();
  test_group();
  test_softmax_lengths();
  test_copies();
}
