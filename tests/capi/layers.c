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
  for (int empty = 0; empty < 4; empty++) {
    int64_t e[] = {2, 3, 4, 5};
    e[empty] = 0;
    WORKS(mp_nchw_to_nhwc(context, e[0], e[1], e[2], e[3], NULL, MP_FP16, NULL, MP_FP32, NULL));
    WORKS(mp_nhwc_to_nchw(context, e[0], e[1], e[2], e[3], NULL, MP_FP16, NULL, MP_FP32, NULL));
  }
}

/* ---------------------------------------------------------------- pooling: 2 x 6 x 6 x 8 */

enum { kX = 0, kDx = 2048, kY = 4096, kDy = 5120, kIndex = 6144 };

static mp_pool2d_desc_t pool_desc(void) {
  return mp_pool2d_desc_default(MP_POOL_MAX, 2, 6, 6, 8, 3, 2, MP_FP16);
}

CALL_OF(call_pool_forward, mp_pool2d_forward(context, s, at(kX), at(kY), at(kIndex), NULL))
CALL_OF(call_pool_backward,
        mp_pool2d_backward(context, s, at(kX), NULL, at(kDy), at(kDx), NULL, NULL))
static mp_status_t call_pool_size(void *s) {
  int32_t p = 0, q = 0;
  const mp_status_t status = mp_pool2d_get_output_size(s, &p, &q);
  check(status != MP_SUCCESS || (p == 2 && q == 3), "P = 2, Q = 3");
  return status;
}

static void test_pool_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_pool2d_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_pool2d_desc_t, mode, 0, 4),
      INTS(mp_pool2d_desc_t, n, -1),
      INTS(mp_pool2d_desc_t, h, 0),
      INTS(mp_pool2d_desc_t, w, 0),
      INTS(mp_pool2d_desc_t, c, 0),
      INTS(mp_pool2d_desc_t, window_h, 0),
      INTS(mp_pool2d_desc_t, window_w, 0),
      INTS(mp_pool2d_desc_t, pad_top, -1, 3),
      INTS(mp_pool2d_desc_t, pad_bottom, -1, 3),
      INTS(mp_pool2d_desc_t, pad_left, -1, 2),
      INTS(mp_pool2d_desc_t, pad_right, -1, 2),
      INTS(mp_pool2d_desc_t, stride_h, 0),
      INTS(mp_pool2d_desc_t, stride_w, 0),
      INTS(mp_pool2d_desc_t, flags, 2),
      INTS(mp_pool2d_desc_t, dilation_h, -1, INT32_MAX),
      INTS(mp_pool2d_desc_t, dilation_w, -1),
  };
  const mp_pool2d_desc_t initial = pool_desc();
  CHECK_STRUCT("mp_pool2d_forward", "desc", initial, call_pool_forward, fields);
  CHECK_STRUCT("mp_pool2d_backward", "desc", initial, call_pool_backward, fields);
  CHECK_STRUCT("mp_pool2d_get_output_size", "desc", initial, call_pool_size, fields);

  mp_pool2d_desc_t d = pool_desc();
  d.n = INT32_MAX, d.h = d.w = 1 << 30;
  INVALID(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), "n");
  d = pool_desc();
  d.dilation_h = d.h + 1, d.pad_top = 1;
  INVALID(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), "dilation_h");
  d = pool_desc();
  d.h = 1 << 30, d.pad_bottom = 1;
  INVALID(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), "h");
  d = pool_desc();
  d.window_h = d.window_w = 46341; /* 2^31 elements and more */
  INVALID(mp_pool2d_forward, (context, &d, at(kX), at(kY), NULL, NULL), "window_h");
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
    INVALID(mp_pool2d_forward, (context, &descs[i], at(kX), at(kY), at(kIndex), NULL), "index");
    INVALID(mp_pool2d_backward,
            (context, &descs[i], at(kX), at(kIndex), at(kDy), at(kDx), NULL, NULL), "index");
  }
  large.window_w = 15;
  WORKS(mp_pool2d_forward(context, &large, at(kX), at(kY), at(kIndex), NULL));
  large.h = large.w = 1 << 16; /* 2^32 windows */
  large.window_h = large.window_w = large.stride_h = large.stride_w = 1;
  FAILS(mp_pool2d_backward, (context, &large, NULL, NULL, at(kDy), at(kDx), NULL, NULL),
        MP_ERROR_INVALID_ARGUMENT, "x");
  large.n = 0;
  WORKS(mp_pool2d_forward(context, &large, NULL, NULL, NULL, NULL));
  WORKS(mp_pool2d_backward(context, &large, NULL, NULL, NULL, NULL, NULL, NULL));
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

CALL_OF(train_with, mp_batchnorm_forward_training(context, REF(mp_batchnorm_desc_t, norm_desc()), s,
                                                  at(2048), 2048, NULL))
CALL_OF(infer_with,
        mp_batchnorm_forward_inference(context, REF(mp_batchnorm_desc_t, norm_desc()), s, NULL))
CALL_OF(backward_with, mp_batchnorm_backward(context, REF(mp_batchnorm_desc_t, norm_desc()), s,
                                             at(2048), 2048, NULL))

static void test_norm_tensors(void) {
  const struct field_case fields[] = {
      INTS(mp_batchnorm_tensors_t, reserved0, 1),
  };
  const mp_batchnorm_tensors_t initial = good_arguments().tensors;
  CHECK_STRUCT("mp_batchnorm_forward_training", "tensors", initial, train_with, fields);
  CHECK_STRUCT("mp_batchnorm_forward_inference", "tensors", initial, infer_with, fields);
  CHECK_STRUCT("mp_batchnorm_backward", "tensors", initial, backward_with, fields);
}

CALL_OF(call_train, train(s, REF(struct arguments, good_arguments())))
CALL_OF(call_infer, infer(s, REF(struct arguments, good_arguments())))
CALL_OF(call_backward, backward(s, REF(struct arguments, good_arguments())))
CALL_OF(call_workspace_size, mp_batchnorm_workspace_size(context, s, &out.bytes))

static void test_norm_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_batchnorm_desc_t, dtype, MP_DTYPE_NONE, MP_INT64),
      INTS(mp_batchnorm_desc_t, rows, -1, INT64_MAX),
      INTS(mp_batchnorm_desc_t, channels, -1),
      INTS(mp_batchnorm_desc_t, activation, -1, MP_ACT_DGELU_ERF + 1),
      FIELD(mp_batchnorm_desc_t, activation, ints, MP_ERROR_UNSUPPORTED, MP_ACT_GELU, MP_ACT_DRELU),
      REALS(mp_batchnorm_desc_t, epsilon, -1e-5, NAN, INFINITY),
      REALS(mp_batchnorm_desc_t, momentum, -0.1, 1.5, NAN),
  };
  const mp_batchnorm_desc_t initial = norm_desc();
  CHECK_STRUCT("mp_batchnorm_forward_training", "desc", initial, call_train, fields);
  CHECK_STRUCT("mp_batchnorm_forward_inference", "desc", initial, call_infer, fields);
  CHECK_STRUCT("mp_batchnorm_backward", "desc", initial, call_backward, fields);
  CHECK_STRUCT("mp_batchnorm_workspace_size", "desc", initial, call_workspace_size, fields);
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
