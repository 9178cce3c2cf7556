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
  mp_norm_tensors_t t = INITIALIZED(mp_norm_tensors_t);
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

CALL_OF(forward_with_desc, forward(s, REF(mp_norm_tensors_t, norm_tensors())))
CALL_OF(backward_with_desc, backward(s, REF(mp_norm_tensors_t, norm_tensors())))
CALL_OF(size_with_desc, mp_norm_backward_workspace_size(context, s, &out.bytes))

CALL_OF(forward_with_tensors, forward(REF(mp_norm_desc_t, norm_desc()), s))
CALL_OF(backward_with_tensors, backward(REF(mp_norm_desc_t, norm_desc()), s))
/** x is read instead of sum. */
static mp_norm_tensors_t good_without_residual(void) {
  mp_norm_tensors_t t = norm_tensors();
  t.residual = t.sum = t.dresidual = NULL;
  return t;
}
static mp_norm_tensors_t good_rms(void) {
  mp_norm_tensors_t t = norm_tensors();
  t.beta = NULL, t.mean = NULL, t.dbeta = NULL;
  return t;
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

static void test_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_norm_desc_t, kind, 0, MP_NORM_RMS + 1),
      INTS(mp_norm_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_norm_desc_t, dtype_residual, MP_DTYPE_NONE, MP_BF16, MP_INT32),
      INTS(mp_norm_desc_t, rows, -1, INT64_MAX),
      INTS(mp_norm_desc_t, columns, 0, 65537),
      INTS(mp_norm_desc_t, groups, 0),
      INTS(mp_norm_desc_t, flags, 4),
      INTS(mp_norm_desc_t, x_row, 7, 15, -16, INT64_MAX),
      INTS(mp_norm_desc_t, x_group, 7, INT64_MAX),
      INTS(mp_norm_desc_t, y_row, 7, 15, INT64_MAX),
      INTS(mp_norm_desc_t, y_group, 7, -8),
      REALS(mp_norm_desc_t, epsilon, -1e-5, NAN, INFINITY),
      REALS(mp_norm_desc_t, dropout, -0.1, 1, NAN),
  };
  mp_norm_desc_t d = norm_desc();
  CHECK_STRUCT("mp_norm_forward", "desc", d, forward_with_desc, fields);
  CHECK_STRUCT("mp_norm_backward", "desc", d, backward_with_desc, fields);
  CHECK_STRUCT("mp_norm_backward_workspace_size", "desc", d, size_with_desc, fields);
  /* The vectors of a row and the rows of a group may be adjacent. */
  d.x_row = 8, d.x_group = 32;
  WORKS(size_with_desc(&d));
  d.x_group = 31;
  INVALID(mp_norm_backward_workspace_size, (context, &d, &out.bytes), "x_group");
}

static void test_forward_tensors(void) {
  const struct field_case reserved[] = {
      INTS(mp_norm_tensors_t, reserved0, 1),
  };
  mp_norm_tensors_t t = norm_tensors();
  CHECK_STRUCT("mp_norm_forward", "tensors", t, forward_with_tensors, reserved);
  CHECK_STRUCT("mp_norm_backward", "tensors", t, backward_with_tensors, reserved);
  const mp_norm_tensors_t initial_rms = good_rms();
  CHECK_FIELD("mp_norm_forward", "tensors (RMS)", initial_rms, forward_rms,
              POINTERS(mp_norm_tensors_t, beta, at(kBeta)));

  mp_norm_desc_t d = norm_desc();
  t.y = at(kX), t.sum = at(kResidual);
  WORKS(forward(&d, &t));
  d.y_row = 24;
  INVALID(mp_norm_forward, (context, &d, &t, NULL), "y");
  d = norm_desc();
  t.residual = t.sum = NULL, t.gamma = t.beta = NULL, t.dropout_offset = NULL;
  t.mean = t.rstd = NULL;
  WORKS(forward(&d, &t));
}

static void test_backward_tensors(void) {
  const struct field_case without_residual[] = {
      POINTERS(mp_norm_tensors_t, dx, NULL),
      POINTERS(mp_norm_tensors_t, residual, at(kResidual)),
      POINTERS(mp_norm_tensors_t, dresidual, at(kDresidual)),
  };
  const mp_norm_tensors_t initial = good_without_residual(), initial_rms = good_rms();
  CHECK_FIELDS("mp_norm_backward", "tensors (without residual)", initial, backward_with_tensors,
               without_residual);
  const struct field_case rms[] = {
      POINTERS(mp_norm_tensors_t, dbeta, at(kDbeta)),
  };
  CHECK_FIELDS("mp_norm_backward", "tensors (RMS)", initial_rms, backward_rms, rms);
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
  INVALID(mp_norm_backward, (context, &d, &t, space, 64, NULL), "dx");
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
