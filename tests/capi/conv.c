/* mpcore/conv.h: convolution.  x is 1 x 4 x 4 x 8, the filter 16 x 3 x 3 x 8 with padding 1, y is
 * 1 x 4 x 4 x 16, all fp16.  Every pass finds its three tensors at kFirst, kSecond and kOut. */
#define MP_ENABLE_EXPERIMENTAL
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "harness.h"

enum { kFirst = 0, kSecond = 1024, kOut = 4096, kBias = 7168, kAux = 7424, kWorkspace = 16384 };

typedef mp_status_t (*pass_function)(mp_context_t, const mp_conv2d_desc_t *, const void *,
                                     const void *, void *, const mp_epilogue_t *, void *, size_t,
                                     mp_stream_t);

/** One of the three functions with the names of its arguments. */
struct pass {
  const char *function;
  pass_function call;
  mp_conv_op_t op;
  const char *first, *second, *out;
};

static const struct pass kPasses[] = {
    {"mp_conv2d_fprop", mp_conv2d_fprop, MP_CONV_FPROP, "x", "filter", "y"},
    {"mp_conv2d_dgrad", mp_conv2d_dgrad, MP_CONV_DGRAD, "dy", "filter", "dx"},
    {"mp_conv2d_wgrad", mp_conv2d_wgrad, MP_CONV_WGRAD, "x", "dy", "dfilter"},
};
static const struct pass *const kPassesEnd = kPasses + 3;
static const struct pass *current; /**< pass under test */

static mp_conv2d_desc_t good_desc(void) {
  mp_conv2d_desc_t d = mp_conv2d_desc_default(1, 4, 4, 8, 16, 3, 3, MP_FP16);
  d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = 1;
  return d;
}

static mp_status_t run(const mp_conv2d_desc_t *d, const mp_epilogue_t *e) {
  return current->call(context, d, at(kFirst), at(kSecond), at(kOut), e, NULL, 0, NULL);
}

/** Runs tensors larger than their buffers: the call must fail. */
static mp_status_t run_large(const mp_conv2d_desc_t *d, void *workspace, size_t bytes) {
  return current->call(context, d, at(kFirst), at(kSecond), nowhere(), NULL, workspace, bytes,
                       NULL);
}

/* ---------------------------------------------------------------- descriptor */

CALL_OF(call_pass, run(s, NULL))

static mp_status_t call_output_size(void *s) {
  static int32_t p, q;
  return mp_conv2d_get_output_size(s, &p, &q);
}

CALL_OF(call_workspace_size, mp_conv2d_workspace_size(context, s, MP_CONV_FPROP, NULL, &out.bytes))

CALL_OF(call_kernel_info,
        mp_conv2d_kernel_info(context, s, MP_CONV_WGRAD, 0, &INITIALIZED(mp_kernel_info_t)))

/** Checks types, which mp_conv2d_get_output_size ignores. */
static void check_desc_types(const char *function, mp_status_t (*call)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_conv2d_desc_t, dtype, MP_DTYPE_NONE, invalid_dtype()),
      INTS(mp_conv2d_desc_t, dtype_out, MP_DTYPE_NONE, 99),
  };
  const mp_conv2d_desc_t initial = good_desc();
  CHECK_FIELDS(function, "desc", initial, call, fields);
}

/** Checks fields that every function with a descriptor rejects. */
static void check_desc(const char *function, mp_status_t (*call)(void *)) {
  const struct field_case fields[] = {
      INTS(mp_conv2d_desc_t, n, -1),
      INTS(mp_conv2d_desc_t, h, 0),
      INTS(mp_conv2d_desc_t, w, 0),
      INTS(mp_conv2d_desc_t, c, 0),
      INTS(mp_conv2d_desc_t, k, 0),
      INTS(mp_conv2d_desc_t, r, 0),
      INTS(mp_conv2d_desc_t, s, -2),
      INTS(mp_conv2d_desc_t, pad_top, -1),
      INTS(mp_conv2d_desc_t, pad_bottom, -1),
      INTS(mp_conv2d_desc_t, pad_left, -1),
      INTS(mp_conv2d_desc_t, pad_right, INT_MIN),
      INTS(mp_conv2d_desc_t, stride_h, 0),
      INTS(mp_conv2d_desc_t, stride_w, -1),
      INTS(mp_conv2d_desc_t, dilation_h, 0),
      INTS(mp_conv2d_desc_t, dilation_w, -1),
      INTS(mp_conv2d_desc_t, groups, 0, -1, 3 /* divides neither c nor k */,
           16 /* divides k but not c */),
      INTS(mp_conv2d_desc_t, reserved0, 1),
  };
  const mp_conv2d_desc_t initial = good_desc();
  CHECK_STRUCT(function, "desc", initial, call, fields);
}

static void test_output_size(void) {
  mp_conv2d_desc_t d = good_desc();
  int32_t p = -7, q = -7;
  check_desc("mp_conv2d_get_output_size", call_output_size);
  d.n = -1;
  INVALID(mp_conv2d_get_output_size, (&d, &p, &q), "n");
  d = good_desc();
  d.pad_top = d.pad_bottom = INT_MAX;
  FAILS(mp_conv2d_get_output_size, (&d, &p, &q), MP_ERROR_UNSUPPORTED,
        "h + pad_top + pad_bottom = 4294967298, w + pad_left + pad_right = 6: p = 4294967296 and q "
        "= 4 must be less than 2^31");
  check(p == -7 && q == -7, "a failing mp_conv2d_get_output_size does not write p and q");

  d = good_desc();
  d.h = 11;
  d.w = 4;
  d.r = 3;
  d.s = 5;
  d.pad_bottom = 3;
  d.stride_h = 2;
  d.dilation_h = 2;
  d.pad_left = d.pad_right = 0;
  WORKS(mp_conv2d_get_output_size(&d, &p, &q));
  check(p == 6 && q == 0, "p = (1 + 11 + 3 - 2 * 2 - 1) / 2 + 1, q = 0");
  d.h = d.r = d.dilation_h = d.pad_top = INT_MAX; /* intermediate results exceed 32 bits */
  WORKS(mp_conv2d_get_output_size(&d, &p, &q));
  check(p == 0, "p = 0 if the filter covers 2^62 rows");
}

/* ---------------------------------------------------------------- epilogue */

CALL_OF(call_epilogue, run(REF(mp_conv2d_desc_t, good_desc()), s))

static void test_epilogue(void) {
  mp_epilogue_t e = mp_epilogue_default();
  if (current->op == MP_CONV_WGRAD) {
    check_scaling_epilogue(SUBJECT(current->function, "epilogue", e, call_epilogue), at(2),
                           MP_ERROR_MISALIGNED);
    return;
  }
  e.bias = at(kBias), e.dtype_bias = MP_FP32, e.aux = at(kAux);
  check_epilogue(SUBJECT(current->function, "epilogue", e, call_epilogue), 8);

  const mp_conv2d_desc_t d = good_desc();
  const mp_activation_t derivatives[] = {MP_ACT_DRELU, MP_ACT_DGELU, MP_ACT_DSIGMOID,
                                         MP_ACT_DTANH, MP_ACT_DSILU, MP_ACT_DGELU_ERF};
  for (size_t i = 0; i < COUNT(derivatives); i++) {
    e = mp_epilogue_default();
    e.activation = derivatives[i];
    check_failure("D* activation without aux", current->function, run(&d, &e),
                  MP_ERROR_INVALID_ARGUMENT, "aux");
  }
}

/* ---------------------------------------------------------------- tensors and workspace */

static void refused(const char *what, mp_status_t got, mp_status_t want, const char *argument) {
  char label[128];
  snprintf(label, sizeof label, "%s: %s", current->function, what);
  check_failure(label, current->function, got, want, argument);
}

static void test_tensors_of_pass(void) {
  void *const a = at(kFirst), *const b = at(kSecond), *const o = at(kOut);
  const pass_function call = current->call;
  mp_conv2d_desc_t d = good_desc();
  d.dtype_out = MP_FP32;
  refused("fp32 output at half an element", call(context, &d, a, b, at(2), NULL, NULL, 0, NULL),
          MP_ERROR_MISALIGNED, current->out);
  WORKS(call(context, &d, a, b, o, NULL, at(kWorkspace), 512, NULL));
  d.beta = NAN;
  WORKS(call(context, &d, a, b, o, NULL, NULL, 0, NULL));

  d = good_desc();
  d.plan = named_plan("abacus");
  refused("unknown kernel", run(&d, NULL), MP_ERROR_NOT_FOUND, "kernel");
}

/** Sizes that exceed the documented limits; such tensors cannot be allocated. */
static void test_limits(void) {
  mp_conv2d_desc_t image = good_desc(), output = good_desc(), filter = good_desc();
  mp_conv2d_desc_t pixels = good_desc(), output_pixels;
  image.h = image.w = 1 << 15;
  image.c = 1; /* 2^30 elements */
  filter.c = filter.k = 1 << 14;
  pixels.n = INT_MAX;
  output.pad_top = output.pad_bottom = output.pad_left = output.pad_right = 0;
  output.r = output.s = output.c = 1;
  output.h = output.w = 32767; /* just below the limit of x */
  output_pixels = output;
  output_pixels.n = 1 << 29;
  output_pixels.h = output_pixels.w = output_pixels.pad_top = 1;
  const struct {
    const char *what;
    const mp_conv2d_desc_t *desc;
    const char *sentence;
  } cases[] = {
      {"an image of 2^30 elements", &image,
       "h + pad_top + pad_bottom = 32770, w + pad_left + pad_right = 32770, c = 1: a padded image "
       "of x must have fewer than 2^30 elements"},
      {"an output of 2^30 elements", &output,
       "p = 32767, q = 32767, k = 16: an image of y must have fewer than 2^30 elements"},
      {"a filter bank of more than 2^30 elements", &filter,
       "r = 3, s = 3, c / groups + 7 = 16391, k = 16384: filter must have fewer than 2^30 "
       "elements"},
      {"more than 2^30 pixels", &pixels,
       "n = 2147483647, h = 4, w = 4: x must have fewer than 2^30 pixels"},
      {"more than 2^30 output pixels", &output_pixels,
       "n = 536870912, p = 2, q = 1: y must have fewer than 2^30 pixels"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    const mp_status_t got = run(cases[i].desc, NULL);
    refused(cases[i].what, got, MP_ERROR_UNSUPPORTED, cases[i].sentence);
  }
}

/** Problems without images or without outputs read nothing. */
static void test_empty_problems(void) {
  for (int which = 0; which < 2; which++) {
    mp_conv2d_desc_t d = good_desc();
    if (which == 0) d.n = 0;
    if (which == 1) d.h = d.pad_top = d.pad_bottom = 1, d.r = 4; /* P = 0 */
    size_t bytes = 1;
    check(mp_conv2d_workspace_size(context, &d, current->op, NULL, &bytes) == MP_SUCCESS &&
              bytes == 0,
          "an empty convolution needs no workspace");
    d.plan = named_plan("abacus");
    refused("unknown kernel of an empty convolution", run(&d, NULL), MP_ERROR_NOT_FOUND, "kernel");
    FAILS(mp_conv2d_workspace_size, (context, &d, current->op, NULL, &out.bytes),
          MP_ERROR_NOT_FOUND, "kernel");
    d.plan = named_plan("conv_wmma_128x128x32_s3"); /* known, but unused */
    WORKS(mp_conv2d_workspace_size(context, &d, current->op, NULL, &bytes));
    d.plan = NULL;
    const int writes = current->op == MP_CONV_WGRAD || (current->op == MP_CONV_DGRAD && which == 1);
    WORKS(current->call(context, &d, NULL, NULL, writes ? at(kOut) : NULL, NULL, NULL, 0, NULL));
    if (writes)
      refused("no output of an empty sum",
              current->call(context, &d, NULL, NULL, NULL, NULL, NULL, 0, NULL),
              MP_ERROR_INVALID_ARGUMENT, current->out);
  }
}

/* ---------------------------------------------------------------- kernel selection */

static void test_queries(void) {
  mp_conv2d_desc_t d = good_desc();
  const mp_conv_op_t bad_op = (mp_conv_op_t)0;
  check_desc("mp_conv2d_workspace_size", call_workspace_size);
  check_desc_types("mp_conv2d_workspace_size", call_workspace_size);
  INVALID(mp_conv2d_workspace_size, (context, &d, bad_op, NULL, &out.bytes), "op");
  check_desc("mp_conv2d_kernel_info", call_kernel_info);
  check_desc_types("mp_conv2d_kernel_info", call_kernel_info);
  mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
  INVALID(mp_conv2d_kernel_info, (context, &d, bad_op, 0, &info), "op");
  INVALID(mp_conv2d_kernel_info, (context, &d, MP_CONV_DGRAD, -1, &info), "index");
  FAILS(mp_conv2d_kernel_info, (context, &d, MP_CONV_DGRAD, 1000, &info), MP_ERROR_NOT_FOUND,
        "index");
  WORKS(mp_conv2d_kernel_info(context, &d, MP_CONV_DGRAD, 0, &info));

  d.n = 0;
  FAILS(mp_conv2d_kernel_info, (context, &d, MP_CONV_FPROP, 0, &info), MP_ERROR_NOT_FOUND, "n");
  d = good_desc();
  info.struct_size = 39;
  FAILS(mp_conv2d_kernel_info, (context, &d, MP_CONV_DGRAD, 0, &info), MP_ERROR_STRUCT_SIZE,
        "info");
  d.plan = named_plan("abacus");
  FAILS(mp_conv2d_workspace_size, (context, &d, MP_CONV_FPROP, NULL, &out.bytes),
        MP_ERROR_NOT_FOUND, "kernel");
}

/** Returns the name of the index-th kernel that supports the problem; NULL after the last. */
static const char *kernel_of(const mp_conv2d_desc_t *d, int32_t index) {
  mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
  return mp_conv2d_kernel_info(context, d, current->op, index, &info) == MP_SUCCESS &&
                 info.reason == NULL
             ? info.name
             : NULL;
}

/** Tensor-core kernels do not support fp32. */
static void test_unfit_kernel(void) {
  mp_conv2d_desc_t d = good_desc(), fp32 = good_desc();
  fp32.dtype = fp32.dtype_out = MP_FP32;
  int refuses = 0;
  for (int32_t i = 0; !refuses && (fp32.plan = named_plan(kernel_of(&d, i))) != NULL; i++) {
    size_t bytes;
    refuses =
        mp_conv2d_workspace_size(context, &fp32, current->op, NULL, &bytes) == MP_ERROR_UNSUPPORTED;
  }
  reset();
  if (refuses)
    refused("a kernel that does not support the problem", run_large(&fp32, NULL, 0),
            MP_ERROR_UNSUPPORTED, "kernel");
  else
    skip("a kernel that does not support the problem", "every kernel supports it");
}

static void test_workspace(void) {
  mp_conv2d_desc_t d = good_desc();
  d.n = 4096;
  size_t bytes = 0;
  const mp_conv2d_desc_t any = d;
  for (int32_t i = 0; bytes == 0 && (d.plan = named_plan(kernel_of(&any, i))) != NULL; i++)
    mp_conv2d_workspace_size(context, &d, current->op, NULL, &bytes);
  reset();
  if (bytes == 0) {
    skip("MP_ERROR_WORKSPACE_TOO_SMALL", "no kernel of this pass needs a workspace");
    return;
  }
  refused("no workspace for a kernel that requires one", run_large(&d, NULL, 0),
          MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
  refused("one byte of workspace too few", run_large(&d, at(1 << 29), bytes - 1),
          MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes");
}

void test_conv(void) {
  test_output_size();
  test_queries();
  for (current = kPasses; current != kPassesEnd; current++) {
    check_desc(current->function, call_pass);
    check_desc_types(current->function, call_pass);
    test_epilogue();
    test_tensors_of_pass();
    test_limits();
    test_empty_problems();
    test_unfit_kernel();
    test_workspace();
  }
}
