/* mpcore/gemm.h.  A is 4 x 8, B is 8 x 16, C and D are 4 x 16, all fp16, in separate kilobytes
 * of the arena. */
#define MP_ENABLE_EXPERIMENTAL
#include <math.h>
#include <stdio.h>

#include "harness.h"

enum { kA = 0, kB = 1024, kC = 2048, kD = 3072, kExtra = 4096, kWorkspace = 8192 };

static mp_gemm_desc_t good_desc(void) {
  return mp_gemm_desc_default(4, 16, 8, MP_FP16, MP_FP16);
}

static mp_gemm_desc_t good_strided_desc(void) {
  mp_gemm_desc_t d = good_desc();
  d.batch_count = 2;
  d.stride_a = d.m * d.k;
  d.stride_c = d.stride_d = d.m * d.n;
  return d;
}

static mp_status_t gemm(const mp_gemm_desc_t *d, const mp_epilogue_t *e) {
  return mp_gemm(context, d, at(kA), at(kB), at(kC), at(kD), e, NULL, 0, NULL);
}

/* ---------------------------------------------------------------- descriptor */

static mp_gemm_desc_t good_transposed_desc(void) {
  mp_gemm_desc_t d = good_desc();
  d.op_a = d.op_b = MP_OP_T;
  d.ld_a = d.m;
  d.ld_b = d.k;
  return d;
}

CALL_OF(call_gemm, gemm(s, NULL))
CALL_OF(call_workspace_size, mp_gemm_workspace_size(context, s, NULL, &out.bytes))

CALL_OF(call_kernel_info, mp_gemm_kernel_info(context, s, 0, &INITIALIZED(mp_kernel_info_t)))

/** Returns the name of the index-th kernel that supports the problem; NULL after the last. */
static const char *kernel_of(const mp_gemm_desc_t *d, int32_t index) {
  mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
  return mp_gemm_kernel_info(context, d, index, &info) == MP_SUCCESS && info.reason == NULL
             ? info.name
             : NULL;
}

/** Checks fields that every function with a descriptor rejects. */
static void check_desc(const char *function, mp_status_t (*call)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_gemm_desc_t, op_a, 0),
      INTS(mp_gemm_desc_t, op_b, -1),
      INTS(mp_gemm_desc_t, dtype_ab, MP_DTYPE_NONE, invalid_dtype()),
      INTS(mp_gemm_desc_t, dtype_cd, MP_DTYPE_NONE, 99),
      INTS(mp_gemm_desc_t, batch_count, -1),
      INTS(mp_gemm_desc_t, m, -1),
      INTS(mp_gemm_desc_t, n, -1),
      INTS(mp_gemm_desc_t, k, -1),
      INTS(mp_gemm_desc_t, ld_a, 7, INT64_MAX),
      INTS(mp_gemm_desc_t, ld_b, 15),
      INTS(mp_gemm_desc_t, ld_c, 15),
      INTS(mp_gemm_desc_t, ld_d, 0, INT64_MAX / 4),
      INTS(mp_gemm_desc_t, stride_a, -1),
      INTS(mp_gemm_desc_t, stride_b, -1),
      INTS(mp_gemm_desc_t, stride_c, -1),
      INTS(mp_gemm_desc_t, stride_d, -1),
  };
  const mp_gemm_desc_t initial = good_desc();
  CHECK_STRUCT(function, "desc", initial, call, fields);

  const struct field_case strided_fields[] = {
      INTS(mp_gemm_desc_t, stride_d, 63 /* the last element is shared */, 0),
      INTS(mp_gemm_desc_t, stride_b, INT64_MAX),
  };
  const mp_gemm_desc_t initial_strided_desc = good_strided_desc();
  CHECK_FIELDS(function, "desc (strided)", initial_strided_desc, call, strided_fields);

  const struct field_case transposed_fields[] = {
      INTS(mp_gemm_desc_t, ld_a, 3),
      INTS(mp_gemm_desc_t, ld_b, 7),
  };
  const mp_gemm_desc_t initial_transposed_desc = good_transposed_desc();
  CHECK_FIELDS(function, "desc (transposed)", initial_transposed_desc, call, transposed_fields);
}

/* ---------------------------------------------------------------- epilogue */

static mp_epilogue_t good_epilogue(void) {
  mp_epilogue_t e = mp_epilogue_default();
  e.bias = at(kExtra);
  e.dtype_bias = MP_FP32;
  e.aux = at(kExtra + 1024);
  return e;
}

CALL_OF(call_epilogue, gemm(REF(mp_gemm_desc_t, good_desc()), s))

CALL_OF(call_strided_epilogue, gemm(REF(mp_gemm_desc_t, good_strided_desc()), s))

static void test_epilogue(void) {
  const mp_epilogue_t initial = good_epilogue();
  check_epilogue(SUBJECT("mp_gemm", "epilogue", initial, call_epilogue), 16);

  const struct field_case strided_fields[] = {
      INTS(mp_epilogue_t, ld_aux, 17), /* items farther apart than D's */
  };
  CHECK_FIELDS("mp_gemm", "epilogue (strided)", initial, call_strided_epilogue, strided_fields);

  const mp_gemm_desc_t d = good_desc();
  mp_epilogue_t e = mp_epilogue_default();
  e.activation = MP_ACT_DRELU;
  INVALID(mp_gemm, (context, &d, at(kA), at(kB), NULL, at(kD), &e, NULL, 0, NULL), "aux");
  e.activation = MP_ACT_DGELU;
  INVALID(mp_gemm, (context, &d, at(kA), at(kB), NULL, at(kD), &e, NULL, 0, NULL), "aux");
}

/* The number of tiles must fit into 31 bits.  In 32 bits, that of the first shape would be 0. */
static void test_max_tiles(void) {
  const struct {
    int64_t m, n;
    int32_t batch_count;
  } shapes[] = {{INT64_C(1) << 39, 128, 1}, {INT64_C(1) << 35, 16, 1}, {17, 1, INT32_MAX}};
  for (size_t i = 0; i < COUNT(shapes); i++) {
    mp_gemm_desc_t d = mp_gemm_desc_default(shapes[i].m, shapes[i].n, 8, MP_FP32, MP_FP32);
    d.batch_count = shapes[i].batch_count;
    FAILS(mp_gemm_workspace_size, (context, &d, NULL, &out.bytes), MP_ERROR_UNSUPPORTED, "m");
    FAILS(mp_gemm, (context, &d, at(kA), at(kB), NULL, at(kD), NULL, NULL, 0, NULL),
          MP_ERROR_UNSUPPORTED, "m");
    d.batch_count--;
    d.m = 16;
    WORKS(mp_gemm_batched_workspace_size(context, &d, NULL, &out.bytes));
  }
}

/* ---------------------------------------------------------------- operands and workspace */

static void test_operands(void) {
  void *const A = at(kA), *const B = at(kB), *const C = at(kC), *const D = at(kD);
  mp_gemm_desc_t d = good_desc();
  FAILS(mp_gemm, (context, &d, A, B, at(1), D, NULL, NULL, 0, NULL), MP_ERROR_MISALIGNED, "C");
  WORKS(mp_gemm(context, &d, A, B, NULL, D, NULL, at(kWorkspace), 512, NULL));

  d.beta = 0.5f;
  INVALID(mp_gemm, (context, &d, A, B, NULL, D, NULL, NULL, 0, NULL), "C");
  WORKS(mp_gemm(context, &d, A, B, C, D, NULL, NULL, 0, NULL));
  WORKS(mp_gemm(context, &d, A, B, D, D, NULL, NULL, 0, NULL));
  d.beta = NAN;
  INVALID(mp_gemm, (context, &d, A, B, NULL, D, NULL, NULL, 0, NULL), "C");
  d.ld_c = 24;
  INVALID(mp_gemm, (context, &d, A, B, D, D, NULL, NULL, 0, NULL), "ld_c");
  d = good_strided_desc();
  d.beta = 1.0f;
  d.stride_c = 0;
  INVALID(mp_gemm, (context, &d, A, B, D, D, NULL, NULL, 0, NULL), "stride_c");
}

static void test_empty_problems(void) {
  mp_epilogue_t e = mp_epilogue_default();
  e.dbias = at(kExtra);
  for (int which = 0; which < 3; which++) {
    mp_gemm_desc_t d = good_desc();
    d.m = which == 0 ? 0 : d.m;
    d.n = which == 1 ? 0 : d.n;
    d.batch_count = which == 2 ? 0 : d.batch_count;
    size_t bytes = 1;
    const int sized = mp_gemm_workspace_size(context, &d, NULL, &bytes) == MP_SUCCESS;
    check(sized && bytes == 0, "an empty problem needs no workspace");
    d.plan = named_plan("wmma_128x128x32_s3"); /* known, but unused */
    WORKS(mp_gemm(context, &d, NULL, NULL, NULL, NULL, &e, NULL, 0, NULL));
    d.plan = named_plan("abacus");
    FAILS(mp_gemm, (context, &d, NULL, NULL, NULL, NULL, &e, NULL, 0, NULL), MP_ERROR_NOT_FOUND,
          "kernel");
    FAILS(mp_gemm_batched, (context, &d, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL),
          MP_ERROR_NOT_FOUND, "kernel");
    FAILS(mp_gemm_workspace_size, (context, &d, NULL, &out.bytes), MP_ERROR_NOT_FOUND, "kernel");
    d.plan = NULL;
    mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
    check_failure("kernel of an empty problem", "mp_gemm_kernel_info",
                  mp_gemm_kernel_info(context, &d, 0, &info), MP_ERROR_NOT_FOUND, "m");
  }
  mp_gemm_desc_t d = good_desc();
  d.k = 0;
  WORKS(mp_gemm(context, &d, NULL, NULL, NULL, at(kD), NULL, NULL, 0, NULL));

  d = good_strided_desc(); /* adjacent items in rows of 32 */
  d.ld_d = 32;
  d.stride_d = 16;
  WORKS(gemm(&d, NULL));
  d.ld_d = 31;
  INVALID(mp_gemm, (context, &d, at(kA), at(kB), NULL, at(kD), NULL, NULL, 0, NULL), "stride_d");
}

/* ---------------------------------------------------------------- kernel selection */

static void test_forced_kernel(void) {
  mp_gemm_desc_t d = good_desc();
  const char *name;
  mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
  INVALID(mp_gemm_kernel_info, (context, &d, -1, &info), "index");
  FAILS(mp_gemm_kernel_info, (context, &d, 1000, &info), MP_ERROR_NOT_FOUND, "index");
  WORKS(mp_gemm_kernel_info(context, &d, 0, &info));
  info.struct_size = 39;
  FAILS(mp_gemm_kernel_info, (context, &d, 0, &info), MP_ERROR_STRUCT_SIZE, "info");
  INVALID(mp_tuning_measure, (NULL, 1), "context");
  INVALID(mp_tuning_measure, (context, -1), "max_kernels");

  d.plan = named_plan("abacus");
  FAILS(mp_gemm, (context, &d, at(kA), at(kB), NULL, at(kD), NULL, NULL, 0, NULL),
        MP_ERROR_NOT_FOUND, "kernel");
  FAILS(mp_gemm_workspace_size, (context, &d, NULL, &out.bytes), MP_ERROR_NOT_FOUND, "kernel");

  /* Tensor-core kernels do not support fp32. */
  mp_gemm_desc_t fp32 = mp_gemm_desc_default(4, 16, 8, MP_FP32, MP_FP32);
  int refused = 0;
  for (int32_t i = 0; !refused && (name = kernel_of(&d, i)) != NULL; i++) {
    fp32.plan = named_plan(name);
    size_t bytes;
    refused = mp_gemm_workspace_size(context, &fp32, NULL, &bytes) == MP_ERROR_UNSUPPORTED;
  }
  reset();
  if (refused) {
    FAILS(mp_gemm, (context, &fp32, at(kA), at(kB), NULL, at(kD), NULL, NULL, 0, NULL),
          MP_ERROR_UNSUPPORTED, "kernel");
  } else {
    skip("mp_gemm with a kernel that does not support the problem", "every kernel supports it");
  }
}

static void test_workspace(void) {
  mp_gemm_desc_t d = mp_gemm_desc_default(4, 16, 4096, MP_FP16, MP_FP16);
  d.ld_a = 4096;
  size_t bytes = 0;
  const mp_gemm_desc_t any = d;
  for (int32_t i = 0; bytes == 0 && (d.plan = named_plan(kernel_of(&any, i))) != NULL; i++)
    mp_gemm_workspace_size(context, &d, NULL, &bytes);
  reset();
  if (bytes == 0) {
    skip("MP_ERROR_WORKSPACE_TOO_SMALL", "no kernel needs a workspace");
    return;
  }
  FAILS(mp_gemm, (context, &d, at(kA), at(kB), NULL, nowhere(), NULL, NULL, 0, NULL),
        MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
  FAILS(mp_gemm, (context, &d, at(kA), at(kB), NULL, nowhere(), NULL, at(1 << 29), bytes - 1, NULL),
        MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
}

/* ---------------------------------------------------------------- batches of pointers */

static const void **pointer_array(size_t offset, const void *first, const void *second) {
  const void *pointers[2];
  pointers[0] = first;
  pointers[1] = second;
  mp_memcpy(context, at(offset), pointers, sizeof pointers, NULL);
  mp_stream_sync(context, NULL);
  return at(offset);
}

CALL_OF(call_batched, mp_gemm_batched(context, s, at(kExtra), at(kExtra), NULL, at(kExtra + 64),
                                      NULL, NULL, 0, NULL))

static void test_batched(void) {
  const struct field_case fields[] = {
      INTS(mp_gemm_desc_t, stride_a, 1),
      INTS(mp_gemm_desc_t, stride_b, 1),
      INTS(mp_gemm_desc_t, stride_c, 1),
      INTS(mp_gemm_desc_t, stride_d, 1),
      INTS(mp_gemm_desc_t, ld_a, 7),
      FIELD(mp_gemm_desc_t, plan, pointers, MP_ERROR_NOT_FOUND, named_plan("abacus")),
  };
  mp_gemm_desc_t d = good_desc();
  d.batch_count = 0;
  CHECK_STRUCT("mp_gemm_batched", "desc", d, call_batched, fields);
  d.batch_count = 2;
  const void *const *x = at(kExtra);
  void *const *y = at(kExtra);
  d.beta = 1.0f;
  INVALID(mp_gemm_batched, (context, &d, x, x, NULL, y, NULL, NULL, 0, NULL), "C");
  d.beta = 0.0f;

  mp_epilogue_t e = mp_epilogue_default();
  e.aux = at(kC);
  FAILS(mp_gemm_batched, (context, &d, x, x, NULL, y, &e, NULL, 0, NULL), MP_ERROR_UNSUPPORTED,
        "aux");
  e = mp_epilogue_default();
  e.dbias = at(kC);
  FAILS(mp_gemm_batched, (context, &d, x, x, NULL, y, &e, NULL, 0, NULL), MP_ERROR_UNSUPPORTED,
        "dbias");
  e = mp_epilogue_default();
  e.stats.amax = at(kC);
  FAILS(mp_gemm_batched, (context, &d, x, x, NULL, y, &e, NULL, 0, NULL), MP_ERROR_UNSUPPORTED,
        "amax");

  const void **a = pointer_array(kExtra, at(kA), at(kA + 128));
  const void **b = pointer_array(kExtra + 64, at(kB), at(kB + 512));
  void **D = (void **)pointer_array(kExtra + 128, at(kD), at(kD + 512));
  WORKS(mp_gemm_batched(context, &d, a, b, NULL, D, NULL, NULL, 0, NULL));
  d.batch_count = 0;
  WORKS(mp_gemm_batched(context, &d, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL));
}

/** As in BLAS, alpha = 0 or k = 0 omits the product. */
static void test_no_product(void) {
  for (int which = 0; which < 2; which++) {
    mp_gemm_desc_t d = mp_gemm_desc_default(2, 2, which == 0 ? 2 : 0, MP_FP32, MP_FP32);
    d.alpha = which == 0 ? 0.0f : INFINITY;
    d.beta = 2.0f;
    const float c[4] = {1, 2, 3, 4};
    float got[4];
    reset();
    const int good =
        mp_memcpy(context, at(kC), c, sizeof c, NULL) == MP_SUCCESS &&
        mp_gemm(context, &d, NULL, NULL, at(kC), at(kD), NULL, NULL, 0, NULL) == MP_SUCCESS &&
        mp_memcpy(context, got, at(kD), sizeof got, NULL) == MP_SUCCESS &&
        mp_stream_sync(context, NULL) == MP_SUCCESS;
    check(good && got[0] == 2 && got[1] == 4 && got[2] == 6 && got[3] == 8,
          which == 0 ? "alpha = 0 reads neither A nor B" : "k = 0 with alpha = infinity is beta C");
  }

  mp_gemm_desc_t d = mp_gemm_desc_default(4, 16, 4096, MP_FP16, MP_FP16);
  size_t bytes = 1;
  d.alpha = 0.0f;
  check(mp_gemm_workspace_size(context, &d, NULL, &bytes) == MP_SUCCESS && bytes == 0,
        "alpha = 0 needs no workspace");
  const void **const items = pointer_array(kExtra, at(kD), at(kD));
  d = good_desc(), d.alpha = 0.0f;
  WORKS(mp_gemm_batched(context, &d, NULL, NULL, NULL, (void **)items, NULL, NULL, 0, NULL));
}

void test_gemm(void) {
  check_desc("mp_gemm", call_gemm);
  check_desc("mp_gemm_workspace_size", call_workspace_size);
  check_desc("mp_gemm_kernel_info", call_kernel_info);
  test_epilogue();
  test_max_tiles();
  test_operands();
  test_empty_problems();
  test_forced_kernel();
  test_workspace();
  test_batched();
  test_no_product();
}
