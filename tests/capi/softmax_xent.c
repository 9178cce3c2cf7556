/* mpcore/layers.h: softmax cross-entropy, 4 rows of 8 fp16 logits. */
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
      XENT_FIELD(flags, i, MP_XENT_IGNORE_LABEL | 4),
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

void test_softmax_xent(void) {
  test_desc();
  test_pointers();
  test_no_rows();
}
