/* mpcore/norm.h: 4 rows of 2 vectors of 8 fp16 elements, with a residual in fp16. */
#include <math.h>

#include "harness.h"

enum { kX = 0, kResidual = 256, kSum = 512, kY = 768, kDy = 1024, kDsum = 1280, kDx = 1536 };
enum { kDresidual = 1792, kGamma = 2048, kBeta = 2112, kMean = 2176, kRstd = 2240 };
enum { kDgamma = 2304, kDbeta = 2368, kOffset = 2432, kStats = 2496, kWorkspace = 2560 };

static mp_norm_desc_t norm_desc(void) {
  mp_norm_desc_t d = mp_norm_desc_default(MP_NORM_LAYER, 4, 8, MP_FP16);
  d.groups = 2;
  return d;
}

static mp_norm_tensors_t norm_tensors(void) {
  mp_norm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = at(kX), t.residual = at(kResidual), t.sum = at(kSum), t.y = at(kY);
  t.gamma = at(kGamma), t.beta = at(kBeta), t.dropout_offset = at(kOffset);
  t.mean = at(kMean), t.rstd = at(kRstd);
  t.dy = at(kDy), t.dsum = at(kDsum), t.dx = at(kDx), t.dresidual = at(kDresidual);
  t.dgamma = at(kDgamma), t.dbeta = at(kDbeta);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

/** The workspace of 8 vectors: one range. */
enum { kWorkspaceBytes = 2 * 8 * 4 };

static mp_status_t forward(const mp_norm_desc_t *d, const mp_norm_tensors_t *t) {
  return mp_norm_forward(context, d, t, NULL);
}
static mp_status_t backward(const mp_norm_desc_t *d, const mp_norm_tensors_t *t) {
  return mp_norm_backward(context, d, t, at(kWorkspace), kWorkspaceBytes, NULL);
}

INIT(init_desc, mp_norm_desc_t, norm_desc())
static mp_status_t forward_with_desc(void *s) {
  const mp_norm_tensors_t t = norm_tensors();
  return forward(s, &t);
}
static mp_status_t backward_with_desc(void *s) {
  const mp_norm_tensors_t t = norm_tensors();
  return backward(s, &t);
}
static mp_status_t size_with_desc(void *s) {
  size_t bytes;
  return mp_norm_backward_workspace_size(context, s, &bytes);
}

INIT(init_tensors, mp_norm_tensors_t, norm_tensors())
static mp_status_t forward_with_tensors(void *s) {
  const mp_norm_desc_t d = norm_desc();
  return forward(&d, s);
}
static mp_status_t backward_with_tensors(void *s) {
  const mp_norm_desc_t d = norm_desc();
  return backward(&d, s);
}
/** x is read instead of sum. */
static void init_without_residual(void *s) {
  mp_norm_tensors_t t = norm_tensors();
  t.residual = t.sum = t.dresidual = NULL;
  memcpy(s, &t, sizeof t);
}
static void init_rms(void *s) {
  mp_norm_tensors_t t = norm_tensors();
  t.beta = NULL, t.mean = NULL, t.dbeta = NULL;
  memcpy(s, &t, sizeof t);
}
static mp_status_t forward_rms(void *s) {
  mp_norm_desc_t d = norm_desc();
  d.kind = MP_NORM_RMS;
  return forward(&d, s);
}
static mp_status_t backward_rms(void *s) {
  mp_norm_desc_t d = norm_desc();
  d.kind = MP_NORM_RMS;
  return backward(&d, s);
}

#define NORM_FIELD(field, member, v) \
  FIELD(mp_norm_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_desc(void) {
  const struct field_case fields[] = {
      NORM_FIELD(kind, i, 0),
      NORM_FIELD(kind, i, MP_NORM_RMS + 1),
      NORM_FIELD(dtype, i, MP_DTYPE_NONE),
      NORM_FIELD(dtype, i, MP_INT32),
      NORM_FIELD(dtype_residual, i, MP_DTYPE_NONE),
      NORM_FIELD(dtype_residual, i, MP_BF16),
      NORM_FIELD(dtype_residual, i, MP_INT32),
      NORM_FIELD(rows, i, -1),
      NORM_FIELD(rows, i, INT64_MAX),
      NORM_FIELD(columns, i, 0),
      NORM_FIELD(columns, i, 65537),
      NORM_FIELD(groups, i, 0),
      NORM_FIELD(flags, i, 4),
      NORM_FIELD(x_row, i, 7),
      NORM_FIELD(x_row, i, 15),
      NORM_FIELD(x_row, i, -16),
      NORM_FIELD(x_row, i, INT64_MAX),
      NORM_FIELD(x_group, i, 7),
      NORM_FIELD(x_group, i, INT64_MAX),
      NORM_FIELD(y_row, i, 7),
      NORM_FIELD(y_row, i, 15),
      NORM_FIELD(y_row, i, INT64_MAX),
      NORM_FIELD(y_group, i, 7),
      NORM_FIELD(y_group, i, -8),
      NORM_FIELD(epsilon, f, -1e-5f),
      NORM_FIELD(epsilon, f, NAN),
      NORM_FIELD(epsilon, f, INFINITY),
      NORM_FIELD(dropout, f, -0.1f),
      NORM_FIELD(dropout, f, 1),
      NORM_FIELD(dropout, f, NAN),
  };
  const size_t size = sizeof(mp_norm_desc_t);
  const struct subject subjects[] = {
      {"mp_norm_forward", "desc", size, init_desc, forward_with_desc},
      {"mp_norm_backward", "desc", size, init_desc, backward_with_desc},
      {"mp_norm_backward_workspace_size", "desc", size, init_desc, size_with_desc},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i)
    CHECK_STRUCT(&subjects[i], fields);
  /* The vectors of a row and the rows of a group may be adjacent. */
  mp_norm_desc_t d = norm_desc();
  d.x_row = 8, d.x_group = 32;
  WORKS(size_with_desc(&d));
  d.x_group = 31;
  FAILS(mp_norm_backward_workspace_size, (context, &d, &out.bytes), MP_ERROR_INVALID_ARGUMENT,
        "x_group");
}

#define TENSOR(field, v, status) FIELD(mp_norm_tensors_t, field, p, v, status)

static const struct field_case kReserved[] = {
    FIELD(mp_norm_tensors_t, reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT)};

static void test_forward_tensors(void) {
  struct subject subject = {"mp_norm_forward", "tensors", sizeof(mp_norm_tensors_t), init_tensors,
                            forward_with_tensors};
  CHECK_STRUCT(&subject, kReserved);
  const struct field_case rms[] = {TENSOR(beta, at(kBeta), MP_ERROR_INVALID_ARGUMENT)};
  subject.init = init_rms, subject.call = forward_rms;
  CHECK_FIELDS(&subject, rms);

  mp_norm_desc_t d = norm_desc();
  mp_norm_tensors_t t = norm_tensors();
  t.y = at(kX), t.sum = at(kResidual);
  WORKS(forward(&d, &t));
  d.y_row = 24;
  FAILS(mp_norm_forward, (context, &d, &t, NULL), MP_ERROR_INVALID_ARGUMENT, "y");
  d = norm_desc();
  t.residual = t.sum = NULL, t.gamma = t.beta = NULL, t.dropout_offset = NULL;
  t.mean = t.rstd = NULL;
  WORKS(forward(&d, &t));
}

static void test_backward_tensors(void) {
  struct subject subject = {"mp_norm_backward", "tensors", sizeof(mp_norm_tensors_t), init_tensors,
                            backward_with_tensors};
  CHECK_STRUCT(&subject, kReserved);
  const struct field_case without_residual[] = {
      TENSOR(dx, NULL, MP_ERROR_INVALID_ARGUMENT),
      TENSOR(residual, at(kResidual), MP_ERROR_INVALID_ARGUMENT),
      TENSOR(dresidual, at(kDresidual), MP_ERROR_INVALID_ARGUMENT),
  };
  subject.init = init_without_residual;
  CHECK_FIELDS(&subject, without_residual);
  const struct field_case rms[] = {TENSOR(dbeta, at(kDbeta), MP_ERROR_INVALID_ARGUMENT)};
  subject.init = init_rms, subject.call = backward_rms;
  CHECK_FIELDS(&subject, rms);
}

static void test_backward(void) {
  mp_norm_desc_t d = norm_desc();
  mp_norm_tensors_t t = norm_tensors();
  void *const space = at(kWorkspace);
  FAILS(mp_norm_backward, (context, &d, &t, space, 63, NULL), MP_ERROR_WORKSPACE_TOO_SMALL,
        "workspace_bytes");
  size_t bytes = 0;
  check(mp_norm_backward_workspace_size(context, &d, &bytes) == MP_SUCCESS &&
            bytes == kWorkspaceBytes,
        "the workspace of 8 vectors");

  t.dx = at(kDy), t.dresidual = at(kDsum);
  WORKS(backward(&d, &t));
  d.x_row = 24;
  FAILS(mp_norm_backward, (context, &d, &t, space, 64, NULL), MP_ERROR_INVALID_ARGUMENT, "dx");
  d = norm_desc();
  t.x = t.dx = NULL, t.gamma = NULL, t.dgamma = t.dbeta = NULL, t.dropout_offset = NULL;
  WORKS(backward(&d, &t));
  d.rows = 0;
  MP_INIT_STRUCT(&t);
  WORKS(forward(&d, &t));
  WORKS(mp_norm_backward(context, &d, &t, NULL, 0, NULL));
}

void test_norm(void) {
  test_desc();
  test_forward_tensors();
  test_backward_tensors();
  test_backward();
}
