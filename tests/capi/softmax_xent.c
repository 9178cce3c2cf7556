/* mpcore/layers.h: softmax cross-entropy of 4 rows of 8 fp16 logits; losses of 32 fp16 elements. */
#include <math.h>
#include <string.h>

#include "harness.h"

enum {
  kLogits = 0,
  kLabels = 1024,
  kScale = 2048,
  kRowLoss = 3072,
  kLoss = 4096,
  kCorrect = 4104,
  kDlogits = 5120
};

static mp_status_t xent(const mp_xent_desc_t *d) {
  return mp_softmax_xent(context, d, at(kLogits), at(kLabels), at(kScale), at(kRowLoss), at(kLoss),
                         at(kCorrect), at(kDlogits), NULL);
}

static void init_desc(void *s) {
  const mp_xent_desc_t d = mp_xent_desc_default(4, 8, MP_FP16);
  memcpy(s, &d, sizeof d);
}

static mp_status_t call_xent(void *s) {
  return xent(s);
}

#define XENT_FIELD(field, member, v) \
  FIELD(mp_xent_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_desc(void) {
  const struct field_case fields[] = {
      XENT_FIELD(dtype, i, MP_DTYPE_NONE),
      XENT_FIELD(dtype, i, 4),
      XENT_FIELD(rows, i, -1),
      XENT_FIELD(rows, i, INT64_MAX),
      XENT_FIELD(classes, i, 0),
      XENT_FIELD(ld_logits, i, 7),
      XENT_FIELD(ld_logits, i, INT64_MAX),
      XENT_FIELD(ld_dlogits, i, 7),
      XENT_FIELD(ld_dlogits, i, INT64_MAX),
      XENT_FIELD(weight, f, NAN),
      XENT_FIELD(weight, f, INFINITY),
      XENT_FIELD(flags, i, 2),
      XENT_FIELD(flags, i, MP_XENT_FLAG_IGNORE_LABEL | 4),
      XENT_FIELD(label_smoothing, f, NAN),
      XENT_FIELD(label_smoothing, f, INFINITY),
      XENT_FIELD(label_smoothing, f, -0.125),
      XENT_FIELD(label_smoothing, f, 1),
  };
  const struct subject desc = {"mp_softmax_xent", "desc", sizeof(mp_xent_desc_t), init_desc,
                               call_xent};
  check_fields(&desc, fields, sizeof fields / sizeof *fields);
  check_struct_size(&desc);
}

/** Every pointer as it should be, then one of them bad. */
struct pointers {
  const void *logits, *labels, *scale;
  void *row_loss, *loss, *correct, *dlogits;
};

static mp_status_t xent_of(const struct pointers *p) {
  const mp_xent_desc_t d = mp_xent_desc_default(4, 8, MP_FP16);
  return mp_softmax_xent(context, &d, p->logits, p->labels, p->scale, p->row_loss, p->loss,
                         p->correct, p->dlogits, NULL);
}

static void check_pointer(size_t member, void *bad, mp_status_t status, const char *name) {
  struct pointers p = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  p.logits = at(kLogits), p.labels = at(kLabels), p.row_loss = at(kRowLoss);
  memcpy((char *)&p + member, &bad, sizeof bad);
  check_failure(bad != NULL ? "misaligned pointer" : "NULL pointer", "mp_softmax_xent", xent_of(&p),
                status, name);
}

static void test_pointers(void) {
  check_pointer(offsetof(struct pointers, logits), NULL, MP_ERROR_INVALID_ARGUMENT, "logits");
  check_pointer(offsetof(struct pointers, labels), NULL, MP_ERROR_INVALID_ARGUMENT, "labels");
  check_pointer(offsetof(struct pointers, row_loss), NULL, MP_ERROR_INVALID_ARGUMENT, "row_loss");
  check_pointer(offsetof(struct pointers, logits), at(1), MP_ERROR_MISALIGNED, "logits");
  check_pointer(offsetof(struct pointers, labels), at(2), MP_ERROR_MISALIGNED, "labels");
  check_pointer(offsetof(struct pointers, scale), at(2), MP_ERROR_MISALIGNED, "loss_scale");
  check_pointer(offsetof(struct pointers, row_loss), at(2), MP_ERROR_MISALIGNED, "row_loss");
  check_pointer(offsetof(struct pointers, loss), at(2), MP_ERROR_MISALIGNED, "loss");
  check_pointer(offsetof(struct pointers, correct), at(4), MP_ERROR_MISALIGNED, "correct");
  check_pointer(offsetof(struct pointers, dlogits), at(1), MP_ERROR_MISALIGNED, "dlogits");

  mp_xent_desc_t d = mp_xent_desc_default(4, 8, MP_FP16);
  void *x = at(kLogits);
  FAILS(mp_softmax_xent, (NULL, &d, x, at(kLabels), NULL, at(kRowLoss), NULL, NULL, NULL, NULL),
        MP_ERROR_INVALID_ARGUMENT, "context");
  FAILS(mp_softmax_xent,
        (context, NULL, x, at(kLabels), NULL, at(kRowLoss), NULL, NULL, NULL, NULL),
        MP_ERROR_INVALID_ARGUMENT, "desc");
  WORKS(mp_softmax_xent(context, &d, x, at(kLabels), NULL, at(kRowLoss), NULL, NULL, x, NULL));
  d.ld_dlogits = 16;
  FAILS(mp_softmax_xent, (context, &d, x, at(kLabels), NULL, at(kRowLoss), NULL, NULL, x, NULL),
        MP_ERROR_INVALID_ARGUMENT, "ld_dlogits");
}

static void test_no_rows(void) {
  const mp_xent_desc_t d = mp_xent_desc_default(0, 8, MP_FP16);
  WORKS(mp_softmax_xent(context, &d, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  float loss = 0.0f;
  int good = xent(&d) == MP_SUCCESS;
  good = good && mp_memcpy(context, &loss, at(kLoss), sizeof loss, NULL) == MP_SUCCESS &&
         mp_stream_sync(context, NULL) == MP_SUCCESS;
  check(good && isnan(loss), "the loss of no rows is NaN");
  reset();
}

/* ---------------------------------------------------------------- losses of single elements */

enum { kPrediction = 0, kTarget = 256, kWeights = 512, kElements = 1024, kWorkspace = 6144 };

/** Every pointer as it should be, then one of them bad. */
struct loss_pointers {
  const void *prediction, *target, *weights, *scale;
  void *element_loss, *loss, *dprediction, *workspace;
};

static mp_status_t loss_of(const mp_loss_desc_t *d, const struct loss_pointers *p, size_t bytes) {
  return mp_loss(context, d, p->prediction, p->target, p->weights, p->scale, p->element_loss,
                 p->loss, p->dprediction, p->workspace, bytes, NULL);
}

static struct loss_pointers good_loss(void) {
  const struct loss_pointers p = {at(kPrediction), at(kTarget),  NULL,          NULL, NULL,
                                  at(kLoss),       at(kDlogits), at(kWorkspace)};
  return p;
}

static void init_loss(void *s) {
  const mp_loss_desc_t d = mp_loss_desc_default(MP_LOSS_MSE, 32, MP_FP16);
  memcpy(s, &d, sizeof d);
}
static mp_status_t call_loss(void *s) {
  const struct loss_pointers p = good_loss();
  return loss_of(s, &p, 256);
}
static mp_status_t call_loss_size(void *s) {
  size_t bytes;
  return mp_loss_workspace_size(context, s, &bytes);
}

#define LOSS_FIELD(field, member, v) \
  FIELD(mp_loss_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_loss_desc(void) {
  const struct field_case fields[] = {
      LOSS_FIELD(kind, i, 0),
      LOSS_FIELD(kind, i, MP_LOSS_BCE_WITH_LOGITS + 1),
      LOSS_FIELD(dtype, i, MP_DTYPE_NONE),
      LOSS_FIELD(dtype_target, i, 4),
      LOSS_FIELD(count, i, -1),
      LOSS_FIELD(count, i, INT64_MAX),
      LOSS_FIELD(weight, f, NAN),
      LOSS_FIELD(weight, f, INFINITY),
      LOSS_FIELD(reduction, i, MP_LOSS_REDUCTION_SUM + 1),
      LOSS_FIELD(flags, i, 2),
  };
  const struct subject subjects[] = {
      {"mp_loss", "desc", sizeof(mp_loss_desc_t), init_loss, call_loss},
      {"mp_loss_workspace_size", "desc", sizeof(mp_loss_desc_t), init_loss, call_loss_size},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i) {
    check_fields(&subjects[i], fields, sizeof fields / sizeof *fields);
    check_struct_size(&subjects[i]);
  }
}

static void check_loss_pointer(size_t member, void *bad, const char *name) {
  const mp_loss_desc_t d = mp_loss_desc_default(MP_LOSS_MSE, 32, MP_FP16);
  struct loss_pointers p = good_loss();
  memcpy((char *)&p + member, &bad, sizeof bad);
  check_failure(bad != NULL ? "misaligned pointer" : "NULL pointer", "mp_loss",
                loss_of(&d, &p, 256), bad != NULL ? MP_ERROR_MISALIGNED : MP_ERROR_INVALID_ARGUMENT,
                name);
}

static void test_loss_pointers(void) {
  check_loss_pointer(offsetof(struct loss_pointers, prediction), NULL, "prediction");
  check_loss_pointer(offsetof(struct loss_pointers, target), NULL, "target");
  check_loss_pointer(offsetof(struct loss_pointers, workspace), NULL, "workspace");
  check_loss_pointer(offsetof(struct loss_pointers, prediction), at(1), "prediction");
  check_loss_pointer(offsetof(struct loss_pointers, target), at(1), "target");
  check_loss_pointer(offsetof(struct loss_pointers, weights), at(2), "weights");
  check_loss_pointer(offsetof(struct loss_pointers, scale), at(2), "loss_scale");
  check_loss_pointer(offsetof(struct loss_pointers, element_loss), at(2), "element_loss");
  check_loss_pointer(offsetof(struct loss_pointers, loss), at(2), "loss");
  check_loss_pointer(offsetof(struct loss_pointers, dprediction), at(1), "dprediction");
  check_loss_pointer(offsetof(struct loss_pointers, workspace), at(128), "workspace");

  mp_loss_desc_t d = mp_loss_desc_default(MP_LOSS_MSE, 32, MP_FP16);
  struct loss_pointers p = good_loss();
  p.dprediction = at(kTarget);
  check_failure("dprediction = target", "mp_loss", loss_of(&d, &p, 256), MP_ERROR_INVALID_ARGUMENT,
                "dprediction");
  p.dprediction = at(kPrediction);
  WORKS(loss_of(&d, &p, 256));
  p.loss = at(kPrediction);
  check_failure("loss in dprediction", "mp_loss", loss_of(&d, &p, 256), MP_ERROR_INVALID_ARGUMENT,
                "loss");
  p = good_loss();
  check_failure("no workspace", "mp_loss", loss_of(&d, &p, 0), MP_ERROR_WORKSPACE_TOO_SMALL,
                "workspace_bytes");
  FAILS(mp_loss, (NULL, &d, p.prediction, p.target, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL),
        MP_ERROR_INVALID_ARGUMENT, "context");
  FAILS(mp_loss,
        (context, NULL, p.prediction, p.target, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL),
        MP_ERROR_INVALID_ARGUMENT, "desc");
  FAILS(mp_loss_workspace_size, (NULL, &d, &out.bytes), MP_ERROR_INVALID_ARGUMENT, "context");
  FAILS(mp_loss_workspace_size, (context, NULL, &out.bytes), MP_ERROR_INVALID_ARGUMENT, "desc");
  FAILS(mp_loss_workspace_size, (context, &d, NULL), MP_ERROR_INVALID_ARGUMENT, "bytes");

  /* Of no elements the mean is NaN and the sum 0; nothing else is read. */
  for (int is_sum = 0; is_sum < 2; ++is_sum) {
    d.count = 0;
    d.reduction = is_sum ? MP_LOSS_REDUCTION_SUM : MP_LOSS_REDUCTION_MEAN;
    float loss = 1.0f;
    int good = mp_loss(context, &d, NULL, NULL, NULL, NULL, NULL, at(kLoss), NULL, NULL, 0, NULL) ==
               MP_SUCCESS;
    good = good && mp_memcpy(context, &loss, at(kLoss), sizeof loss, NULL) == MP_SUCCESS &&
           mp_stream_sync(context, NULL) == MP_SUCCESS;
    check(good && (is_sum ? loss == 0.0f : isnan(loss)), "the loss of no elements");
    reset();
  }
}

void test_softmax_xent(void) {
  test_loss_desc();
  test_loss_pointers();
  test_desc();
  test_pointers();
  test_no_rows();
}
