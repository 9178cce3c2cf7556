/* mpcore/layers.h: layout, pooling and batch normalization of small fp16 tensors. */
#include <math.h>

#include "harness.h"

/* ---------------------------------------------------------------- layout */

static void test_layout(void) {
  void *src = at(0), *dst = at(1024);
  WORKS(mp_nchw_to_nhwc(context, 1, 3, 4, 5, src, MP_FP16, dst, MP_FP32, NULL));
  WORKS(mp_nhwc_to_nchw(context, 1, 3, 4, 5, src, MP_FP16, dst, MP_FP32, NULL));
#define LAYOUT_FAILS(arguments, status, argument)      \
  FAILS(mp_nchw_to_nhwc, arguments, status, argument); \
  FAILS(mp_nhwc_to_nchw, arguments, status, argument)
  LAYOUT_FAILS((context, -1, 3, 4, 5, src, MP_FP16, dst, MP_FP32, NULL), MP_ERROR_INVALID_ARGUMENT,
               "n");
  LAYOUT_FAILS((context, 1, -3, 4, 5, src, MP_FP16, dst, MP_FP32, NULL), MP_ERROR_INVALID_ARGUMENT,
               "c");
  LAYOUT_FAILS((context, 1, 3, -4, 5, src, MP_FP16, dst, MP_FP32, NULL), MP_ERROR_INVALID_ARGUMENT,
               "h");
  LAYOUT_FAILS((context, 1, 3, 4, -5, src, MP_FP16, dst, MP_FP32, NULL), MP_ERROR_INVALID_ARGUMENT,
               "w");
  LAYOUT_FAILS((context, INT64_MAX, 3, 4, 5, src, MP_FP16, dst, MP_FP32, NULL),
               MP_ERROR_INVALID_ARGUMENT, "n");
  LAYOUT_FAILS((context, 1, 3, INT64_MAX / 8, 1, src, MP_FP16, dst, MP_FP32, NULL),
               MP_ERROR_INVALID_ARGUMENT, "h");
  LAYOUT_FAILS((context, 1, 3, 4, 5, src, MP_DTYPE_NONE, dst, MP_FP32, NULL),
               MP_ERROR_INVALID_ARGUMENT, "dtype_src");
  LAYOUT_FAILS((context, 1, 3, 4, 5, src, MP_FP16, dst, MP_INT32, NULL), MP_ERROR_INVALID_ARGUMENT,
               "dtype_dst");
  LAYOUT_FAILS((context, 1, 3, 4, 5, src, MP_FP16, at(1026), MP_FP32, NULL), MP_ERROR_MISALIGNED,
               "dst");
}

/* ---------------------------------------------------------------- pooling: 2 x 6 x 6 x 8 */

enum { kX = 0, kDx = 2048, kY = 4096, kDy = 5120, kIndex = 6144 };

static mp_pool2d_desc_t pool_desc(void) {
  return mp_pool2d_desc_default(MP_POOL_MAX, 2, 6, 6, 8, 3, 2, MP_FP16);
}

INIT(init_pool, mp_pool2d_desc_t, pool_desc())
CALL_OF(call_pool_forward, mp_pool2d_forward(context, s, at(kX), at(kY), at(kIndex), NULL))
CALL_OF(call_pool_backward,
        mp_pool2d_backward(context, s, at(kX), NULL, at(kDy), at(kDx), NULL, NULL))
static mp_status_t call_pool_size(void *s) {
  int32_t p = 0, q = 0;
  const mp_status_t status = mp_pool2d_get_output_size(s, &p, &q);
  check(status != MP_SUCCESS || (p == 2 && q == 3), "P = 2, Q = 3");
  return status;
}

#define POOL_FIELD(field, member, v) \
  FIELD(mp_pool2d_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_pool_desc(void) {
  const struct field_case fields[] = {
      POOL_FIELD(dtype, i, MP_DTYPE_NONE),
      POOL_FIELD(dtype, i, MP_INT32),
      POOL_FIELD(mode, i, 0),
      POOL_FIELD(mode, i, 4),
      POOL_FIELD(n, i, -1),
      POOL_FIELD(h, i, 0),
      POOL_FIELD(w, i, 0),
      POOL_FIELD(c, i, 0),
      POOL_FIELD(window_h, i, 0),
      POOL_FIELD(window_w, i, 0),
      POOL_FIELD(pad_top, i, -1),
      POOL_FIELD(pad_top, i, 3),
      POOL_FIELD(pad_bottom, i, -1),
      POOL_FIELD(pad_bottom, i, 3),
      POOL_FIELD(pad_left, i, -1),
      POOL_FIELD(pad_left, i, 2),
      POOL_FIELD(pad_right, i, -1),
      POOL_FIELD(pad_right, i, 2),
      POOL_FIELD(stride_h, i, 0),
      POOL_FIELD(stride_w, i, 0),
      POOL_FIELD(flags, i, 2),
      POOL_FIELD(dilation_h, i, -1),
      POOL_FIELD(dilation_h, i, INT32_MAX),
      POOL_FIELD(dilation_w, i, -1),
  };
  const struct subject subjects[] = {
      {"mp_pool2d_forward", "desc", sizeof(mp_pool2d_desc_t), init_pool, call_pool_forward},
      {"mp_pool2d_backward", "desc", sizeof(mp_pool2d_desc_t), init_pool, call_pool_backward},
      {"mp_pool2d_get_output_size", "desc", sizeof(mp_pool2d_desc_t), init_pool, call_pool_size},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i)
    CHECK_STRUCT(&subjects[i], fields);

  mp_pool2d_desc_t d = pool_desc();
  d.n = INT32_MAX, d.h = d.w = 1 << 30;
  FAILS(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), MP_ERROR_INVALID_ARGUMENT,
        "n");
  d = pool_desc();
  d.dilation_h = d.h + 1, d.pad_top = 1;
  FAILS(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), MP_ERROR_INVALID_ARGUMENT,
        "dilation_h");
  d = pool_desc();
  d.h = 1 << 30, d.pad_bottom = 1;
  FAILS(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), MP_ERROR_INVALID_ARGUMENT,
        "h");
  d = pool_desc();
  d.window_h = d.window_w = 46341; /* 2^31 elements and more */
  FAILS(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), MP_ERROR_INVALID_ARGUMENT,
        "window_h");
  d.window_h = 46340;
  WORKS(mp_pool2d_forward(context, &d, at(kX), at(kY), NULL, NULL));
}

static void test_pool_pointers(void) {
  mp_pool2d_desc_t average = pool_desc();
  average.mode = MP_POOL_AVG_EXCLUDE_PAD;
  WORKS(mp_pool2d_backward(context, &average, NULL, NULL, at(kDy), at(kDx), NULL, NULL));
  mp_pool2d_desc_t large = pool_desc();
  large.h = large.w = large.window_h = large.window_w = 16, large.n = large.c = 1;
  const mp_pool2d_desc_t descs[] = {average, large};
  for (int i = 0; i < 2; ++i) {
    FAILS(mp_pool2d_forward, (context, &descs[i], at(kX), at(kY), at(kIndex), NULL),
          MP_ERROR_INVALID_ARGUMENT, "index");
    FAILS(mp_pool2d_backward,
          (context, &descs[i], at(kX), at(kIndex), at(kDy), at(kDx), NULL, NULL),
          MP_ERROR_INVALID_ARGUMENT, "index");
  }
  large.window_w = 15;
  WORKS(mp_pool2d_forward(context, &large, at(kX), at(kY), at(kIndex), NULL));
}

/* ---------------------------------------------------------------- batch normalization: 16 x 8 */

/** Sets every argument to a valid value. */
struct arguments {
  mp_batchnorm_tensors_t tensors;
  void *workspace;
  size_t workspace_bytes;
};

static mp_batchnorm_desc_t norm_desc(void) {
  return mp_batchnorm_desc_default(16, 8, MP_FP16);
}

static struct arguments good_arguments(void) {
  struct arguments a;
  mp_batchnorm_tensors_t *t = &a.tensors;
  const mp_batchnorm_desc_t d = norm_desc();
  MP_INIT_STRUCT(t);
  t->x = at(0), t->dy = at(256), t->y = at(512), t->dx = at(768);
  t->gamma = at(1024), t->beta = at(1056);
  t->running_mean = at(1152), t->running_var = at(1184);
  t->saved_mean = at(1216), t->saved_inv_std = at(1248);
  t->dgamma = at(1280), t->dbeta = at(1312), a.workspace = at(2048);
  check(mp_batchnorm_workspace_size(context, &d, &a.workspace_bytes) == MP_SUCCESS &&
            a.workspace_bytes <= 2048,
        "the workspace of 16 x 8");
  return a;
}

static mp_status_t train(const mp_batchnorm_desc_t *d, const struct arguments *a) {
  return mp_batchnorm_forward_training(context, d, &a->tensors, a->workspace, a->workspace_bytes,
                                       NULL);
}
static mp_status_t infer(const mp_batchnorm_desc_t *d, const struct arguments *a) {
  return mp_batchnorm_forward_inference(context, d, &a->tensors, NULL);
}
static mp_status_t backward(const mp_batchnorm_desc_t *d, const struct arguments *a) {
  return mp_batchnorm_backward(context, d, &a->tensors, a->workspace, a->workspace_bytes, NULL);
}

static void init_tensors(void *s) {
  const struct arguments a = good_arguments();
  memcpy(s, &a.tensors, sizeof a.tensors);
}
static mp_status_t train_with(void *s) {
  const mp_batchnorm_desc_t d = norm_desc();
  return mp_batchnorm_forward_training(context, &d, s, at(2048), 2048, NULL);
}
static mp_status_t infer_with(void *s) {
  const mp_batchnorm_desc_t d = norm_desc();
  return mp_batchnorm_forward_inference(context, &d, s, NULL);
}
static mp_status_t backward_with(void *s) {
  const mp_batchnorm_desc_t d = norm_desc();
  return mp_batchnorm_backward(context, &d, s, at(2048), 2048, NULL);
}

static void test_norm_tensors(void) {
  const struct field_case fields[] = {
      FIELD(mp_batchnorm_tensors_t, reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT)};
  const size_t size = sizeof(mp_batchnorm_tensors_t);
  const struct subject subjects[] = {
      {"mp_batchnorm_forward_training", "tensors", size, init_tensors, train_with},
      {"mp_batchnorm_forward_inference", "tensors", size, init_tensors, infer_with},
      {"mp_batchnorm_backward", "tensors", size, init_tensors, backward_with},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i)
    CHECK_STRUCT(&subjects[i], fields);
}

INIT(init_norm, mp_batchnorm_desc_t, norm_desc())
static mp_status_t call_train(void *s) {
  const struct arguments a = good_arguments();
  return train(s, &a);
}
static mp_status_t call_infer(void *s) {
  const struct arguments a = good_arguments();
  return infer(s, &a);
}
static mp_status_t call_backward(void *s) {
  const struct arguments a = good_arguments();
  return backward(s, &a);
}
static mp_status_t call_workspace_size(void *s) {
  size_t bytes;
  return mp_batchnorm_workspace_size(context, s, &bytes);
}

#define NORM_FIELD(field, member, v) \
  FIELD(mp_batchnorm_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_norm_desc(void) {
  const struct field_case fields[] = {
      NORM_FIELD(dtype, i, MP_DTYPE_NONE),
      NORM_FIELD(dtype, i, MP_INT64),
      NORM_FIELD(rows, i, -1),
      NORM_FIELD(rows, i, INT64_MAX),
      NORM_FIELD(channels, i, -1),
      NORM_FIELD(activation, i, -1),
      NORM_FIELD(activation, i, MP_ACT_DGELU_ERF + 1),
      FIELD(mp_batchnorm_desc_t, activation, i, MP_ACT_GELU, MP_ERROR_UNSUPPORTED),
      FIELD(mp_batchnorm_desc_t, activation, i, MP_ACT_DRELU, MP_ERROR_UNSUPPORTED),
      NORM_FIELD(epsilon, f, -1e-5f),
      NORM_FIELD(epsilon, f, NAN),
      NORM_FIELD(epsilon, f, INFINITY),
      NORM_FIELD(momentum, f, -0.1f),
      NORM_FIELD(momentum, f, 1.5f),
      NORM_FIELD(momentum, f, NAN),
  };
  const size_t size = sizeof(mp_batchnorm_desc_t);
  const struct subject subjects[] = {
      {"mp_batchnorm_forward_training", "desc", size, init_norm, call_train},
      {"mp_batchnorm_forward_inference", "desc", size, init_norm, call_infer},
      {"mp_batchnorm_backward", "desc", size, init_norm, call_backward},
      {"mp_batchnorm_workspace_size", "desc", size, init_norm, call_workspace_size},
  };
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; ++i)
    CHECK_STRUCT(&subjects[i], fields);
}

static void test_norm_pointers(void) {
  const mp_batchnorm_desc_t d = norm_desc();
  struct arguments a = good_arguments();
  a.tensors.gamma = a.tensors.beta = NULL;
  a.tensors.dgamma = a.tensors.dbeta = NULL;
  WORKS(train(&d, &a));
  WORKS(infer(&d, &a));
  WORKS(backward(&d, &a));
  a = good_arguments();
  a.workspace_bytes -= 1;
  check_failure("workspace_bytes - 1", "mp_batchnorm_forward_training", train(&d, &a),
                MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
  check_failure("workspace_bytes - 1", "mp_batchnorm_backward", backward(&d, &a),
                MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
}

void test_layers(void) {
  test_layout();
  test_pool_desc();
  test_pool_pointers();
  test_norm_desc();
  test_norm_tensors();
  test_norm_pointers();
}
