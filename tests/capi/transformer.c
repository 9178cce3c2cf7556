/* mpcore/layers.h and sequences.h: sums of 6 rows of 8, transposition and gated units of 6 x 8,
 * rotary embedding of 4 tokens with 2 heads of 8, softmax of 6 x 8; all fp16. */
#include <math.h>
#include <stdint.h>

#include "harness.h"

enum { kRows = 6, kColumns = 8, kPeriod = 3, kTokens = 4, kHeads = 2, kHeadDim = 8 };

/* Offsets. */
enum { kX = 0, kY = 512, kDy = 1024, kMask = 1536, kStats = 2048, kPositions = 2560, kFreq = 3072 };

static const mp_status_t misaligned = MP_ERROR_MISALIGNED;

/* ---------------------------------------------------------------- sums of rows */

static mp_sum_rows_desc_t sum_desc(void) {
  return mp_sum_rows_desc_default(kRows, kPeriod, kColumns, MP_FP16);
}
CALL_OF(call_sum, mp_sum_rows(context, s, at(kX), at(kY), NULL, NULL))

static void test_sum_rows(void) {
  const struct field_case fields[] = {
      INTS(mp_sum_rows_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_sum_rows_desc_t, dtype_sum, 0, MP_INT64),
      REALS(mp_sum_rows_desc_t, beta, NAN, INFINITY),
      INTS(mp_sum_rows_desc_t, rows, -1, INT64_MAX),
      INTS(mp_sum_rows_desc_t, period, -1, 0, INT64_MAX),
      INTS(mp_sum_rows_desc_t, columns, -1),
      INTS(mp_sum_rows_desc_t, ld_x, kColumns - 1, INT64_MAX),
      INTS(mp_sum_rows_desc_t, ld_sum, kColumns - 1, INT64_MAX),
  };
  const mp_sum_rows_desc_t initial = sum_desc();
  CHECK_STRUCT("mp_sum_rows", "desc", initial, call_sum, fields);
  mp_sum_rows_desc_t d = sum_desc();
  check(d.dtype_sum == MP_FP32 && d.beta == 0.0f && d.ld_x == kColumns && d.ld_sum == kColumns,
        "dense rows; the sum is fp32 and overwritten");
  void *const x = at(kX), *const sum = at(kY);
  d.period = 0;
  INVALID(mp_sum_rows, (context, &d, x, sum, NULL, NULL),
          "period = 0 must be at least 1 if rows = 6");
  d.rows = 0;
  WORKS(mp_sum_rows(context, &d, NULL, NULL, NULL, NULL));
  d.period = kPeriod;
  WORKS(mp_sum_rows(context, &d, NULL, sum, NULL, NULL));
  INVALID(mp_sum_rows, (context, &d, NULL, NULL, NULL, NULL), "sum = NULL");
  d.columns = 0;
  WORKS(mp_sum_rows(context, &d, NULL, NULL, NULL, NULL));
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
CALL_OF(call_copy, mp_strided_copy(context, s, at(kX), at(kY), NULL, NULL))

static void test_strided_copy(void) {
  const struct field_case fields[] = {
      INTS(mp_strided_copy_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_strided_copy_desc_t, rank, -1, MP_STRIDED_COPY_MAX_RANK + 1),
      INTS(mp_strided_copy_desc_t, reserved0, 1),
      INTS(mp_strided_copy_desc_t, extent[0], -1),
      INTS(mp_strided_copy_desc_t, extent[1], INT64_MAX),
      INTS(mp_strided_copy_desc_t, x_stride[0], -1, INT64_MAX),
      INTS(mp_strided_copy_desc_t, y_stride[1], -1, INT64_MAX, kRows - 1),
      INTS(mp_strided_copy_desc_t, y_stride[0], 0),
      REALS(mp_strided_copy_desc_t, alpha, NAN),
      REALS(mp_strided_copy_desc_t, beta, INFINITY),
  };
  const mp_strided_copy_desc_t initial = copy_desc();
  CHECK_STRUCT("mp_strided_copy", "desc", initial, call_copy, fields);
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
CALL_OF(call_glu, mp_glu_forward(context, s, at(kX), at(kY), NULL))
CALL_OF(call_glu_backward, mp_glu_backward(context, s, at(kX), at(kDy), at(kY), NULL, NULL))

static void test_glu(void) {
  const struct field_case fields[] = {
      INTS(mp_glu_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_glu_desc_t, activation, -1, MP_ACT_GELU_ERF + 2, MP_ACT_DSILU, MP_ACT_DRELU),
      INTS(mp_glu_desc_t, reserved0, 1),
      INTS(mp_glu_desc_t, rows, -1, INT64_MAX),
      INTS(mp_glu_desc_t, columns, -1, INT64_MAX),
      INTS(mp_glu_desc_t, ld_x, 2 * kColumns - 1, -16, INT64_MAX),
      INTS(mp_glu_desc_t, ld_y, kColumns - 1, INT64_MAX),
  };
  const mp_glu_desc_t initial = glu_desc();
  CHECK_STRUCT("mp_glu_forward", "desc", initial, call_glu, fields);
  CHECK_STRUCT("mp_glu_backward", "desc", initial, call_glu_backward, fields);
  mp_glu_desc_t d = glu_desc();
  check(d.ld_x == 2 * kColumns && d.ld_y == kColumns && d.reserved0 == 0, "dense rows");
  void *const x = at(kX), *const y = at(kY);
  WORKS(mp_glu_forward(context, &d, at(kY + 96), y, NULL));
  d.activation = MP_ACT_DGELU;
  INVALID(mp_glu_forward, (context, &d, x, y, NULL),
          "activation = MP_ACT_DGELU is a derivative; pass the activation of the forward pass");
  for (int which = 0; which < 2; which++) {
    d = glu_desc();
    *(which == 0 ? &d.rows : &d.columns) = 0;
    WORKS(mp_glu_forward(context, &d, NULL, NULL, NULL));
    WORKS(mp_glu_backward(context, &d, NULL, NULL, NULL, NULL, NULL));
  }
}

/* ---------------------------------------------------------------- rotary embedding */

static mp_rope_desc_t rope_desc(void) {
  return mp_rope_desc_default(kTokens, kHeads, kHeadDim, MP_FP16);
}
CALL_OF(call_rope, mp_rope(context, s, at(kPositions), at(kFreq), at(kX), at(kY), NULL, NULL))

static void test_rope_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_rope_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_rope_desc_t, rows, -1, INT64_MAX),
      INTS(mp_rope_desc_t, heads, -1),
      INTS(mp_rope_desc_t, head_dim, 0, kHeadDim - 1),
      INTS(mp_rope_desc_t, rotary_dim, 0, -2, 5, kHeadDim + 2, 514),
      INTS(mp_rope_desc_t, flags, 4),
      INTS(mp_rope_desc_t, x_row, -16, kHeadDim - 1, 2 * kHeadDim - 1, INT64_MAX / 2),
      INTS(mp_rope_desc_t, x_head, -8, kHeadDim - 1, INT64_MAX / 2, INT64_MAX),
      REALS(mp_rope_desc_t, base, 0, -1, NAN, INFINITY),
      INTS(mp_rope_desc_t, reserved0, 1),
      INTS(mp_rope_desc_t, period, -1),
  };
  const mp_rope_desc_t initial = rope_desc();
  CHECK_STRUCT("mp_rope", "desc", initial, call_rope, fields);
  mp_rope_desc_t d = rope_desc();
  check(d.rotary_dim == kHeadDim && d.base == 10000.0f && d.x_row == 0 && d.x_head == 0 &&
            d.period == 0 && d.flags == 0,
        "all elements of dense rows");
  d.x_row = 2 * kHeadDim - 1;
  INVALID(mp_rope, (context, &d, NULL, NULL, at(kX), at(kY), NULL, NULL),
          "x_row = 15 with x_head = 8: rows overlap");
  d.x_head = kTokens * kHeadDim; /* heads x rows x head_dim */
  d.x_row = kHeadDim;
  WORKS(mp_rope(context, &d, NULL, NULL, at(kX), at(kY), NULL, NULL));
  d.x_head--;
  INVALID(mp_rope, (context, &d, NULL, NULL, at(kX), at(kY), NULL, NULL), "x_head");
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
CALL_OF(call_softmax, mp_softmax_forward(context, s, at(kX), at(kMask), at(kY), NULL))
CALL_OF(call_softmax_backward,
        mp_softmax_backward(context, s, at(kX), at(kDy), NULL, at(kY), NULL, NULL))

static void test_softmax_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_softmax_desc_t, dtype, MP_DTYPE_NONE, MP_INT64),
      INTS(mp_softmax_desc_t, mask, -1, MP_SOFTMAX_MASK_ADDITIVE + 1),
      INTS(mp_softmax_desc_t, flags, 2),
      INTS(mp_softmax_desc_t, rows, -1, INT64_MAX),
      INTS(mp_softmax_desc_t, columns, -1),
      INTS(mp_softmax_desc_t, ld_x, kColumns - 1, INT64_MAX),
      INTS(mp_softmax_desc_t, ld_y, kColumns - 1, INT64_MAX),
      REALS(mp_softmax_desc_t, scale, NAN, -INFINITY),
      INTS(mp_softmax_desc_t, dtype_mask, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_softmax_desc_t, mask_rows, -1),
      INTS(mp_softmax_desc_t, ld_mask, kColumns - 1, INT64_MAX),
  };
  const mp_softmax_desc_t initial = softmax_desc();
  CHECK_STRUCT("mp_softmax_forward", "desc", initial, call_softmax, fields);
  CHECK_STRUCT("mp_softmax_backward", "desc", initial, call_softmax_backward, fields);
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
  INVALID(mp_softmax_forward, (context, &d, x, NULL, y, NULL), "mask = NULL");
  INVALID(mp_softmax_backward, (context, &d, y, dy, NULL, x, NULL, NULL), "mask = NULL");
  FAILS(mp_softmax_backward, (context, &d, y, dy, at(kMask + 2), x, NULL, NULL), misaligned,
        "mask");
  d.mask = MP_SOFTMAX_MASK_CAUSAL;
  WORKS(mp_softmax_forward(context, &d, x, at(1), y, NULL));
  WORKS(mp_softmax_forward(context, &d, x, NULL, x, NULL));
  WORKS(mp_softmax_backward(context, &d, y, dy, NULL, y, NULL, NULL));
  WORKS(mp_softmax_backward(context, &d, y, dy, NULL, dy, NULL, NULL));
  d.ld_y = kColumns + 1;
  INVALID(mp_softmax_forward, (context, &d, x, NULL, x, NULL),
          "ld_y = 9 must equal ld_x = 8 if y = x");
  INVALID(mp_softmax_backward, (context, &d, y, dy, NULL, dy, NULL, NULL),
          "ld_y = 9 must equal ld_x = 8 if dx = dy");
  INVALID(mp_softmax_backward, (context, &d, y, dy, NULL, y, NULL, NULL),
          "ld_y = 9 must equal ld_x = 8 if dx = y");
  for (int which = 0; which < 2; which++) {
    d = softmax_desc();
    *(which == 0 ? &d.rows : &d.columns) = 0;
    WORKS(mp_softmax_forward(context, &d, NULL, NULL, NULL, NULL));
    WORKS(mp_softmax_backward(context, &d, NULL, NULL, NULL, NULL, NULL, NULL));
  }
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
