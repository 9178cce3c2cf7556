/* mpcore/attention.h: 2 sequences of 3 queries and 4 keys, 2 heads and 1 head of k and v, of 8 fp16
 * elements. */
#define MP_ENABLE_EXPERIMENTAL
#include <math.h>

#include "harness.h"

enum { kBatch = 2, kHeads = 2, kQueries = 3, kKeys = 4, kDim = 8 };

/* Offsets; a tensor of queries has 192 bytes, one of keys 128. */
enum { kQ = 0, kK = 256, kV = 512, kDo = 768, kO = 1024, kDq = 1280, kDk = 1536, kDv = 1792 };
enum { kLse = 2048, kSinks = 2304, kDsinks = 2560, kOffset = 2816, kLengths = 3072 };
enum { kStats = 3328, kWorkspace = 3584, kEnds = 4096 };

enum { kBytes = 4 * kBatch * kHeads * kQueries };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static mp_attention_desc_t attention_desc(void) {
  mp_attention_desc_t d = mp_attention_desc_default(kBatch, kHeads, kQueries, kKeys, kDim, MP_FP16);
  d.kv_heads = 1;
  return d;
}
static mp_attention_tensors_t attention_tensors(void) {
  mp_attention_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.q_lengths = at(kLengths), t.kv_lengths = at(kLengths + 8);
  t.dropout_offset = at(kOffset), t.sinks = at(kSinks);
  t.q = at(kQ), t.k = at(kK), t.v = at(kV), t.d_o = at(kDo), t.o = at(kO);
  t.dq = at(kDq), t.dk = at(kDk), t.dv = at(kDv), t.lse = at(kLse), t.dsinks = at(kDsinks);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

/* ---------------------------------------------------------------- descriptor */

INIT(init_desc, mp_attention_desc_t, attention_desc())
static mp_status_t call_forward(void *s) {
  const mp_attention_tensors_t t = attention_tensors();
  return mp_attention_forward(context, s, &t, NULL);
}
static mp_status_t call_backward(void *s) {
  const mp_attention_tensors_t t = attention_tensors();
  return mp_attention_backward(context, s, &t, at(kWorkspace), kBytes, NULL);
}
static mp_status_t call_size(void *s) {
  size_t bytes = 1;
  const mp_status_t status = mp_attention_backward_workspace_size(context, s, &bytes);
  check((status != MP_SUCCESS) == (bytes == 1), "a failing call does not write the bytes");
  return status;
}

#define DESC_FIELD(field, member, v) \
  FIELD(mp_attention_desc_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_desc(void) {
  const struct field_case fields[] = {
      DESC_FIELD(dtype, i, MP_DTYPE_NONE),
      DESC_FIELD(dtype, i, MP_INT32),
      DESC_FIELD(batch, i, -1),
      DESC_FIELD(batch, i, INT32_MAX),
      DESC_FIELD(heads, i, 0),
      DESC_FIELD(heads, i, -2),
      DESC_FIELD(kv_heads, i, 0),
      DESC_FIELD(kv_heads, i, -1),
      DESC_FIELD(kv_heads, i, 3),
      DESC_FIELD(head_dim, i, 0),
      DESC_FIELD(head_dim, i, 257),
      DESC_FIELD(head_dim_v, i, -1),
      DESC_FIELD(head_dim_v, i, 257),
      DESC_FIELD(dropout, f, -0.125f),
      DESC_FIELD(dropout, f, 1),
      DESC_FIELD(dropout, f, 0.999f),
      DESC_FIELD(dropout, f, NAN),
      DESC_FIELD(q_len, i, -1),
      DESC_FIELD(q_len, i, ((int64_t)1 << 30) + 1),
      DESC_FIELD(kv_len, i, -1),
      DESC_FIELD(kv_len, i, INT64_MAX),
      DESC_FIELD(q_rows, i, -1),
      DESC_FIELD(q_rows, i, 6),
      DESC_FIELD(q_rows, i, (int64_t)1 << 31),
      DESC_FIELD(kv_rows, i, -1),
      DESC_FIELD(kv_rows, i, 8),
      DESC_FIELD(kv_rows, i, (int64_t)1 << 31),
      DESC_FIELD(scale, f, -1),
      DESC_FIELD(scale, f, NAN),
      DESC_FIELD(scale, f, INFINITY),
      DESC_FIELD(flags, i, 4),
      DESC_FIELD(flags, i, MP_ATTENTION_FLAG_CAUSAL | 1u << 31),
      DESC_FIELD(q.batch, i, -1),
      DESC_FIELD(q.batch, i, 40),
      DESC_FIELD(q.batch, i, INT64_MAX),
      DESC_FIELD(q.row, i, -1),
      DESC_FIELD(q.row, i, 15),
      DESC_FIELD(q.row, i, INT64_MAX),
      DESC_FIELD(q.head, i, -1),
      DESC_FIELD(q.head, i, 7),
      DESC_FIELD(q.head, i, INT64_MAX),
      DESC_FIELD(k.batch, i, 31),
      DESC_FIELD(k.row, i, 7),
      DESC_FIELD(k.head, i, -1),
      DESC_FIELD(v.batch, i, 31),
      DESC_FIELD(v.row, i, 7),
      DESC_FIELD(o.row, i, 9),
      DESC_FIELD(o.head, i, 9),
  };
  const struct subject subjects[] = {
      {"mp_attention_forward", "desc", sizeof(mp_attention_desc_t), init_desc, call_forward},
      {"mp_attention_backward", "desc", sizeof(mp_attention_desc_t), init_desc, call_backward},
      {"mp_attention_backward_workspace_size", "desc", sizeof(mp_attention_desc_t), init_desc,
       call_size},
  };
  for (size_t i = 0; i < COUNT(subjects); i++) {
    CHECK_STRUCT(&subjects[i], fields);
  }

  mp_attention_desc_t d = attention_desc();
  d.window_left = d.window_right = -2;
  check_success("windows without their flag", call_forward(&d));
  d.flags = MP_ATTENTION_FLAG_WINDOW;
  check_failure("window_left", "mp_attention_forward", call_forward(&d), MP_ERROR_INVALID_ARGUMENT,
                "window_left");
  d.window_left = -1;
  check_failure("window_right", "mp_attention_backward", call_backward(&d),
                MP_ERROR_INVALID_ARGUMENT, "window_right");
  d = attention_desc();
  d.head_dim_v = 0;
  check_success("head_dim_v = 0", call_backward(&d));
  d = attention_desc();
  d.q.row = kDim, d.q.head = kQueries * kDim, d.q.batch = kHeads * d.q.head;
  check_success("heads before rows", call_backward(&d));
}

/* ---------------------------------------------------------------- tensors */

INIT(init_tensors, mp_attention_tensors_t, attention_tensors())
static mp_status_t forward_of(void *s) {
  const mp_attention_desc_t d = attention_desc();
  return mp_attention_forward(context, &d, s, NULL);
}
static mp_status_t backward_of(void *s) {
  const mp_attention_desc_t d = attention_desc();
  return mp_attention_backward(context, &d, s, at(kWorkspace), kBytes, NULL);
}

#define TENSOR(field, v, status) FIELD(mp_attention_tensors_t, field, p, v, status)

static void test_tensors_of_passes(void) {
  const mp_status_t wrong = MP_ERROR_INVALID_ARGUMENT;
  const struct field_case of_both[] = {
      FIELD(mp_attention_tensors_t, reserved0, i, 1, MP_ERROR_INVALID_ARGUMENT),
      TENSOR(q_ends, at(kEnds), wrong),
      TENSOR(kv_ends, at(kEnds), wrong),
  };
  struct subject subject = {"mp_attention_forward", "tensors", sizeof(mp_attention_tensors_t),
                            init_tensors, forward_of};
  CHECK_STRUCT(&subject, of_both);
  subject.function = "mp_attention_backward", subject.call = backward_of;
  CHECK_STRUCT(&subject, of_both);
}

static void test_calls(void) {
  const mp_attention_desc_t d = attention_desc();
  const mp_attention_tensors_t t = attention_tensors();
  void *space = at(kWorkspace);
  FAILS(mp_attention_backward, (context, &d, &t, space, kBytes - 1, NULL),
        MP_ERROR_WORKSPACE_TOO_SMALL, "workspace_bytes = 47 must be at least 48");

  mp_attention_tensors_t some = t; /* without optional tensors */
  some.q_lengths = some.kv_lengths = NULL;
  some.dropout_offset = NULL;
  some.sinks = NULL;
  some.lse = NULL;
  WORKS(mp_attention_forward(context, &d, &some, NULL));
  some = t;
  some.sinks = NULL, some.dsinks = NULL;
  some.stats.found_inf = some.stats.amax = NULL;
  WORKS(mp_attention_backward(context, &d, &some, space, kBytes, NULL));
}

static void test_packed(void) {
  mp_attention_desc_t d = attention_desc();
  d.q_rows = kBatch * kQueries, d.kv_rows = kBatch * kKeys;
  mp_attention_tensors_t t = attention_tensors();
  const mp_status_t wrong = MP_ERROR_INVALID_ARGUMENT;
  FAILS(mp_attention_forward, (context, &d, &t, NULL), wrong, "q_lengths");
  t.q_lengths = NULL;
  FAILS(mp_attention_forward, (context, &d, &t, NULL), wrong, "kv_lengths");
  t.kv_lengths = NULL;
  FAILS(mp_attention_forward, (context, &d, &t, NULL), wrong, "q_ends");
  t.q_ends = at(kEnds);
  FAILS(mp_attention_forward, (context, &d, &t, NULL), wrong, "kv_ends");
  t.kv_ends = at(kEnds + 2);
  FAILS(mp_attention_forward, (context, &d, &t, NULL), MP_ERROR_MISALIGNED, "kv_ends");
  t.kv_ends = at(kEnds);
  WORKS(mp_attention_forward(context, &d, &t, NULL));
  WORKS(mp_attention_backward(context, &d, &t, at(kWorkspace), kBytes, NULL));

  /* Gradients in one matrix; with equal lengths also in the padded form. */
  d = mp_attention_desc_default(kBatch, kHeads, kQueries, kQueries, kDim, MP_FP16);
  d.q.row = d.k.row = d.v.row = 3 * kHeads * kDim;
  t = attention_tensors();
  t.q = at(8192), t.k = at(8192 + 2 * kHeads * kDim), t.v = at(8192 + 4 * kHeads * kDim);
  t.dq = at(12288), t.dk = at(12288 + 2 * kHeads * kDim), t.dv = at(12288 + 4 * kHeads * kDim);
  WORKS(mp_attention_backward(context, &d, &t, at(kWorkspace), kBytes, NULL));
  t.dk = at(12288 + 2 * kHeads * kDim - 2);
  FAILS(mp_attention_backward, (context, &d, &t, at(kWorkspace), kBytes, NULL), wrong, "dq");
  t.dk = at(8192 + 2 * kHeads * kDim);
  FAILS(mp_attention_backward, (context, &d, &t, at(kWorkspace), kBytes, NULL), wrong, "dk");
}

static mp_status_t call_kernel_info(void *s) {
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  return mp_attention_kernel_info(context, s, 0, &info);
}

static void test_kernels(void) {
  mp_attention_desc_t d = attention_desc();
  const mp_attention_tensors_t t = attention_tensors();
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  const struct subject subject = {"mp_attention_kernel_info", "desc", sizeof(mp_attention_desc_t),
                                  init_desc, call_kernel_info};
  check_struct_size(&subject);
  FAILS(mp_attention_kernel_info, (context, &d, -1, &info), MP_ERROR_INVALID_ARGUMENT, "index");
  FAILS(mp_attention_kernel_info, (context, &d, 2, &info), MP_ERROR_NOT_FOUND, "index");
  WORKS(mp_attention_kernel_info(context, &d, 1, &info));
  check(info.reason == NULL && info.workspace_bytes == kBytes,
        "mp_attention_kernel_info: a kernel that is supported");
  char text[4];
  size_t bytes = sizeof text;
  FAILS(mp_attention_explain, (context, &d, text, &bytes), MP_ERROR_WORKSPACE_TOO_SMALL, "bytes");
  check(bytes > sizeof text, "mp_attention_explain: the required size");
  FAILS(mp_attention_set_kernel, (NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "context");
  FAILS(mp_attention_set_kernel, (context, "attention"), MP_ERROR_NOT_FOUND, "kernel");
  WORKS(mp_attention_set_kernel(context, "attention_mma"));
  WORKS(mp_attention_forward(context, &d, &t, NULL));
  d.head_dim = 7;
  FAILS(mp_attention_forward, (context, &d, &t, NULL), MP_ERROR_UNSUPPORTED, "kernel");
  FAILS(mp_attention_explain, (context, &d, NULL, &bytes), MP_ERROR_UNSUPPORTED, "kernel");
  d.head_dim = kDim;
  d.q.row = kHeads * kDim + 4;
  FAILS(mp_attention_forward, (context, &d, &t, NULL), MP_ERROR_UNSUPPORTED, "kernel");
  d.q.row = 0;
  d.dtype = MP_FP32;
  WORKS(mp_attention_kernel_info(context, &d, 1, &info));
  check(info.reason != NULL && info.workspace_bytes == 0,
        "mp_attention_kernel_info: the reason why a kernel does not support this");
  WORKS(mp_attention_set_kernel(context, NULL));
}

static void test_empty(void) {
  mp_attention_tensors_t t;
  MP_INIT_STRUCT(&t);
  mp_attention_desc_t d = attention_desc();
  d.q_len = d.kv_len = 0;
  WORKS(mp_attention_forward(context, &d, &t, NULL));
  WORKS(mp_attention_backward(context, &d, &t, NULL, 0, NULL));
  d = attention_desc();
  d.batch = 0;
  WORKS(mp_attention_forward(context, &d, &t, NULL));
  WORKS(mp_attention_backward(context, &d, &t, NULL, 0, NULL));
  t.sinks = at(kSinks), t.dsinks = at(kDsinks);
  float dsinks[kHeads] = {1, 1};
  check(mp_attention_backward(context, &d, &t, NULL, 0, NULL) == MP_SUCCESS &&
            mp_memcpy(context, dsinks, at(kDsinks), sizeof dsinks, NULL) == MP_SUCCESS &&
            mp_stream_sync(context, NULL) == MP_SUCCESS && dsinks[0] == 0 && dsinks[1] == 0,
        "dsinks of no sequences is 0");
  reset();
}

void test_attention(void) {
  test_desc();
  test_tensors_of_passes();
  test_calls();
  test_packed();
  test_kernels();
  test_empty();
}
