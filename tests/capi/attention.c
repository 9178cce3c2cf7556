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

static mp_attention_desc_t attention_desc(void) {
  mp_attention_desc_t d = mp_attention_desc_default(kBatch, kHeads, kQueries, kKeys, kDim, MP_FP16);
  d.kv_heads = 1;
  return d;
}
static mp_attention_tensors_t attention_tensors(void) {
  mp_attention_tensors_t t = INITIALIZED(mp_attention_tensors_t);
  t.q_lengths = at(kLengths), t.kv_lengths = at(kLengths + 8);
  t.dropout_offset = at(kOffset), t.sinks = at(kSinks);
  t.q = at(kQ), t.k = at(kK), t.v = at(kV), t.d_o = at(kDo), t.o = at(kO);
  t.dq = at(kDq), t.dk = at(kDk), t.dv = at(kDv), t.lse = at(kLse), t.dsinks = at(kDsinks);
  t.stats.found_inf = at(kStats), t.stats.amax = at(kStats + 4);
  return t;
}

/* ---------------------------------------------------------------- descriptor */

CALL_OF(call_forward,
        mp_attention_forward(context, s, REF(mp_attention_tensors_t, attention_tensors()), NULL))
CALL_OF(call_backward,
        mp_attention_backward(context, s, REF(mp_attention_tensors_t, attention_tensors()),
                              at(kWorkspace), kBytes, NULL))
CALL_OF(call_size, mp_attention_backward_workspace_size(context, s, &out.bytes))

static void test_desc(void) {
  const struct field_case fields[] = {
      INTS(mp_attention_desc_t, dtype, MP_DTYPE_NONE, MP_INT32),
      INTS(mp_attention_desc_t, batch, -1, INT32_MAX),
      INTS(mp_attention_desc_t, heads, 0, -2),
      INTS(mp_attention_desc_t, kv_heads, 0, -1, 3),
      INTS(mp_attention_desc_t, head_dim, 0, 257),
      INTS(mp_attention_desc_t, head_dim_v, -1, 257),
      REALS(mp_attention_desc_t, dropout, -0.125, 1, 0.999, NAN),
      INTS(mp_attention_desc_t, q_len, -1, ((int64_t)1 << 30) + 1),
      INTS(mp_attention_desc_t, kv_len, -1, INT64_MAX),
      INTS(mp_attention_desc_t, q_rows, -1, 6, (int64_t)1 << 31),
      INTS(mp_attention_desc_t, kv_rows, -1, 8, (int64_t)1 << 31),
      REALS(mp_attention_desc_t, scale, -1, NAN, INFINITY),
      INTS(mp_attention_desc_t, flags, 4, MP_ATTENTION_FLAG_CAUSAL | 1u << 31),
      INTS(mp_attention_desc_t, q.batch, -1, 40, INT64_MAX),
      INTS(mp_attention_desc_t, q.row, -1, 15, INT64_MAX),
      INTS(mp_attention_desc_t, q.head, -1, 7, INT64_MAX),
      INTS(mp_attention_desc_t, k.batch, 31),
      INTS(mp_attention_desc_t, k.row, 7),
      INTS(mp_attention_desc_t, k.head, -1),
      INTS(mp_attention_desc_t, v.batch, 31),
      INTS(mp_attention_desc_t, v.row, 7),
      INTS(mp_attention_desc_t, o.row, 9),
      INTS(mp_attention_desc_t, o.head, 9),
  };
  const mp_attention_desc_t initial = attention_desc();
  CHECK_STRUCT("mp_attention_forward", "desc", initial, call_forward, fields);
  CHECK_STRUCT("mp_attention_backward", "desc", initial, call_backward, fields);
  CHECK_STRUCT("mp_attention_backward_workspace_size", "desc", initial, call_size, fields);

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

CALL_OF(forward_of,
        mp_attention_forward(context, REF(mp_attention_desc_t, attention_desc()), s, NULL))
CALL_OF(backward_of, mp_attention_backward(context, REF(mp_attention_desc_t, attention_desc()), s,
                                           at(kWorkspace), kBytes, NULL))

static void test_tensors_of_passes(void) {
  const struct field_case of_both[] = {
      INTS(mp_attention_tensors_t, reserved0, 1),
      POINTERS(mp_attention_tensors_t, q_ends, at(kEnds)),
      POINTERS(mp_attention_tensors_t, kv_ends, at(kEnds)),
  };
  const mp_attention_tensors_t initial = attention_tensors();
  CHECK_STRUCT("mp_attention_forward", "tensors", initial, forward_of, of_both);
  CHECK_STRUCT("mp_attention_backward", "tensors", initial, backward_of, of_both);
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
  INVALID(mp_attention_forward, (context, &d, &t, NULL), "q_lengths");
  t.q_lengths = NULL;
  INVALID(mp_attention_forward, (context, &d, &t, NULL), "kv_lengths");
  t.kv_lengths = NULL;
  INVALID(mp_attention_forward, (context, &d, &t, NULL), "q_ends");
  t.q_ends = at(kEnds);
  INVALID(mp_attention_forward, (context, &d, &t, NULL), "kv_ends");
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
  INVALID(mp_attention_backward, (context, &d, &t, at(kWorkspace), kBytes, NULL), "dq");
  t.dk = at(8192 + 2 * kHeads * kDim);
  INVALID(mp_attention_backward, (context, &d, &t, at(kWorkspace), kBytes, NULL), "dk");
}

CALL_OF(call_kernel_info, mp_attention_kernel_info(context, s, 0, &INITIALIZED(mp_kernel_info_t)))

static void test_kernels(void) {
  mp_attention_desc_t d = attention_desc();
  const mp_attention_tensors_t t = attention_tensors();
  mp_kernel_info_t info = INITIALIZED(mp_kernel_info_t);
  const mp_attention_desc_t initial = attention_desc();
  check_struct_size(SUBJECT("mp_attention_kernel_info", "desc", initial, call_kernel_info));
  INVALID(mp_attention_kernel_info, (context, &d, -1, &info), "index");
  FAILS(mp_attention_kernel_info, (context, &d, 2, &info), MP_ERROR_NOT_FOUND, "index");
  WORKS(mp_attention_kernel_info(context, &d, 1, &info));
  check(info.reason == NULL && info.workspace_bytes == kBytes,
        "mp_attention_kernel_info: a kernel that is supported");
  char text[4];
  size_t bytes = sizeof text;
  FAILS(mp_attention_explain, (context, &d, text, &bytes), MP_ERROR_WORKSPACE_TOO_SMALL, "bytes");
  check(bytes > sizeof text, "mp_attention_explain: the required size");
  INVALID(mp_attention_set_kernel, (NULL, NULL), "context");
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
  mp_attention_tensors_t t = INITIALIZED(mp_attention_tensors_t);
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
