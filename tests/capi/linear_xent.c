/* mpcore/loss.h: mp_linear_xent of 4 rows, 8 inputs and 16 classes in fp16, and mp_xent_count. */
#include <math.h>

#include "harness.h"

enum { kRows = 4, kWidth = 8, kClasses = 16 };

/* Offsets: x and dx have 64 bytes, w 256, dw 512. */
enum { kX = 0, kW = 256, kBias = 512, kLabels = 768, kScale = 1024, kCount = 1028 };
enum { kRowLoss = 1280, kLse = 1536, kLoss = 1792, kCorrect = 1800, kStats = 1808 };
enum { kDx = 2048, kDw = 2304, kDbias = 3072, kWeights = 3328, kWorkspace = 4096 };

static size_t bytes; /* workspace of linear_desc() */

static mp_linear_xent_desc_t linear_desc(void) {
  return mp_linear_xent_desc_default(kRows, kWidth, kClasses, MP_FP16);
}
static mp_xent_tensors_t linear_tensors(void) {
  mp_xent_tensors_t t = INITIALIZED(mp_xent_tensors_t);
  t.x = at(kX), t.w = at(kW), t.bias = at(kBias), t.labels = at(kLabels);
  t.loss_scale = at(kScale), t.count = at(kCount);
  t.row_loss = at(kRowLoss), t.lse = at(kLse), t.loss = at(kLoss), t.correct = at(kCorrect);
  t.dx = at(kDx), t.dw = at(kDw), t.dbias = at(kDbias);
  t.class_weights = at(kWeights);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

/* ---------------------------------------------------------------- descriptor */

CALL_OF(call_desc, mp_linear_xent(context, s, REF(mp_xent_tensors_t, linear_tensors()),
                                  at(kWorkspace), bytes, NULL))
CALL_OF(call_size, mp_linear_xent_workspace_size(context, s, &out.bytes))

static void test_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_linear_xent_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_linear_xent_desc_t, dtype_labels, MP_DTYPE_NONE, MP_FP32, MP_INT64 + 1),
      INTS(mp_linear_xent_desc_t, flags, MP_XENT_FLAG_LOG_PROBABILITIES, 8,
           MP_XENT_FLAG_ACCUMULATE | 1u << 31),
      INTS(mp_linear_xent_desc_t, rows, -1, INT64_MAX),
      INTS(mp_linear_xent_desc_t, width, 0, -8, 65537),
      INTS(mp_linear_xent_desc_t, classes, 0, -1, (1 << 22) + 1),
      INTS(mp_linear_xent_desc_t, ld_x, 7, INT64_MAX),
      INTS(mp_linear_xent_desc_t, ld_w, 7, INT64_MAX),
      INTS(mp_linear_xent_desc_t, ld_dx, 7, INT64_MAX),
      INTS(mp_linear_xent_desc_t, ld_dw, 7, INT64_MAX),
      REALS(mp_linear_xent_desc_t, weight, NAN, INFINITY),
      REALS(mp_linear_xent_desc_t, label_smoothing, NAN, -0.125, 1),
      REALS(mp_linear_xent_desc_t, z_loss, NAN, INFINITY, -1),
      INTS(mp_linear_xent_desc_t, reserved0, 1),
  };
  const mp_linear_xent_desc_t initial = linear_desc();
  CHECK_STRUCT("mp_linear_xent", "desc", initial, call_desc, fields);
  CHECK_STRUCT("mp_linear_xent_workspace_size", "desc", initial, call_size, fields);
}

/* ---------------------------------------------------------------- tensors */

CALL_OF(call_tensors, mp_linear_xent(context, REF(mp_linear_xent_desc_t, linear_desc()), s,
                                     at(kWorkspace), bytes, NULL))
static mp_status_t call_of_wide_labels(void *s) {
  mp_linear_xent_desc_t d = linear_desc();
  d.dtype_labels = MP_INT64;
  return mp_linear_xent(context, &d, s, at(kWorkspace), bytes, NULL);
}

static void test_tensors_of_linear(void) {
  const struct field_case fields[] = {
      INTS(mp_xent_tensors_t, reserved0, 1),
  };
  const mp_xent_tensors_t initial = linear_tensors();
  CHECK_STRUCT("mp_linear_xent", "tensors", initial, call_tensors, fields);
  CHECK_FIELD("mp_linear_xent", "tensors", initial, call_of_wide_labels,
              FIELD(mp_xent_tensors_t, labels, pointers, MP_ERROR_MISALIGNED, at(kLabels + 4)));
}

static void test_calls(void) {
  mp_linear_xent_desc_t d = linear_desc();
  mp_xent_tensors_t t = linear_tensors();
  void *space = at(kWorkspace);
  FAILS(mp_linear_xent, (context, &d, &t, space, bytes - 1, NULL), MP_ERROR_WORKSPACE_TOO_SMALL,
        "workspace_bytes");

  t.dx = at(kX);
  WORKS(mp_linear_xent(context, &d, &t, space, bytes, NULL));
  d.ld_dx = 16;
  INVALID(mp_linear_xent, (context, &d, &t, space, bytes, NULL), "ld_dx");
  d = linear_desc();
  MP_INIT_STRUCT(&t); /* without optional tensors */
  t.x = at(kX), t.w = at(kW), t.labels = at(kLabels), t.row_loss = at(kRowLoss);
  WORKS(mp_linear_xent(context, &d, &t, space, bytes, NULL));
  d.rows = 0;
  MP_INIT_STRUCT(&t);
  WORKS(mp_linear_xent(context, &d, &t, NULL, 0, NULL));
  t.dw = at(2);
  FAILS(mp_linear_xent, (context, &d, &t, NULL, 0, NULL), MP_ERROR_MISALIGNED, "dw");
}

static void test_count(void) {
  const void *labels = at(kLabels);
  float *count = at(kCount);
  const mp_dtype_t narrow = MP_INT32;
  INVALID(mp_xent_count, (context, -1, narrow, labels, 0, count, NULL), "rows");
  INVALID(mp_xent_count, (context, INT64_MAX, narrow, labels, 0, count, NULL), "rows");
  INVALID(mp_xent_count, (context, 4, MP_FP32, labels, 0, count, NULL), "dtype_labels");
  INVALID(mp_xent_count, (context, 4, MP_DTYPE_NONE, labels, 0, count, NULL), "dtype_labels");
  INVALID(mp_xent_count, (context, 4, narrow, labels, 0, at(kLabels + 12), NULL), "count");
  WORKS(mp_xent_count(context, 4, narrow, labels, 0, count, NULL));
  WORKS(mp_xent_count(context, 0, narrow, NULL, 0, count, NULL));
}

void test_linear_xent(void) {
  const mp_linear_xent_desc_t d = linear_desc();
  check(mp_linear_xent_workspace_size(context, &d, &bytes) == MP_SUCCESS && bytes > 0 &&
            bytes <= 28672, /* memory after kWorkspace */
        "mp_linear_xent_workspace_size");
  test_desc();
  test_tensors_of_linear();
  test_calls();
  test_count();
}
