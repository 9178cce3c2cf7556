/* mpcore/layers.h: pointwise operations on 6 x 8 fp16 elements. */
#include <math.h>
#include <stdint.h>

#include "harness.h"

enum { kRows = 6, kColumns = 8 };
enum { kA = 0, kB = 512, kY = 1024, kStats = 2048 };

static mp_pointwise_desc_t add(void) {
  return mp_pointwise_desc_default(MP_POINTWISE_ADD, kRows, kColumns, MP_FP16);
}
INIT(init, mp_pointwise_desc_t, add())
CALL_OF(call, mp_pointwise(context, s, at(kA), at(kB), at(kY), NULL, NULL))

#define POINTWISE_FIELD(field, member, v) \
  FIELD(mp_pointwise_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_desc(void) {
  const struct field_case fields[] = {
      POINTWISE_FIELD(op, i, 0),
      POINTWISE_FIELD(op, i, MP_POINTWISE_DCLIP + 1),
      POINTWISE_FIELD(op, i, -1),
      POINTWISE_FIELD(activation, i, -1),
      POINTWISE_FIELD(activation, i, MP_ACT_DGELU_ERF + 1),
      POINTWISE_FIELD(activation, i, MP_ACT_DRELU),
      POINTWISE_FIELD(activation, i, MP_ACT_DTANH),
      POINTWISE_FIELD(dtype, i, MP_DTYPE_NONE),
      POINTWISE_FIELD(dtype, i, MP_INT32),
      POINTWISE_FIELD(dtype_b, i, MP_DTYPE_NONE),
      POINTWISE_FIELD(dtype_b, i, MP_INT64),
      POINTWISE_FIELD(reserved0, i, 1),
      POINTWISE_FIELD(reserved1, i, 1),
      POINTWISE_FIELD(rows, i, -1),
      POINTWISE_FIELD(rows, i, INT64_MAX),
      POINTWISE_FIELD(columns, i, -1),
      POINTWISE_FIELD(ld_b, i, -8),
      POINTWISE_FIELD(ld_b, i, kColumns - 1),
      POINTWISE_FIELD(ld_b, i, INT64_MAX),
      POINTWISE_FIELD(rows_b, i, -1),
      POINTWISE_FIELD(rows_b, i, INT64_MIN),
  };
  const struct subject subject = {"mp_pointwise", "desc", sizeof(mp_pointwise_desc_t), init, call};
  CHECK_STRUCT(&subject, fields);

  const mp_pointwise_desc_t d = add();
  check(
      d.activation == MP_ACT_NONE && d.dtype_b == MP_FP16 && d.ld_b == kColumns && d.reserved0 == 0,
      "no activation; b is dense, and of the same type");
}

/** Complete messages, except addresses. */
static void test_sentences(void) {
  const mp_status_t wrong = MP_ERROR_INVALID_ARGUMENT;
  void *const a = at(kA), *const b = at(kB), *const y = at(kY);
  mp_pointwise_desc_t d = add();
  d.activation = MP_ACT_DGELU;
  FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong,
        "activation = MP_ACT_DGELU requires op = MP_POINTWISE_COPY, but op = MP_POINTWISE_ADD");
  d.op = MP_POINTWISE_CLIP;
  FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong,
        "activation = MP_ACT_DGELU requires op = MP_POINTWISE_COPY, but op = MP_POINTWISE_CLIP");
  for (int op = MP_POINTWISE_LEAKY_RELU; op <= MP_POINTWISE_DLEAKY_RELU; op++) {
    d = mp_pointwise_desc_default((mp_pointwise_op_t)op, kRows, kColumns, MP_FP16);
    d.low = 1.0f, d.high = -1.0f; /* ignored */
    WORKS(mp_pointwise(context, &d, a, op == MP_POINTWISE_LEAKY_RELU ? NULL : b, y, NULL, NULL));
    d.slope = INFINITY;
    FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong, "slope = inf is not finite");
  }
  for (int op = MP_POINTWISE_CLIP; op <= MP_POINTWISE_DCLIP; op++) {
    d = mp_pointwise_desc_default((mp_pointwise_op_t)op, kRows, kColumns, MP_FP16);
    d.slope = NAN; /* ignored */
    WORKS(mp_pointwise(context, &d, a, op == MP_POINTWISE_CLIP ? NULL : b, y, NULL, NULL));
    d.low = 2.0f, d.high = 1.5f;
    FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong,
          "low = 2 must not exceed high = 1.5");
    d.high = NAN;
    FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong, "low = 2");
  }
  d = add();
  d.ld_b = 7;
  FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong,
        "ld_b = 7 must be 0 or at least columns = 8");
  d = add();
  d.rows = INT64_MAX / 8;
  FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong,
        "rows = 1152921504606846975 with columns = 8: size in bytes exceeds 2^63 - 1");
  d = add();
  d.ld_b = INT64_MAX / 8;
  d.dtype_b = MP_FP32;
  FAILS(mp_pointwise, (context, &d, a, b, y, NULL, NULL), wrong,
        "rows = 6 with ld_b = 1152921504606846975: size in bytes exceeds 2^63 - 1");
}

static void test_pointers(void) {
  const mp_status_t wrong = MP_ERROR_INVALID_ARGUMENT, misaligned = MP_ERROR_MISALIGNED;
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
  FAILS(mp_pointwise, (context, &d, a, y, y, NULL, NULL), wrong,
        "dtype_b = MP_FP32 must equal dtype = MP_FP16 if y = b");
  d = add();
  d.ld_b = 0;
  FAILS(mp_pointwise, (context, &d, a, y, y, NULL, NULL), wrong,
        "ld_b = 0 must equal columns = 8 if y = b");
  d.ld_b = 9;
  FAILS(mp_pointwise, (context, &d, a, y, y, NULL, NULL), wrong,
        "ld_b = 9 must equal columns = 8 if y = b");
  WORKS(mp_pointwise(context, &d, y, b, y, NULL, NULL));
  d = add();
  d.rows_b = kRows - 1;
  FAILS(mp_pointwise, (context, &d, a, y, y, NULL, NULL), wrong,
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
  FAILS(mp_pointwise, (context, &d, at(kA), NULL, at(kY), NULL, NULL), MP_ERROR_INVALID_ARGUMENT,
        "b = NULL");
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
INIT(init_sum, mp_column_sum_desc_t, sum_desc())
static mp_status_t sum(const mp_column_sum_desc_t *d, const mp_epilogue_t *e) {
  return mp_column_sum(context, d, at(kA), at(kSum), e, at(kWorkspace), 4096, NULL);
}
CALL_OF(call_sum, sum(s, NULL))
CALL_OF(call_sum_size, mp_column_sum_workspace_size(context, s, &out.bytes))

#define SUM_FIELD(field, member, v) \
  FIELD(mp_column_sum_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void check_sum_desc(const char *function, mp_status_t (*call_it)(void *)) {
  const struct field_case fields[] = {
      SUM_FIELD(dtype, i, MP_DTYPE_NONE),
      SUM_FIELD(dtype, i, MP_INT32),
      SUM_FIELD(dtype_sum, i, 0),
      SUM_FIELD(dtype_sum, i, MP_INT64),
      SUM_FIELD(rows, i, -1),
      SUM_FIELD(rows, i, INT64_MAX),
      SUM_FIELD(columns, i, -1),
      SUM_FIELD(ld, i, 7),
      SUM_FIELD(ld, i, INT64_MAX),
  };
  const struct subject desc = {function, "desc", sizeof(mp_column_sum_desc_t), init_sum, call_it};
  CHECK_STRUCT(&desc, fields);
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
