/* mpcore/loss.h: mp_linear_xent of 4 rows, 8 inputs and 16 classes in fp16, and mp_xent_count. */
#include <math.h>

#include "harness.h"

enum { kRows = 4, kWidth = 8, kClasses = 16 };

/* Offsets: x and dx have 64 bytes, w 256, dw 512. */
enum { kX = 0, kW = 256, kBias = 512, kLabels = 768, kScale = 1024, kCount = 1028 };
enum { kRowLoss = 1280, kLse = 1536, kLoss = 1792, kCorrect = 1800, kStats = 1808 };
enum { kDx = 2048, kDw = 2304, kDbias = 3072, kWeights = 3328, kWorkspace = 4096 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static size_t bytes; /* workspace of linear_desc() */

static mp_linear_xent_desc_t linear_desc(void) {
  return mp_linear_xent_desc_default(kRows, kWidth, kClasses, MP_FP16);
}
static mp_xent_tensors_t linear_tensors(void) {
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = at(kX), t.w = at(kW), t.bias = at(kBias), t.labels = at(kLabels);
  t.loss_scale = at(kScale), t.count = at(kCount);
  t.row_loss = at(kRowLoss), t.lse = at(kLse), t.loss = at(kLoss), t.correct = at(kCorrect);
  t.dx = at(kDx), t.dw = at(kDw), t.dbias = at(kDbias);
  t.class_weights = at(kWeights);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

/* ---------------------------------------------------------------- descriptor */

INIT(init_desc, mp_linear_xent_desc_t, linear_desc())
static mp_status_t call_desc(void *s) {
  const mp_xent_tensors_t t = linear_tensors();
  return mp_linear_xent(context, s, &t, at(kWorkspace), bytes, NULL);
}
static mp_status_t call_size(void *s) {
  size_t needed = 1;
  const mp_status_t status = mp_linear_xent_workspace_size(context, s, &needed);
  check((status != MP_SUCCESS) == (needed == 1), "a failing call does not write the bytes");
  return status;
}

#define DESC_FIELD(field, member, v) \
  FIELD(mp_linear_xent_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_desc(void) {
  const struct field_case fields[] = {
      DESC_FIELD(dtype, i, MP_DTYPE_NONE),
      DESC_FIELD(dtype, i, MP_INT32),
      DESC_FIELD(dtype_labels, i, MP_DTYPE_NONE),
      DESC_FIELD(dtype_labels, i, MP_FP32),
      DESC_FIELD(dtype_labels, i, MP_INT64 + 1),
      DESC_FIELD(flags, i, MP_XENT_FLAG_LOG_PROBABILITIES),
      DESC_FIELD(flags, i, 8),
      DESC_FIELD(flags, i, MP_XENT_FLAG_ACCUMULATE | 1u << 31),
      DESC_FIELD(rows, i, -1),
      DESC_FIELD(rows, i, INT64_MAX),
      DESC_FIELD(width, i, 0),
      DESC_FIELD(width, i, -8),
      DESC_FIELD(width, i, 65537),
      DESC_FIELD(classes, i, 0),
      DESC_FIELD(classes, i, -1),
      DESC_FIELD(classes, i, (1 << 22) + 1),
      DESC_FIELD(ld_x, i, 7),
      DESC_FIELD(ld_x, i, INT64_MAX),
      DESC_FIELD(ld_w, i, 7),
      DESC_FIELD(ld_w, i, INT64_MAX),
      DESC_FIELD(ld_dx, i, 7),
      DESC_FIELD(ld_dx, i, INT64_MAX),
      DESC_FIELD(ld_dw, i, 7),
      DESC_FIELD(ld_dw, i, INT64_MAX),
      DESC_FIELD(weight, f, NAN),
      DESC_FIELD(weight, f, INFINITY),
      DESC_FIELD(label_smoothing, f, NAN),
      DESC_FIELD(label_smoothing, f, -0.125f),
      DESC_FIELD(label_smoothing, f, 1),
      DESC_FIELD(z_loss, f, NAN),
      DESC_FIELD(z_loss, f, INFINITY),
      DESC_FIELD(z_loss, f, -1),
      DESC_FIELD(reserved0, i, 1),
  };
  const struct subject subjects[] = {
      {"mp_linear_xent", "desc", sizeof(mp_linear_xent_desc_t), init_desc, call_desc},
      {"mp_linear_xent_workspace_size", "desc", sizeof(mp_linear_xent_desc_t), init_desc,
       call_size},
  };
  for (size_t i = 0; i < COUNT(subjects); i++) {
    CHECK_STRUCT(&subjects[i], fields);
  }
}

/* ---------------------------------------------------------------- tensors */

INIT(init_tensors, mp_xent_tensors_t, linear_tensors())
static mp_status_t call_tensors(void *s) {
  const mp_linear_xent_desc_t d = linear_desc();
  return mp_linear_xent(context, &d, s, at(kWorkspace), bytes, NULL);
}
static mp_status_t call_of_wide_labels(void *s) {
  mp_linear_xent_desc_t d = linear_desc();
  d.dtype_labels = MP_INT64;
  return mp_linear_xent(context, &d, s, at(kWorkspace), bytes, NULL);
}

#define TENSOR(field, v, status) FIELD(mp_xent_tensors_t, field, p, v, status)

static void test_tensors_of_linear(void) {
  const struct field_case fields[] = {
      FIELD(mp_xent_tensors_t, reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT),
  };
  const struct field_case wide[] = {TENSOR(labels, at(kLabels + 4), MP_ERROR_MISALIGNED)};
  struct subject subject = {"mp_linear_xent", "tensors", sizeof(mp_xent_tensors_t), init_tensors,
                            call_tensors};
  CHECK_STRUCT(&subject, fields);
  subject.call = call_of_wide_labels;
  CHECK_FIELDS(&subject, wide);
}

static void test_calls(void) {
  mp_linear_xent_desc_t d = linear_desc();
  mp_xent_tensors_t t = linear_tensors();
  const mp_status_t wrong = MP_ERROR_INVALID_ARGUMENT;
  void *space = at(kWorkspace);
  FAILS(mp_linear_xent, (context, &d, &t, space, bytes - 1, NULL), MP_ERROR_WORKSPACE_TOO_SMALL,
        "workspace_bytes");

  t.dx = at(kX);
  WORKS(mp_linear_xent(context, &d, &t, space, bytes, NULL));
  d.ld_dx = 16;
  FAILS(mp_linear_xent, (context, &d, &t, space, bytes, NULL), wrong, "ld_dx");
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
  const mp_status_t wrong = MP_ERROR_INVALID_ARGUMENT;
  const void *labels = at(kLabels);
  float *count = at(kCount);
  const mp_dtype_t narrow = MP_INT32;
  FAILS(mp_xent_count, (context, -1, narrow, labels, 0, count, NULL), wrong, "rows");
  FAILS(mp_xent_count, (context, INT64_MAX, narrow, labels, 0, count, NULL), wrong, "rows");
  FAILS(mp_xent_count, (context, 4, MP_FP32, labels, 0, count, NULL), wrong, "dtype_labels");
  FAILS(mp_xent_count, (context, 4, MP_DTYPE_NONE, labels, 0, count, NULL), wrong, "dtype_labels");
  FAILS(mp_xent_count, (context, 4, narrow, labels, 0, at(kLabels + 12), NULL), wrong, "count");
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
