/* mpcore/layers.h: pointwise operations on 6 x 8 fp16 elements. */
#include <math.h>
#include <stdint.h>

#include "harness.h"

enum { kRows = 6, kColumns = 8 };
enum { kA = 0, kB = 512, kY = 1024, kStats = 2048 };

static mp_pointwise_desc_t add(void) {
  return mp_pointwise_desc_default(MP_POINTWISE_ADD, kRows, kColumns, MP_FP16);
}
CALL_OF(call, mp_pointwise(context, s, at(kA), at(kB), at(kY), NULL, NULL))

static void test_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_pointwise_desc_t, op, 0, MP_POINTWISE_DCLIP + 1, -1),
      INTS(mp_pointwise_desc_t, activation, -1, MP_ACT_DGELU_ERF + 1, MP_ACT_DRELU, MP_ACT_DTANH),
      INTS(mp_pointwise_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_pointwise_desc_t, dtype_b, MP_DTYPE_NONE, MP_INT64),
      INTS(mp_pointwise_desc_t, reserved0, 1),
      INTS(mp_pointwise_desc_t, reserved1, 1),
      INTS(mp_pointwise_desc_t, rows, -1, INT64_MAX),
      INTS(mp_pointwise_desc_t, columns, -1),
      INTS(mp_pointwise_desc_t, ld_b, -8, kColumns - 1, INT64_MAX),
      INTS(mp_pointwise_desc_t, rows_b, -1, INT64_MIN),
  };
  const mp_pointwise_desc_t initial = add();
  CHECK_STRUCT("mp_pointwise", "desc", initial, call, fields);

  const mp_pointwise_desc_t d = add();
  check(
      d.activation == MP_ACT_NONE && d.dtype_b == MP_FP16 && d.ld_b == kColumns && d.reserved0 == 0,
      "no activation; b is dense, and of the same type");
}

/** Complete messages, except addresses. */
static void test_sentences(void) {
  void *const a = at(kA), *const b = at(kB), *const y = at(kY);
  mp_pointwise_desc_t d = add();
  d.activation = MP_ACT_DGELU;
  INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL),
          "activation = MP_ACT_DGELU requires op = MP_POINTWISE_COPY, but op = MP_POINTWISE_ADD");
  d.op = MP_POINTWISE_CLIP;
  INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL),
          "activation = MP_ACT_DGELU requires op = MP_POINTWISE_COPY, but op = MP_POINTWISE_CLIP");
  for (int op = MP_POINTWISE_LEAKY_RELU; op <= MP_POINTWISE_DLEAKY_RELU; op++) {
    d = mp_pointwise_desc_default((mp_pointwise_op_t)op, kRows, kColumns, MP_FP16);
    d.low = 1.0f, d.high = -1.0f; /* ignored */
    WORKS(mp_pointwise(context, &d, a, op == MP_POINTWISE_LEAKY_RELU ? NULL : b, y, NULL, NULL));
    d.slope = INFINITY;
    INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL), "slope = inf is not finite");
  }
  for (int op = MP_POINTWISE_CLIP; op <= MP_POINTWISE_DCLIP; op++) {
    d = mp_pointwise_desc_default((mp_pointwise_op_t)op, kRows, kColumns, MP_FP16);
    d.slope = NAN; /* ignored */
    WORKS(mp_pointwise(context, &d, a, op == MP_POINTWISE_CLIP ? NULL : b, y, NULL, NULL));
    d.low = 2.0f, d.high = 1.5f;
    INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL), "low = 2 must not exceed high = 1.5");
    d.high = NAN;
    INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL), "low = 2");
  }
  d = add();
  d.ld_b = 7;
  INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL),
          "ld_b = 7 must be 0 or at least columns = 8");
  d = add();
  d.rows = INT64_MAX / 8;
  INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL),
          "rows = 1152921504606846975 with columns = 8: size in bytes exceeds 2^63 - 1");
  d = add();
  d.ld_b = INT64_MAX / 8;
  d.dtype_b = MP_FP32;
  INVALID(mp_pointwise, (context, &d, a, b, y, NULL, NULL),
          "rows = 6 with ld_b = 1152921504606846975: size in bytes exceeds 2^63 - 1");
}

static void test_pointers(void) {
  const mp_status_t misaligned = MP_ERROR_MISALIGNED;
  void *const a = at(kA), *const b = at(kB), *const y = at(kY);
  mp_pointwise_desc_t d = add();
  const mp_grad_stats_t stats = {at(kStats), NULL};
  WORKS(mp_pointwise(context, &d, a, b, y, &stats, NULL));
  WORKS(mp_pointwise(context, &d, a, a, a, NULL, NULL));
  WORKS(mp_pointwise(context, &d, a, y, y, NULL, NULL));
  WORKS(mp_pointwise(context, &d, a, at(kB + 2), y, NULL, NULL));
  d.dtype_b = MP_FP32;
  FAILS(mp_pointwise, (context, &d, a, at(kB + 2), y, NULL, NULL), misaligned,
        "is not aligned to 4 bytes");
  INVALID(mp_pointwise, (context, &d, a, y, y, NULL, NULL),
          "dtype_b = MP_FP32 must equal dtype = MP_FP16 if y = b");
  d = add();
  d.ld_b = 0;
  INVALID(mp_pointwise, (context, &d, a, y, y, NULL, NULL),
          "ld_b = 0 must equal columns = 8 if y = b");
  d.ld_b = 9;
  INVALID(mp_pointwise, (context, &d, a, y, y, NULL, NULL),
          "ld_b = 9 must equal columns = 8 if y = b");
  WORKS(mp_pointwise(context, &d, y, b, y, NULL, NULL));
  d = add();
  d.rows_b = kRows - 1;
  INVALID(mp_pointwise, (context, &d, a, y, y, NULL, NULL),
          "rows_b = 5 must be 0 or at least rows = 6 if y = b");
  WORKS(mp_pointwise(context, &d, a, b, y, NULL, NULL));
  d.rows_b = 2; /* the third row of b is not read */
  WORKS(mp_pointwise(context, &d, a, at(kY - 2 * 2 * kColumns), y, NULL, NULL));
  d.rows_b = kRows;
  WORKS(mp_pointwise(context, &d, a, y, y, NULL, NULL));
  d.rows_b = INT64_MAX;
  WORKS(mp_pointwise(context, &d, a, y, y, NULL, NULL));
  d.rows = 1;
  WORKS(mp_pointwise(context, &d, a, y, y, NULL, NULL));
  d.ld_b = 0;
  WORKS(mp_pointwise(context, &d, a, y, y, NULL, NULL));
}

static void test_not_read(void) {
  mp_pointwise_desc_t d = mp_pointwise_desc_default(MP_POINTWISE_COPY, kRows, kColumns, MP_FP16);
  WORKS(mp_pointwise(context, &d, at(kA), NULL, at(kY), NULL, NULL));
  WORKS(mp_pointwise(context, &d, at(kA), at(1), at(kY), NULL, NULL));
  d.activation = MP_ACT_TANH;
  WORKS(mp_pointwise(context, &d, at(kA), NULL, at(kY), NULL, NULL));
  d.activation = MP_ACT_DSIGMOID;
  INVALID(mp_pointwise, (context, &d, at(kA), NULL, at(kY), NULL, NULL), "b = NULL");
  WORKS(mp_pointwise(context, &d, at(kA), at(kB), at(kY), NULL, NULL));
  d.rows = 0;
  WORKS(mp_pointwise(context, &d, NULL, NULL, NULL, NULL, NULL));
  d.rows = INT64_MAX;
  d.columns = d.ld_b = 0;
  WORKS(mp_pointwise(context, &d, NULL, NULL, NULL, NULL, NULL));
}

/* ---------------------------------------------------------------- column sums */

enum { kSum = 1536, kWorkspace = 8192 };

static mp_column_sum_desc_t sum_desc(void) {
  return mp_column_sum_desc_default(kRows, kColumns, MP_FP16);
}
static mp_status_t sum(const mp_column_sum_desc_t *d, const mp_epilogue_t *e) {
  return mp_column_sum(context, d, at(kA), at(kSum), e, at(kWorkspace), 4096, NULL);
}
CALL_OF(call_sum, sum(s, NULL))
CALL_OF(call_sum_size, mp_column_sum_workspace_size(context, s, &out.bytes))

static void check_sum_desc(const char *function, mp_status_t (*call_it)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_column_sum_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_column_sum_desc_t, dtype_sum, 0, MP_INT64),
      INTS(mp_column_sum_desc_t, rows, -1, INT64_MAX),
      INTS(mp_column_sum_desc_t, columns, -1),
      INTS(mp_column_sum_desc_t, ld, 7, INT64_MAX),
  };
  const mp_column_sum_desc_t initial = sum_desc();
  CHECK_STRUCT(function, "desc", initial, call_it, fields);
}

static void test_column_sum(void) {
  mp_column_sum_desc_t d = sum_desc();
  size_t bytes = 0;
  check_sum_desc("mp_column_sum", call_sum);
  check_sum_desc("mp_column_sum_workspace_size", call_sum_size);
  reset();
  WORKS(mp_column_sum_workspace_size(context, &d, &bytes));
  void *const x = at(kA), *const y = at(kSum), *const space = at(kWorkspace);
  FAILS(mp_column_sum, (context, &d, x, y, NULL, space, bytes - 1, NULL),
        MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
  mp_epilogue_t e = mp_epilogue_default();
  e.bias = at(kB);
  check_failure("bias", "mp_column_sum", sum(&d, &e), MP_ERROR_UNSUPPORTED, "bias");
  e = mp_epilogue_default();
  e.dbias = at(kB);
  check_failure("dbias", "mp_column_sum", sum(&d, &e), MP_ERROR_UNSUPPORTED, "dbias");
  d.columns = d.ld = 0;
  WORKS(mp_column_sum(context, &d, NULL, NULL, NULL, NULL, 0, NULL));
  d = sum_desc();
  d.rows = 0;
  WORKS(mp_column_sum(context, &d, NULL, y, NULL, space, 4096, NULL));
  reset();
}

void test_pointwise(void) {
  test_desc();
  test_sentences();
  test_pointers();
  test_not_read();
  test_column_sum();
}
