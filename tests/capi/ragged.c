/* mpcore/gemm.h: groups whose sizes are on the device.  Two groups split the rows of a 12 x 16 x 8
 * product, or the k of a 4 x 16 x 12 product; all fp16, dense, 1024 bytes of the arena each. */
#define MP_ENABLE_EXPERIMENTAL

#include "harness.h"

enum { kA = 0, kB = 1024, kC = 2048, kD = 3072, kEnds = 4096, kExtra = 5120, kWorkspace = 8192 };

static mp_gemm_desc_t rows_desc(void) {
  mp_gemm_desc_t d = mp_gemm_desc_default(12, 16, 8, MP_FP16, MP_FP16);
  d.batch_count = 2;
  d.stride_b = 8 * 16;
  return d;
}

static mp_gemm_desc_t k_desc(void) {
  mp_gemm_desc_t d = mp_gemm_desc_default(4, 16, 12, MP_FP16, MP_FP16);
  d.batch_count = 2;
  d.stride_c = d.stride_d = 4 * 16;
  return d;
}

static mp_status_t ragged(const mp_gemm_desc_t *d, mp_ragged_t dimension, const mp_epilogue_t *e) {
  return mp_gemm_ragged(context, d, dimension, at(kEnds), at(kA), at(kB), at(kC), at(kD), e, NULL,
                        0, NULL);
}

CALL_OF(call_rows, ragged(s, MP_RAGGED_M, NULL))
CALL_OF(call_k, ragged(s, MP_RAGGED_K, NULL))
CALL_OF(size_of_rows, mp_gemm_ragged_workspace_size(context, s, MP_RAGGED_M, NULL, &out.bytes))
CALL_OF(size_of_k, mp_gemm_ragged_workspace_size(context, s, MP_RAGGED_K, NULL, &out.bytes))

/* ---------------------------------------------------------------- descriptor */

static void check_rows_desc(const char *function, mp_status_t (*call)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_gemm_desc_t, op_a, 0),
      INTS(mp_gemm_desc_t, dtype_ab, MP_DTYPE_NONE),
      INTS(mp_gemm_desc_t, dtype_cd, invalid_dtype()),
      INTS(mp_gemm_desc_t, batch_count, -1),
      INTS(mp_gemm_desc_t, m, -1),
      INTS(mp_gemm_desc_t, k, -1),
      INTS(mp_gemm_desc_t, ld_a, 7),
      INTS(mp_gemm_desc_t, ld_d, 15),
      INTS(mp_gemm_desc_t, stride_a, 8),
      INTS(mp_gemm_desc_t, stride_b, -8),
      INTS(mp_gemm_desc_t, stride_c, 192),
      INTS(mp_gemm_desc_t, stride_d, 192),
      FIELD(mp_gemm_desc_t, plan, pointers, MP_ERROR_NOT_FOUND, named_plan("abacus")),
      FIELD(mp_gemm_desc_t, plan, pointers, MP_ERROR_UNSUPPORTED, named_plan("gemv")),
  };
  const mp_gemm_desc_t initial = rows_desc();
  CHECK_STRUCT(function, "desc", initial, call, fields);
}

static void check_k_desc(const char *function, mp_status_t (*call)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_gemm_desc_t, stride_a, 8),
      INTS(mp_gemm_desc_t, stride_b, 8),
      INTS(mp_gemm_desc_t, stride_d, 0, 63 /* items share one element */),
  };
  const mp_gemm_desc_t initial = k_desc();
  CHECK_FIELDS(function, "desc (k)", initial, call, fields);
}

static void test_messages(void) {
  mp_gemm_desc_t d = rows_desc();
  d.stride_a = 96;
  (void)ragged(&d, MP_RAGGED_M, NULL);
  check(strcmp(mp_last_error(),
               "mp_gemm_ragged: stride_a = 96 must be 0: MP_RAGGED_M divides the "
               "rows among the groups") == 0,
        "the message about a stride gives the reason");
  d = rows_desc();
  (void)ragged(&d, (mp_ragged_t)0, NULL);
  check(
      strcmp(mp_last_error(), "mp_gemm_ragged: ragged = 0 must be MP_RAGGED_M or MP_RAGGED_K") == 0,
      "the message about the dimension lists its values");
  reset();
}

/* ---------------------------------------------------------------- epilogue */

static mp_epilogue_t good_epilogue(void) {
  mp_epilogue_t e = mp_epilogue_default();
  e.scale = at(kExtra);
  e.stats.amax = at(kExtra + 4);
  e.stats.found_inf = at(kExtra + 8);
  return e;
}

CALL_OF(call_epilogue, ragged(REF(mp_gemm_desc_t, rows_desc()), MP_RAGGED_M, s))

static void test_epilogue(void) {
  const mp_epilogue_t initial = good_epilogue();
  check_scaling_epilogue(SUBJECT("mp_gemm_ragged", "epilogue", initial, call_epilogue), at(2),
                         MP_ERROR_MISALIGNED);
}

/* ---------------------------------------------------------------- other arguments */

static void test_arguments(void) {
  const mp_gemm_desc_t d = rows_desc();
  const mp_ragged_t by = MP_RAGGED_M;
  void *const a = at(kA), *const b = at(kB), *const dd = at(kD), *const ends = at(kEnds);
  INVALID(mp_gemm_ragged, (context, &d, (mp_ragged_t)-1, ends, a, b, NULL, dd, NULL, NULL, 0, NULL),
          "ragged");
  mp_gemm_desc_t many_tiles = d;
  many_tiles.m = INT64_C(1) << 37;
  many_tiles.n = many_tiles.ld_b = many_tiles.ld_c = many_tiles.ld_d = 4;
  many_tiles.k = many_tiles.ld_a = 4;
  FAILS(mp_gemm_ragged_workspace_size, (context, &many_tiles, by, NULL, &out.bytes),
        MP_ERROR_UNSUPPORTED, "m");
  INVALID(mp_gemm_ragged_workspace_size, (context, &d, (mp_ragged_t)0, NULL, &out.bytes), "ragged");
  mp_gemm_desc_t with_c = d;
  with_c.beta = 1.0f;
  INVALID(mp_gemm_ragged, (context, &with_c, by, ends, a, b, NULL, dd, NULL, NULL, 0, NULL), "C");
}

static void test_empty(void) {
  mp_gemm_desc_t d = rows_desc();
  d.batch_count = 0;
  size_t bytes = 1;
  d.plan = named_plan("abacus");
  FAILS(mp_gemm_ragged,
        (context, &d, MP_RAGGED_M, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL),
        MP_ERROR_NOT_FOUND, "kernel");
  FAILS(mp_gemm_ragged_workspace_size, (context, &d, MP_RAGGED_M, NULL, &out.bytes),
        MP_ERROR_NOT_FOUND, "kernel");
  d.plan = named_plan("wmma_128x128x32_s3"); /* known, but unused */
  WORKS(
      mp_gemm_ragged(context, &d, MP_RAGGED_M, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL));
  check(mp_gemm_ragged_workspace_size(context, &d, MP_RAGGED_M, NULL, &bytes) == MP_SUCCESS &&
            bytes == 0,
        "zero groups need no workspace");
  d.batch_count = 2;
  d.m = 0;
  WORKS(
      mp_gemm_ragged(context, &d, MP_RAGGED_M, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL));
  d = k_desc();
  d.k = 0;
  WORKS(mp_gemm_ragged(context, &d, MP_RAGGED_K, at(kEnds), NULL, NULL, NULL, at(kD), NULL, NULL, 0,
                       NULL));
}

void test_gemm_ragged(void) {
  check_rows_desc("mp_gemm_ragged", call_rows);
  check_rows_desc("mp_gemm_ragged_workspace_size", size_of_rows);
  check_k_desc("mp_gemm_ragged", call_k);
  check_k_desc("mp_gemm_ragged_workspace_size", size_of_k);
  test_messages();
  test_epilogue();
  test_arguments();
  test_empty();
}
