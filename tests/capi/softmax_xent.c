/* mpcore/loss.h: softmax cross-entropy of 4 rows of 8 fp16 logits; losses of 32 fp16 elements. */
#include <math.h>

#include "harness.h"

enum { kLogits = 0, kLabels = 1024, kScale = 2048, kRowLoss = 3072, kLse = 3088 };
enum { kLoss = 4096, kCorrect = 4104, kDlogits = 5120, kWorkspace = 6144, kStats = 6912 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static int is_loss_of_nothing(float wanted) {
  float loss = 1.0f;
  const int good = mp_memcpy(context, &loss, at(kLoss), sizeof loss, NULL) == MP_SUCCESS &&
                   mp_stream_sync(context, NULL) == MP_SUCCESS;
  reset();
  return good && (isnan(wanted) ? isnan(loss) : loss == wanted);
}

/* ---------------------------------------------------------------- softmax cross-entropy */

static mp_xent_desc_t xent_desc(void) {
  return mp_xent_desc_default(4, 8, MP_FP16);
}

static mp_xent_tensors_t xent_tensors(void) {
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = at(kLogits), t.labels = at(kLabels);
  t.loss_scale = t.count = at(kScale);
  t.row_loss = at(kRowLoss), t.lse = at(kLse), t.loss = at(kLoss), t.correct = at(kCorrect);
  t.dx = at(kDlogits);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

INIT(init_xent, mp_xent_desc_t, xent_desc())
static mp_status_t call_xent(void *s) {
  const mp_xent_tensors_t t = xent_tensors();
  return mp_softmax_xent(context, s, &t, NULL);
}
INIT(init_xent_tensors, mp_xent_tensors_t, xent_tensors())
static mp_status_t call_xent_tensors(void *s) {
  const mp_xent_desc_t d = xent_desc();
  return mp_softmax_xent(context, &d, s, NULL);
}
static mp_status_t call_xent_of_wide_labels(void *s) {
  mp_xent_desc_t d = xent_desc();
  d.dtype_labels = MP_INT64;
  return mp_softmax_xent(context, &d, s, NULL);
}

#define XENT_FIELD(field, member, v) \
  FIELD(mp_xent_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)
#define XENT_TENSOR(field, v, status) FIELD(mp_xent_tensors_t, field, p, v, status)

static void test_xent(void) {
  const struct field_case fields[] = {
      XENT_FIELD(dtype, i, MP_DTYPE_NONE),
      XENT_FIELD(dtype, i, MP_INT32),
      XENT_FIELD(dtype, i, MP_INT64),
      XENT_FIELD(dtype_labels, i, MP_DTYPE_NONE),
      XENT_FIELD(dtype_labels, i, MP_FP32 + 1),
      XENT_FIELD(dtype_labels, i, MP_INT64 + 1),
      XENT_FIELD(rows, i, -1),
      XENT_FIELD(rows, i, INT64_MAX),
      XENT_FIELD(classes, i, 0),
      XENT_FIELD(ld_logits, i, 7),
      XENT_FIELD(ld_logits, i, INT64_MAX),
      XENT_FIELD(ld_dlogits, i, 7),
      XENT_FIELD(ld_dlogits, i, INT64_MAX),
      XENT_FIELD(weight, f, NAN),
      XENT_FIELD(weight, f, INFINITY),
      XENT_FIELD(flags, i, MP_XENT_FLAG_LOG_PROBABILITIES | 4),
      XENT_FIELD(label_smoothing, f, NAN),
      XENT_FIELD(label_smoothing, f, INFINITY),
      XENT_FIELD(label_smoothing, f, -0.125),
      XENT_FIELD(label_smoothing, f, 1),
      XENT_FIELD(z_loss, f, -1),
      XENT_FIELD(z_loss, f, NAN),
      XENT_FIELD(z_loss, f, INFINITY),
      XENT_FIELD(reserved0, i, 1),
      XENT_FIELD(ld_labels, i, 8),
      XENT_FIELD(ld_labels, i, -1),
  };
  const struct subject desc = {"mp_softmax_xent", "desc", sizeof(mp_xent_desc_t), init_xent,
                               call_xent};
  CHECK_STRUCT(&desc, fields);

  const struct field_case tensors[] = {
      FIELD(mp_xent_tensors_t, reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT),
      XENT_TENSOR(w, at(0), MP_ERROR_UNSUPPORTED),
      XENT_TENSOR(bias, at(0), MP_ERROR_UNSUPPORTED),
      XENT_TENSOR(dw, at(0), MP_ERROR_UNSUPPORTED),
      XENT_TENSOR(dbias, at(0), MP_ERROR_UNSUPPORTED),
  };
  const struct field_case wide[] = {XENT_TENSOR(labels, at(4), MP_ERROR_MISALIGNED)};
  struct subject of_tensors = {"mp_softmax_xent", "tensors", sizeof(mp_xent_tensors_t),
                               init_xent_tensors, call_xent_tensors};
  CHECK_STRUCT(&of_tensors, tensors);
  of_tensors.call = call_xent_of_wide_labels;
  CHECK_FIELDS(&of_tensors, wide);

  mp_xent_desc_t d = xent_desc();
  mp_xent_tensors_t t = xent_tensors();
  d.z_loss = 0.5f;
  d.flags = MP_XENT_FLAG_LOG_PROBABILITIES;
  FAILS(mp_softmax_xent, (context, &d, &t, NULL), MP_ERROR_INVALID_ARGUMENT,
        "z_loss = 0.5 must be 0");
  d.flags = 0;
  t.class_weights = at(kWorkspace);
  WORKS(mp_softmax_xent(context, &d, &t, NULL));
  t = xent_tensors();
  d = xent_desc();
  t.dx = at(kLogits);
  WORKS(mp_softmax_xent(context, &d, &t, NULL));
  d.ld_dlogits = 16;
  FAILS(mp_softmax_xent, (context, &d, &t, NULL), MP_ERROR_INVALID_ARGUMENT, "ld_dlogits");

  /* Soft targets are a matrix. */
  d = xent_desc();
  d.dtype_labels = MP_FP32;
  t = xent_tensors();
  FAILS(mp_softmax_xent, (context, &d, &t, NULL), MP_ERROR_INVALID_ARGUMENT, "tensors->correct");
  t.correct = NULL;
  t.class_weights = at(kCorrect);
  WORKS(mp_softmax_xent(context, &d, &t, NULL));
  d.ld_labels = 7;
  FAILS(mp_softmax_xent, (context, &d, &t, NULL), MP_ERROR_INVALID_ARGUMENT,
        "ld_labels = 7 is smaller than classes = 8");
  d.ld_labels = INT64_MAX / 4;
  FAILS(mp_softmax_xent, (context, &d, &t, NULL), MP_ERROR_INVALID_ARGUMENT, "rows = 4");
  d.ld_labels = 0;
  t.labels = at(kDlogits - 4 * 8 * 4 + 4); /* the last of 128 bytes belong to dlogits */
  FAILS(mp_softmax_xent, (context, &d, &t, NULL), MP_ERROR_INVALID_ARGUMENT, "tensors->dx");

  d = mp_xent_desc_default(0, 8, MP_FP16);
  MP_INIT_STRUCT(&t);
  WORKS(mp_softmax_xent(context, &d, &t, NULL));
  t.loss = at(kLoss);
  check(mp_softmax_xent(context, &d, &t, NULL) == MP_SUCCESS && is_loss_of_nothing(NAN),
        "the loss of no rows is NaN");
}

/* ---------------------------------------------------------------- element-wise losses */

enum { kPrediction = 0, kTarget = 256, kWeights = 512, kElements = 1024 };

static mp_loss_desc_t loss_desc(void) {
  return mp_loss_desc_default(MP_LOSS_MSE, 32, MP_FP16);
}

static mp_loss_tensors_t loss_tensors(void) {
  mp_loss_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.prediction = at(kPrediction), t.target = at(kTarget);
  t.weights = at(kWeights), t.loss_scale = at(kScale);
  t.element_loss = at(kElements), t.loss = at(kLoss), t.dprediction = at(kDlogits);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

INIT(init_loss, mp_loss_desc_t, loss_desc())
static mp_status_t call_loss(void *s) {
  const mp_loss_tensors_t t = loss_tensors();
  return mp_loss(context, s, &t, at(kWorkspace), 256, NULL);
}
INIT(init_loss_tensors, mp_loss_tensors_t, loss_tensors())
static mp_status_t call_loss_tensors(void *s) {
  const mp_loss_desc_t d = loss_desc();
  return mp_loss(context, &d, s, at(kWorkspace), 256, NULL);
}
static mp_status_t call_loss_size(void *s) {
  size_t bytes;
  return mp_loss_workspace_size(context, s, &bytes);
}

#define LOSS_FIELD(field, member, v) \
  FIELD(mp_loss_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_loss(void) {
  const struct field_case fields[] = {
      LOSS_FIELD(kind, i, 0),
      LOSS_FIELD(kind, i, MP_LOSS_LINEAR + 1),
      LOSS_FIELD(dtype, i, MP_DTYPE_NONE),
      LOSS_FIELD(dtype, i, MP_INT32),
      LOSS_FIELD(dtype_target, i, MP_INT64),
      LOSS_FIELD(count, i, -1),
      LOSS_FIELD(count, i, INT64_MAX),
      LOSS_FIELD(weight, f, NAN),
      LOSS_FIELD(weight, f, INFINITY),
      LOSS_FIELD(reduction, i, 0),
      LOSS_FIELD(reduction, i, MP_LOSS_REDUCTION_SUM + 1),
      LOSS_FIELD(flags, i, 2),
      LOSS_FIELD(reserved0, i, 1),
  };
  const struct subject subjects[] = {
      {"mp_loss", "desc", sizeof(mp_loss_desc_t), init_loss, call_loss},
      {"mp_loss_workspace_size", "desc", sizeof(mp_loss_desc_t), init_loss, call_loss_size},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i)
    CHECK_STRUCT(&subjects[i], fields);

  const struct field_case tensors[] = {
      FIELD(mp_loss_tensors_t, reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT),
  };
  const struct subject of_tensors = {"mp_loss", "tensors", sizeof(mp_loss_tensors_t),
                                     init_loss_tensors, call_loss_tensors};
  CHECK_STRUCT(&of_tensors, tensors);

  mp_loss_desc_t d = loss_desc();
  mp_loss_tensors_t t = loss_tensors();
  void *space = at(kWorkspace);
  FAILS(mp_loss, (context, &d, &t, space, 0, NULL), MP_ERROR_WORKSPACE_TOO_SMALL,
        "workspace_bytes");
  t.dprediction = at(kPrediction);
  WORKS(mp_loss(context, &d, &t, space, 256, NULL));
  const mp_loss_kind_t with_delta[] = {MP_LOSS_HUBER, MP_LOSS_SMOOTH_L1};
  const float refused[] = {0.0f, -1.0f, INFINITY, NAN};
  for (size_t i = 0; i < COUNT(with_delta) * COUNT(refused); ++i) {
    d.kind = with_delta[i % 2];
    d.delta = refused[i / 2];
    FAILS(mp_loss, (context, &d, &t, space, 256, NULL), MP_ERROR_INVALID_ARGUMENT, "delta");
  }
  d = mp_loss_desc_default(MP_LOSS_LINEAR, 32, MP_FP16);
  t.prediction = at(1);
  FAILS(mp_loss, (context, &d, &t, space, 256, NULL), MP_ERROR_MISALIGNED, "tensors->prediction");
  t.prediction = NULL;
  WORKS(mp_loss(context, &d, &t, space, 256, NULL));
  t.target = NULL;
  FAILS(mp_loss, (context, &d, &t, space, 256, NULL), MP_ERROR_INVALID_ARGUMENT, "tensors->target");
  d = loss_desc();

  /* The mean of no elements is NaN and the sum 0; nothing else is read. */
  MP_INIT_STRUCT(&t);
  t.loss = at(kLoss);
  d.count = 0;
  check(mp_loss(context, &d, &t, NULL, 0, NULL) == MP_SUCCESS && is_loss_of_nothing(NAN),
        "the mean of no elements is NaN");
  d.reduction = MP_LOSS_REDUCTION_SUM;
  check(mp_loss(context, &d, &t, NULL, 0, NULL) == MP_SUCCESS && is_loss_of_nothing(0.0f),
        "the sum of no elements is 0");
}

void test_softmax_xent(void) {
  test_loss();
  test_xent();
}
