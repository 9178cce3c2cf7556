/* mpcore/layers.h and sequences.h: sums of 6 rows of 8, transposition and gated units of 6 x 8,
 * rotary embedding of 4 tokens with 2 heads of 8, softmax of 6 x 8; all fp16. */
#include <math.h>
#include <stdint.h>

#include "harness.h"

enum { kRows = 6, kColumns = 8, kPeriod = 3, kTokens = 4, kHeads = 2, kHeadDim = 8 };

/* Offsets. */
enum { kX = 0, kY = 512, kDy = 1024, kMask = 1536, kStats = 2048, kPositions = 2560, kFreq = 3072 };

static const mp_status_t wrong = MP_ERROR_INVALID_ARGUMENT, misaligned = MP_ERROR_MISALIGNED;

/* ---------------------------------------------------------------- sums of rows */

static mp_sum_rows_desc_t sum_desc(void) {
  return mp_sum_rows_desc_default(kRows, kPeriod, kColumns, MP_FP16);
}
INIT(init_sum, mp_sum_rows_desc_t, sum_desc())
CALL_OF(call_sum, mp_sum_rows(context, s, at(kX), at(kY), NULL, NULL))

#define SUM_FIELD(field, member, v) \
  FIELD(mp_sum_rows_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_sum_rows(void) {
  const struct field_case fields[] = {
      SUM_FIELD(dtype, i, MP_DTYPE_NONE),
      SUM_FIELD(dtype, i, MP_INT32),
      SUM_FIELD(dtype_sum, i, 0),
      SUM_FIELD(dtype_sum, i, MP_INT64),
      SUM_FIELD(beta, f, NAN),
      SUM_FIELD(beta, f, INFINITY),
      SUM_FIELD(rows, i, -1),
      SUM_FIELD(rows, i, INT64_MAX),
      SUM_FIELD(period, i, -1),
      SUM_FIELD(period, i, 0),
      SUM_FIELD(period, i, INT64_MAX),
      SUM_FIELD(columns, i, -1),
      SUM_FIELD(ld_x, i, kColumns - 1),
      SUM_FIELD(ld_x, i, INT64_MAX),
      SUM_FIELD(ld_sum, i, kColumns - 1),
      SUM_FIELD(ld_sum, i, INT64_MAX),
  };
  const struct subject subject = {"mp_sum_rows", "desc", sizeof(mp_sum_rows_desc_t), init_sum,
                                  call_sum};
  CHECK_STRUCT(&subject, fields);
  mp_sum_rows_desc_t d = sum_desc();
  check(d.dtype_sum == MP_FP32 && d.beta == 0.0f && d.ld_x == kColumns && d.ld_sum == kColumns,
        "dense rows; the sum is fp32 and overwritten");
  void *const x = at(kX), *const sum = at(kY);
  d.period = 0;
  FAILS(mp_sum_rows, (context, &d, x, sum, NULL, NULL), wrong,
        "period = 0 must be at least 1 if rows = 6");
  d.rows = 0;
  WORKS(mp_sum_rows(context, &d, NULL, NULL, NULL, NULL));
  d.period = kPeriod;
  WORKS(mp_sum_rows(context, &d, NULL, sum, NULL, NULL));
  FAILS(mp_sum_rows, (context, &d, NULL, NULL, NULL, NULL), wrong, "sum = NULL");
}

/* ---------------------------------------------------------------- strided copies */

/** Transposes 6 x 8 to 8 x 6. */
static mp_strided_copy_desc_t copy_desc(void) {
  mp_strided_copy_desc_t d = mp_strided_copy_desc_default(MP_FP16);
  d.rank = 2;
  d.extent[0] = kRows, d.extent[1] = kColumns;
  d.x_stride[0] = kColumns, d.x_stride[1] = 1;
  d.y_stride[0] = 1, d.y_stride[1] = kRows;
  return d;
}
INIT(init_copy, mp_strided_copy_desc_t, copy_desc())
CALL_OF(call_copy, mp_strided_copy(context, s, at(kX), at(kY), NULL, NULL))

#define COPY_FIELD(field, member, v) \
  FIELD(mp_strided_copy_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_strided_copy(void) {
  const struct field_case fields[] = {
      COPY_FIELD(dtype, i, MP_DTYPE_NONE),
      COPY_FIELD(dtype, i, MP_INT32),
      COPY_FIELD(rank, i, -1),
      COPY_FIELD(rank, i, MP_STRIDED_COPY_MAX_RANK + 1),
      COPY_FIELD(reserved0, i, 1),
      COPY_FIELD(extent[0], i, -1),
      COPY_FIELD(extent[1], i, INT64_MAX),
      COPY_FIELD(x_stride[0], i, -1),
      COPY_FIELD(x_stride[0], i, INT64_MAX),
      COPY_FIELD(y_stride[1], i, -1),
      COPY_FIELD(y_stride[1], i, INT64_MAX),
      COPY_FIELD(y_stride[1], i, kRows - 1),
      COPY_FIELD(y_stride[0], i, 0),
      COPY_FIELD(alpha, f, NAN),
      COPY_FIELD(beta, f, INFINITY),
  };
  const struct subject subject = {"mp_strided_copy", "desc", sizeof(mp_strided_copy_desc_t),
                                  init_copy, call_copy};
  CHECK_STRUCT(&subject, fields);
  mp_strided_copy_desc_t d = mp_strided_copy_desc_default(MP_FP16);
  check(d.alpha == 1.0f && d.beta == 0.0f && d.rank == 0, "one element is copied");
  d = copy_desc();
  void *const x = at(kX), *const y = at(kY);
  d.x_stride[0] = d.x_stride[1] = 0;
  WORKS(mp_strided_copy(context, &d, x, y, NULL, NULL));
  d.extent[1] = 0;
  WORKS(mp_strided_copy(context, &d, NULL, NULL, NULL, NULL));
}

/* ---------------------------------------------------------------- gated linear units */

static mp_glu_desc_t glu_desc(void) {
  return mp_glu_desc_default(MP_ACT_SILU, kRows, kColumns, MP_FP16);
}
INIT(init_glu, mp_glu_desc_t, glu_desc())
CALL_OF(call_glu, mp_glu_forward(context, s, at(kX), at(kY), NULL))
CALL_OF(call_glu_backward, mp_glu_backward(context, s, at(kX), at(kDy), at(kY), NULL, NULL))

#define GLU_FIELD(field, member, v) \
  FIELD(mp_glu_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_glu(void) {
  const struct field_case fields[] = {
      GLU_FIELD(dtype, i, MP_DTYPE_NONE),
      GLU_FIELD(dtype, i, MP_INT32),
      GLU_FIELD(activation, i, -1),
      GLU_FIELD(activation, i, MP_ACT_GELU_ERF + 2),
      GLU_FIELD(activation, i, MP_ACT_DSILU),
      GLU_FIELD(activation, i, MP_ACT_DRELU),
      GLU_FIELD(reserved0, i, 1),
      GLU_FIELD(rows, i, -1),
      GLU_FIELD(rows, i, INT64_MAX),
      GLU_FIELD(columns, i, -1),
      GLU_FIELD(columns, i, INT64_MAX),
      GLU_FIELD(ld_x, i, 2 * kColumns - 1),
      GLU_FIELD(ld_x, i, -16),
      GLU_FIELD(ld_x, i, INT64_MAX),
      GLU_FIELD(ld_y, i, kColumns - 1),
      GLU_FIELD(ld_y, i, INT64_MAX),
  };
  const struct subject forward = {"mp_glu_forward", "desc", sizeof(mp_glu_desc_t), init_glu,
                                  call_glu};
  const struct subject backward = {"mp_glu_backward", "desc", sizeof(mp_glu_desc_t), init_glu,
                                   call_glu_backward};
  CHECK_STRUCT(&forward, fields);
  CHECK_STRUCT(&backward, fields);
  mp_glu_desc_t d = glu_desc();
  check(d.ld_x == 2 * kColumns && d.ld_y == kColumns && d.reserved0 == 0, "dense rows");
  void *const x = at(kX), *const y = at(kY);
  WORKS(mp_glu_forward(context, &d, at(kY + 96), y, NULL));
  d.activation = MP_ACT_DGELU;
  FAILS(mp_glu_forward, (context, &d, x, y, NULL), wrong,
        "activation = MP_ACT_DGELU is a derivative; pass the activation of the forward pass");
  d = glu_desc();
  d.rows = 0;
  WORKS(mp_glu_forward(context, &d, NULL, NULL, NULL));
  WORKS(mp_glu_backward(context, &d, NULL, NULL, NULL, NULL, NULL));
}

/* ---------------------------------------------------------------- rotary embedding */

static mp_rope_desc_t rope_desc(void) {
  return mp_rope_desc_default(kTokens, kHeads, kHeadDim, MP_FP16);
}
INIT(init_rope, mp_rope_desc_t, rope_desc())
CALL_OF(call_rope, mp_rope(context, s, at(kPositions), at(kFreq), at(kX), at(kY), NULL, NULL))

#define ROPE_FIELD(field, member, v) \
  FIELD(mp_rope_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_rope_desc(void) {
  const struct field_case fields[] = {
      ROPE_FIELD(dtype, i, MP_DTYPE_NONE),
      ROPE_FIELD(dtype, i, MP_INT32),
      ROPE_FIELD(rows, i, -1),
      ROPE_FIELD(rows, i, INT64_MAX),
      ROPE_FIELD(heads, i, -1),
      ROPE_FIELD(head_dim, i, 0),
      ROPE_FIELD(head_dim, i, kHeadDim - 1),
      ROPE_FIELD(rotary_dim, i, 0),
      ROPE_FIELD(rotary_dim, i, -2),
      ROPE_FIELD(rotary_dim, i, 5),
      ROPE_FIELD(rotary_dim, i, kHeadDim + 2),
      ROPE_FIELD(rotary_dim, i, 514),
      ROPE_FIELD(flags, i, 4),
      ROPE_FIELD(x_row, i, -16),
      ROPE_FIELD(x_row, i, kHeadDim - 1),
      ROPE_FIELD(x_row, i, 2 * kHeadDim - 1),
      ROPE_FIELD(x_row, i, INT64_MAX / 2),
      ROPE_FIELD(x_head, i, -8),
      ROPE_FIELD(x_head, i, kHeadDim - 1),
      ROPE_FIELD(x_head, i, INT64_MAX / 2),
      ROPE_FIELD(x_head, i, INT64_MAX),
      ROPE_FIELD(base, f, 0.0f),
      ROPE_FIELD(base, f, -1.0f),
      ROPE_FIELD(base, f, NAN),
      ROPE_FIELD(base, f, INFINITY),
      ROPE_FIELD(reserved0, i, 1),
      ROPE_FIELD(period, i, -1),
  };
  const struct subject subject = {"mp_rope", "desc", sizeof(mp_rope_desc_t), init_rope, call_rope};
  CHECK_STRUCT(&subject, fields);
  mp_rope_desc_t d = rope_desc();
  check(d.rotary_dim == kHeadDim && d.base == 10000.0f && d.x_row == 0 && d.x_head == 0 &&
            d.period == 0 && d.flags == 0,
        "all elements of dense rows");
  d.x_row = 2 * kHeadDim - 1;
  FAILS(mp_rope, (context, &d, NULL, NULL, at(kX), at(kY), NULL, NULL), wrong,
        "x_row = 15 with x_head = 8: rows overlap");
  d.x_head = kTokens * kHeadDim; /* heads x rows x head_dim */
  d.x_row = kHeadDim;
  WORKS(mp_rope(context, &d, NULL, NULL, at(kX), at(kY), NULL, NULL));
  d.x_head--;
  FAILS(mp_rope, (context, &d, NULL, NULL, at(kX), at(kY), NULL, NULL), wrong, "x_head");
  d.heads = 1; /* x_head is not used */
  d.x_head = 1;
  WORKS(mp_rope(context, &d, NULL, NULL, at(kX), at(kY), NULL, NULL));
}

static void test_rope_pointers(void) {
  mp_rope_desc_t d = rope_desc();
  void *const y = at(kY);
  WORKS(mp_rope(context, &d, NULL, NULL, y, y, NULL, NULL));
  /* The other half of the heads of a wider row. */
  d.x_row = 2 * kHeads * kHeadDim;
  WORKS(mp_rope(context, &d, NULL, NULL, at(kX), at(kX + 2 * kHeads * kHeadDim), NULL, NULL));
  d.rows = 0;
  WORKS(mp_rope(context, &d, NULL, NULL, NULL, NULL, NULL, NULL));
  d.rows = kTokens;
  d.heads = 0;
  WORKS(mp_rope(context, &d, NULL, NULL, NULL, NULL, NULL, NULL));
}

/* ---------------------------------------------------------------- softmax */

static mp_softmax_desc_t softmax_desc(void) {
  mp_softmax_desc_t d = mp_softmax_desc_default(kRows, kColumns, MP_FP16);
  d.mask = MP_SOFTMAX_MASK_ADDITIVE;
  return d;
}
INIT(init_softmax, mp_softmax_desc_t, softmax_desc())
CALL_OF(call_softmax, mp_softmax_forward(context, s, at(kX), at(kMask), at(kY), NULL))
static mp_status_t call_softmax_backward(void *s) {
  return mp_softmax_backward(context, s, at(kX), at(kDy), NULL, at(kY), NULL, NULL);
}

#define SOFTMAX_FIELD(field, member, v) \
  FIELD(mp_softmax_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_softmax_desc(void) {
  const struct field_case fields[] = {
      SOFTMAX_FIELD(dtype, i, MP_DTYPE_NONE),
      SOFTMAX_FIELD(dtype, i, MP_INT64),
      SOFTMAX_FIELD(mask, i, -1),
      SOFTMAX_FIELD(mask, i, MP_SOFTMAX_MASK_ADDITIVE + 1),
      SOFTMAX_FIELD(flags, i, 2),
      SOFTMAX_FIELD(rows, i, -1),
      SOFTMAX_FIELD(rows, i, INT64_MAX),
      SOFTMAX_FIELD(columns, i, -1),
      SOFTMAX_FIELD(ld_x, i, kColumns - 1),
      SOFTMAX_FIELD(ld_x, i, INT64_MAX),
      SOFTMAX_FIELD(ld_y, i, kColumns - 1),
      SOFTMAX_FIELD(ld_y, i, INT64_MAX),
      SOFTMAX_FIELD(scale, f, NAN),
      SOFTMAX_FIELD(scale, f, -INFINITY),
      SOFTMAX_FIELD(dtype_mask, i, MP_DTYPE_NONE),
      SOFTMAX_FIELD(dtype_mask, i, MP_INT32),
      SOFTMAX_FIELD(mask_rows, i, -1),
      SOFTMAX_FIELD(ld_mask, i, kColumns - 1),
      SOFTMAX_FIELD(ld_mask, i, INT64_MAX),
  };
  const struct subject forward = {"mp_softmax_forward", "desc", sizeof(mp_softmax_desc_t),
                                  init_softmax, call_softmax};
  const struct subject backward = {"mp_softmax_backward", "desc", sizeof(mp_softmax_desc_t),
                                   init_softmax, call_softmax_backward};
  CHECK_STRUCT(&forward, fields);
  CHECK_STRUCT(&backward, fields);
  mp_softmax_desc_t d = mp_softmax_desc_default(kRows, kColumns, MP_FP16);
  check(d.mask == MP_SOFTMAX_MASK_NONE && d.scale == 1.0f && d.dtype_mask == MP_FP16 &&
            d.ld_x == kColumns && d.ld_y == kColumns && d.ld_mask == kColumns && d.mask_rows == 0,
        "dense rows without a mask");
  d.ld_mask = 0; /* not used */
  d.dtype_mask = MP_DTYPE_NONE;
  WORKS(mp_softmax_forward(context, &d, at(kX), NULL, at(kY), NULL));
}

static void test_softmax_pointers(void) {
  mp_softmax_desc_t d = softmax_desc();
  void *const x = at(kX), *const y = at(kY), *const dy = at(kDy);
  d.dtype_mask = MP_FP32;
  FAILS(mp_softmax_forward, (context, &d, x, at(kMask + 2), y, NULL), misaligned, "mask");
  d.mask = MP_SOFTMAX_MASK_LENGTHS;
  FAILS(mp_softmax_forward, (context, &d, x, at(kMask + 2), y, NULL), misaligned, "mask");
  FAILS(mp_softmax_forward, (context, &d, x, NULL, y, NULL), wrong, "mask = NULL");
  FAILS(mp_softmax_backward, (context, &d, y, dy, NULL, x, NULL, NULL), wrong, "mask = NULL");
  FAILS(mp_softmax_backward, (context, &d, y, dy, at(kMask + 2), x, NULL, NULL), misaligned,
        "mask");
  d.mask = MP_SOFTMAX_MASK_CAUSAL;
  WORKS(mp_softmax_forward(context, &d, x, at(1), y, NULL));
  WORKS(mp_softmax_forward(context, &d, x, NULL, x, NULL));
  WORKS(mp_softmax_backward(context, &d, y, dy, NULL, y, NULL, NULL));
  WORKS(mp_softmax_backward(context, &d, y, dy, NULL, dy, NULL, NULL));
  d.ld_y = kColumns + 1;
  FAILS(mp_softmax_forward, (context, &d, x, NULL, x, NULL), wrong,
        "ld_y = 9 must equal ld_x = 8 if y = x");
  FAILS(mp_softmax_backward, (context, &d, y, dy, NULL, dy, NULL, NULL), wrong,
        "ld_y = 9 must equal ld_x = 8 if dx = dy");
  FAILS(mp_softmax_backward, (context, &d, y, dy, NULL, y, NULL, NULL), wrong,
        "ld_y = 9 must equal ld_x = 8 if dx = y");
  d.rows = 0;
  WORKS(mp_softmax_forward(context, &d, NULL, NULL, NULL, NULL));
  WORKS(mp_softmax_backward(context, &d, NULL, NULL, NULL, NULL, NULL, NULL));
}

void test_transformer(void) {
  test_sum_rows();
  test_strided_copy();
  test_glu();
  test_rope_desc();
  test_rope_pointers();
  test_softmax_desc();
  test_softmax_pointers();
}
