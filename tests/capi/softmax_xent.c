/* mpcore/loss.h: softmax cross-entropy of 4 rows of 8 fp16 logits; losses of 32 fp16 elements. */
#include <math.h>

#include "harness.h"

enum { kLogits = 0, kLabels = 1024, kScale = 2048, kRowLoss = 3072, kLse = 3088 };
enum { kLoss = 4096, kCorrect = 4104, kDlogits = 5120, kWorkspace = 6144, kStats = 6912 };

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
  mp_xent_tensors_t t = INITIALIZED(mp_xent_tensors_t);
  t.x = at(kLogits), t.labels = at(kLabels);
  t.loss_scale = t.count = at(kScale);
  t.row_loss = at(kRowLoss), t.lse = at(kLse), t.loss = at(kLoss), t.correct = at(kCorrect);
  t.dx = at(kDlogits);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

CALL_OF(call_xent, mp_softmax_xent(context, s, REF(mp_xent_tensors_t, xent_tensors()), NULL))
CALL_OF(call_xent_tensors, mp_softmax_xent(context, REF(mp_xent_desc_t, xent_desc()), s, NULL))
static mp_status_t call_xent_of_wide_labels(void *s) {
  mp_xent_desc_t d = xent_desc();
  d.dtype_labels = MP_INT64;
  return mp_softmax_xent(context, &d, s, NULL);
}

static void test_xent(void) {
  const struct field_case fields[] = {
      INTS(mp_xent_desc_t, dtype, MP_DTYPE_NONE, MP_INT32, MP_INT64),
      INTS(mp_xent_desc_t, dtype_labels, MP_DTYPE_NONE, invalid_dtype(), MP_INT64 + 1),
      INTS(mp_xent_desc_t, rows, -1, INT64_MAX),
      INTS(mp_xent_desc_t, classes, 0),
      INTS(mp_xent_desc_t, ld_logits, 7, INT64_MAX),
      INTS(mp_xent_desc_t, ld_dlogits, 7, INT64_MAX),
      REALS(mp_xent_desc_t, weight, NAN, INFINITY),
      INTS(mp_xent_desc_t, flags, MP_XENT_FLAG_LOG_PROBABILITIES | 4),
      REALS(mp_xent_desc_t, label_smoothing, NAN, INFINITY, -0.125, 1),
      REALS(mp_xent_desc_t, z_loss, -1, NAN, INFINITY),
      INTS(mp_xent_desc_t, reserved0, 1),
      INTS(mp_xent_desc_t, ld_labels, 8, -1),
  };
  mp_xent_desc_t d = xent_desc();
  CHECK_STRUCT("mp_softmax_xent", "desc", d, call_xent, fields);

  const struct field_case tensors[] = {
      INTS(mp_xent_tensors_t, reserved0, 1),
      FIELD(mp_xent_tensors_t, w, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_xent_tensors_t, bias, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_xent_tensors_t, dw, pointers, MP_ERROR_UNSUPPORTED, at(0)),
      FIELD(mp_xent_tensors_t, dbias, pointers, MP_ERROR_UNSUPPORTED, at(0)),
  };
  mp_xent_tensors_t t = xent_tensors();
  CHECK_STRUCT("mp_softmax_xent", "tensors", t, call_xent_tensors, tensors);
  CHECK_FIELD("mp_softmax_xent", "tensors", t, call_xent_of_wide_labels,
              FIELD(mp_xent_tensors_t, labels, pointers, MP_ERROR_MISALIGNED, at(4)));

  d.z_loss = 0.5f;
  d.flags = MP_XENT_FLAG_LOG_PROBABILITIES;
  INVALID(mp_softmax_xent, (context, &d, &t, NULL), "z_loss = 0.5 must be 0");
  d.flags = 0;
  t.class_weights = at(kWorkspace);
  WORKS(mp_softmax_xent(context, &d, &t, NULL));
  t = xent_tensors();
  d = xent_desc();
  t.dx = at(kLogits);
  WORKS(mp_softmax_xent(context, &d, &t, NULL));
  d.ld_dlogits = 16;
  INVALID(mp_softmax_xent, (context, &d, &t, NULL), "ld_dlogits");

  /* Soft targets are a matrix. */
  d = xent_desc();
  d.dtype_labels = MP_FP32;
  t = xent_tensors();
  INVALID(mp_softmax_xent, (context, &d, &t, NULL), "tensors->correct");
  t.correct = NULL;
  t.class_weights = at(kCorrect);
  WORKS(mp_softmax_xent(context, &d, &t, NULL));
  d.ld_labels = 7;
  INVALID(mp_softmax_xent, (context, &d, &t, NULL), "ld_labels = 7 is smaller than classes = 8");
  d.ld_labels = INT64_MAX / 4;
  INVALID(mp_softmax_xent, (context, &d, &t, NULL), "rows = 4");
  d.ld_labels = 0;
  t.labels = at(kDlogits - 4 * 8 * 4 + 4); /* the last of 128 bytes belong to dlogits */
  INVALID(mp_softmax_xent, (context, &d, &t, NULL), "tensors->dx");

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
  mp_loss_tensors_t t = INITIALIZED(mp_loss_tensors_t);
  t.prediction = at(kPrediction), t.target = at(kTarget);
  t.weights = at(kWeights), t.loss_scale = at(kScale);
  t.element_loss = at(kElements), t.loss = at(kLoss), t.dprediction = at(kDlogits);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

CALL_OF(call_loss,
        mp_loss(context, s, REF(mp_loss_tensors_t, loss_tensors()), at(kWorkspace), 256, NULL))
CALL_OF(call_loss_tensors,
        mp_loss(context, REF(mp_loss_desc_t, loss_desc()), s, at(kWorkspace), 256, NULL))
CALL_OF(call_loss_size, mp_loss_workspace_size(context, s, &out.bytes))

static void test_loss(void) {
  const struct field_case fields[] = {
      INTS(mp_loss_desc_t, kind, 0, MP_LOSS_LINEAR + 1),
      INTS(mp_loss_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_loss_desc_t, dtype_target, MP_INT64),
      INTS(mp_loss_desc_t, count, -1, INT64_MAX),
      REALS(mp_loss_desc_t, weight, NAN, INFINITY),
      INTS(mp_loss_desc_t, reduction, 0, MP_LOSS_REDUCTION_SUM + 1),
      INTS(mp_loss_desc_t, flags, 2),
      INTS(mp_loss_desc_t, reserved0, 1),
  };
  mp_loss_desc_t d = loss_desc();
  CHECK_STRUCT("mp_loss", "desc", d, call_loss, fields);
  CHECK_STRUCT("mp_loss_workspace_size", "desc", d, call_loss_size, fields);

  const struct field_case tensors[] = {
      INTS(mp_loss_tensors_t, reserved0, 1),
  };
  mp_loss_tensors_t t = loss_tensors();
  CHECK_STRUCT("mp_loss", "tensors", t, call_loss_tensors, tensors);

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
    INVALID(mp_loss, (context, &d, &t, space, 256, NULL), "delta");
  }
  d = mp_loss_desc_default(MP_LOSS_LINEAR, 32, MP_FP16);
  t.prediction = at(1);
  FAILS(mp_loss, (context, &d, &t, space, 256, NULL), MP_ERROR_MISALIGNED, "tensors->prediction");
  t.prediction = NULL;
  WORKS(mp_loss(context, &d, &t, space, 256, NULL));
  t.target = NULL;
  INVALID(mp_loss, (context, &d, &t, space, 256, NULL), "tensors->target");
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
