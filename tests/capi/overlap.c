/* Outputs that share memory with another argument: each call rejects them by name, unless its
 * header allows it.  Unless stated otherwise, tensors have 16 x 16 elements of fp32: 1 KiB. */
#include <stdio.h>

#include "harness.h"

enum { kSide = 16, kElems = kSide * kSide, kBytes = 4 * kElems };
enum { kFirst = 0, kSecond = kBytes, kThird = 2 * kBytes, kOut = 3 * kBytes, kFourth = 4 * kBytes };
enum { kFar = 5 * kBytes, kSmall = 6 * kBytes, kSpace = 8 * kBytes };

enum {
  kLse = kSmall + 4 * kSide,
  kLoss = kLse + 4 * kSide,
  kCorrect = kLoss + 8,
  kApart = kLoss + 64
};

/** A call with its tensors at these offsets of at(). */
typedef mp_status_t (*call_at)(size_t first, size_t second, size_t out);
/** Statistics outputs of the calls below that have them. */
static mp_grad_stats_t stats;
/** Workspace of the calls below that have one; its size, if the call does not require one. */
static size_t space = kSpace, space_bytes;
#define SPACE at(space), space_bytes

static mp_gemm_desc_t square(void) {
  return mp_gemm_desc_default(kSide, kSide, kSide, MP_FP32, MP_FP32);
}
static mp_status_t call_gemm(size_t a, size_t b, size_t d) {
  const mp_gemm_desc_t desc = square();
  return mp_gemm(context, &desc, at(a), at(b), NULL, at(d), NULL, SPACE, NULL);
}
static mp_status_t call_gemm_c(size_t a, size_t c, size_t d) {
  mp_gemm_desc_t desc = square();
  desc.beta = 1;
  return mp_gemm(context, &desc, at(a), at(kSecond), at(c), at(d), NULL, SPACE, NULL);
}
/** aux is an output. */
static mp_status_t call_gemm_aux(size_t aux, size_t b, size_t d) {
  const mp_gemm_desc_t desc = square();
  mp_epilogue_t e = mp_epilogue_default();
  e.activation = MP_ACT_RELU;
  e.aux = at(aux);
  e.stats = stats;
  return mp_gemm(context, &desc, at(kThird), at(b), NULL, at(d), &e, SPACE, NULL);
}
static mp_status_t call_gemm_backward(size_t aux, size_t bias, size_t d) {
  const mp_gemm_desc_t desc = square();
  mp_epilogue_t e = mp_epilogue_default();
  e.activation = MP_ACT_DRELU;
  e.aux = at(aux), e.bias = at(bias), e.dtype_bias = MP_FP32;
  return mp_gemm(context, &desc, at(kThird), at(kThird), NULL, at(d), &e, SPACE, NULL);
}
static mp_status_t call_gemm_dbias(size_t a, size_t b, size_t dbias) {
  const mp_gemm_desc_t desc = square();
  mp_epilogue_t e = mp_epilogue_default();
  e.dbias = at(dbias);
  e.stats = stats;
  return mp_gemm(context, &desc, at(a), at(b), NULL, at(kFar), &e, SPACE, NULL);
}
static mp_status_t call_batched(size_t a, size_t b, size_t d) {
  const mp_gemm_desc_t desc = square();
  return mp_gemm_batched(context, &desc, at(a), at(b), NULL, at(d), NULL, SPACE, NULL);
}
static mp_status_t call_grouped(size_t a, size_t b, size_t d) {
  const mp_gemm_desc_t desc = mp_gemm_desc_default(0, 0, 0, MP_FP32, MP_FP32);
  mp_gemm_group_item_t item = mp_gemm_group_item_default(kSide, kSide, kSide);
  item.A = at(a), item.B = at(b), item.D = at(d);
  return mp_gemm_grouped(context, &desc, 1, &item, NULL, SPACE, NULL);
}
static mp_status_t call_ragged(size_t a, size_t b, size_t d) {
  mp_gemm_desc_t desc = square();
  return mp_gemm_ragged(context, &desc, MP_RAGGED_M, at(kSmall), at(a), at(b), NULL, at(d), NULL,
                        SPACE, NULL);
}

/** Both inputs and the output have kElems elements: 16 channels, 4 x 4 pixels, 1 x 1 filters. */
static mp_conv2d_desc_t conv_desc(void) {
  return mp_conv2d_desc_default(1, 4, 4, kSide, kSide, 1, 1, MP_FP32);
}
static mp_status_t call_fprop(size_t x, size_t filter, size_t y) {
  const mp_conv2d_desc_t d = conv_desc();
  return mp_conv2d_fprop(context, &d, at(x), at(filter), at(y), NULL, SPACE, NULL);
}
static mp_status_t call_dgrad(size_t dy, size_t filter, size_t dx) {
  const mp_conv2d_desc_t d = conv_desc();
  return mp_conv2d_dgrad(context, &d, at(dy), at(filter), at(dx), NULL, SPACE, NULL);
}
static mp_status_t call_wgrad(size_t x, size_t dy, size_t dfilter) {
  const mp_conv2d_desc_t d = conv_desc();
  return mp_conv2d_wgrad(context, &d, at(x), at(dy), at(dfilter), NULL, SPACE, NULL);
}

static mp_pool2d_desc_t pool_desc(void) {
  mp_pool2d_desc_t d = mp_pool2d_desc_default(MP_POOL_MAX, 1, 4, 4, kSide, 3, 3, MP_FP32);
  d.stride_h = d.stride_w = d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = 1;
  return d;
}
static mp_status_t call_pool(size_t x, size_t unused, size_t y) {
  const mp_pool2d_desc_t d = pool_desc();
  (void)unused;
  return mp_pool2d_forward(context, &d, at(x), at(y), NULL, NULL);
}
static mp_status_t call_pool_index(size_t x, size_t y, size_t index) {
  const mp_pool2d_desc_t d = pool_desc();
  return mp_pool2d_forward(context, &d, at(x), at(y), at(index), NULL);
}
static mp_status_t call_pool_backward(size_t x, size_t dy, size_t dx) {
  const mp_pool2d_desc_t d = pool_desc();
  return mp_pool2d_backward(context, &d, at(x), NULL, at(dy), at(dx), &stats, NULL);
}
static mp_status_t call_pool_indexed(size_t dy, size_t index, size_t dx) {
  const mp_pool2d_desc_t d = pool_desc();
  return mp_pool2d_backward(context, &d, NULL, at(index), at(dy), at(dx), &stats, NULL);
}
static mp_status_t call_transpose(size_t src, size_t unused, size_t dst) {
  (void)unused;
  return mp_nchw_to_nhwc(context, 1, kSide, 4, 4, at(src), MP_FP32, at(dst), MP_FP32, NULL);
}
static mp_status_t call_batchnorm(size_t x, size_t gamma, size_t y) {
  const mp_batchnorm_desc_t d = mp_batchnorm_desc_default(kSide, kSide, MP_FP32);
  mp_batchnorm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = at(x), t.y = at(y), t.gamma = at(gamma);
  t.beta = t.running_mean = t.running_var = at(kSmall);
  return mp_batchnorm_forward_inference(context, &d, &t, NULL);
}
/** The second argument is an output. */
static mp_status_t call_batchnorm_training(size_t x, size_t inv_std, size_t y) {
  const mp_batchnorm_desc_t d = mp_batchnorm_desc_default(kSide, kSide, MP_FP32);
  mp_batchnorm_tensors_t t;
  size_t bytes = 0;
  MP_INIT_STRUCT(&t);
  t.x = at(x), t.y = at(y), t.gamma = t.beta = at(kFar);
  t.saved_mean = at(kSmall), t.saved_inv_std = at(inv_std);
  mp_batchnorm_workspace_size(context, &d, &bytes);
  return mp_batchnorm_forward_training(context, &d, &t, at(space), bytes, NULL);
}
static mp_status_t call_batchnorm_backward(size_t x, size_t dy, size_t dx) {
  const mp_batchnorm_desc_t d = mp_batchnorm_desc_default(kSide, kSide, MP_FP32);
  mp_batchnorm_tensors_t t;
  size_t bytes = 0;
  MP_INIT_STRUCT(&t);
  t.x = at(x), t.dy = at(dy), t.dx = at(dx), t.stats = stats;
  t.saved_mean = t.saved_inv_std = at(kApart + 64), t.dgamma = at(kSmall), t.dbeta = at(kLse);
  mp_batchnorm_workspace_size(context, &d, &bytes);
  return mp_batchnorm_backward(context, &d, &t, at(space), bytes, NULL);
}
static mp_status_t call_norm(size_t x, size_t residual, size_t y) {
  const mp_norm_desc_t d = mp_norm_desc_default(MP_NORM_RMS, kSide, kSide, MP_FP32);
  mp_norm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = at(x), t.residual = at(residual), t.y = at(y), t.rstd = at(kSmall);
  return mp_norm_forward(context, &d, &t, NULL);
}
static mp_status_t call_norm_backward(size_t x, size_t dy, size_t dx) {
  const mp_norm_desc_t d = mp_norm_desc_default(MP_NORM_LAYER, kSide, kSide, MP_FP32);
  mp_norm_tensors_t t;
  size_t bytes = 0;
  MP_INIT_STRUCT(&t);
  t.x = at(x), t.dy = at(dy), t.dx = at(dx), t.stats = stats;
  t.mean = t.rstd = at(kApart + 64), t.dgamma = at(kSmall), t.dbeta = at(kLse);
  mp_norm_backward_workspace_size(context, &d, &bytes);
  return mp_norm_backward(context, &d, &t, at(space), bytes, NULL);
}
static mp_status_t call_xent(size_t logits, size_t labels, size_t dlogits) {
  const mp_xent_desc_t d = mp_xent_desc_default(kSide, kSide, MP_FP32);
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = at(logits), t.labels = at(labels), t.row_loss = at(kSmall), t.dx = at(dlogits);
  t.lse = at(kLse), t.loss = at(kLoss), t.correct = at(kCorrect), t.stats = stats;
  return mp_softmax_xent(context, &d, &t, NULL);
}
static mp_status_t call_loss(size_t prediction, size_t target, size_t dprediction) {
  const mp_loss_desc_t d = mp_loss_desc_default(MP_LOSS_MSE, kElems, MP_FP32);
  mp_loss_tensors_t t;
  size_t bytes = 0;
  MP_INIT_STRUCT(&t);
  t.prediction = at(prediction), t.target = at(target), t.dprediction = at(dprediction);
  t.element_loss = at(kFar), t.loss = at(kLoss), t.stats = stats;
  mp_loss_workspace_size(context, &d, &bytes);
  return mp_loss(context, &d, &t, at(space), bytes, NULL);
}
static mp_status_t call_pointwise(size_t a, size_t b, size_t y) {
  const mp_pointwise_desc_t d = mp_pointwise_desc_default(MP_POINTWISE_ADD, kSide, kSide, MP_FP32);
  return mp_pointwise(context, &d, at(a), at(b), at(y), &stats, NULL);
}
static mp_status_t call_sum_rows(size_t x, size_t unused, size_t sum) {
  const mp_sum_rows_desc_t d = mp_sum_rows_desc_default(kSide, kSide, kSide, MP_FP32);
  (void)unused;
  return mp_sum_rows(context, &d, at(x), at(sum), &stats, NULL);
}
static mp_status_t call_strided_copy(size_t x, size_t unused, size_t y) {
  mp_strided_copy_desc_t d = mp_strided_copy_desc_default(MP_FP32);
  d.rank = 1, d.extent[0] = kSide * kSide, d.x_stride[0] = d.y_stride[0] = 1;
  (void)unused;
  return mp_strided_copy(context, &d, at(x), at(y), &stats, NULL);
}
/** dy has half of the columns of x. */
static mp_status_t call_glu_backward(size_t x, size_t dy, size_t dx) {
  const mp_glu_desc_t d = mp_glu_desc_default(MP_ACT_SILU, kSide, kSide / 2, MP_FP32);
  return mp_glu_backward(context, &d, at(x), at(dy), at(dx), &stats, NULL);
}
static mp_status_t call_rope(size_t x, size_t inv_freq, size_t y) {
  const mp_rope_desc_t d = mp_rope_desc_default(kSide, 1, kSide, MP_FP32);
  return mp_rope(context, &d, NULL, at(inv_freq), at(x), at(y), &stats, NULL);
}
static mp_status_t call_rope_positions(size_t x, size_t positions, size_t y) {
  const mp_rope_desc_t d = mp_rope_desc_default(kSide, 1, kSide, MP_FP32);
  return mp_rope(context, &d, at(positions), NULL, at(x), at(y), NULL, NULL);
}
static mp_softmax_desc_t softmax_desc(mp_softmax_mask_t mask) {
  mp_softmax_desc_t d = mp_softmax_desc_default(kSide, kSide, MP_FP32);
  d.mask = mask;
  d.mask_rows = mask == MP_SOFTMAX_MASK_LENGTHS;
  return d;
}
static mp_status_t call_softmax(size_t x, size_t mask, size_t y) {
  const mp_softmax_desc_t d = softmax_desc(MP_SOFTMAX_MASK_ADDITIVE);
  return mp_softmax_forward(context, &d, at(x), at(mask), at(y), NULL);
}
static mp_status_t call_softmax_lengths(size_t x, size_t lengths, size_t y) {
  const mp_softmax_desc_t d = softmax_desc(MP_SOFTMAX_MASK_LENGTHS);
  return mp_softmax_forward(context, &d, at(x), at(lengths), at(y), NULL);
}
static mp_status_t call_softmax_backward(size_t y, size_t dy, size_t dx) {
  const mp_softmax_desc_t d = softmax_desc(MP_SOFTMAX_MASK_NONE);
  return mp_softmax_backward(context, &d, at(y), at(dy), NULL, at(dx), &stats, NULL);
}
static mp_status_t call_softmax_backward_lengths(size_t y, size_t lengths, size_t dx) {
  const mp_softmax_desc_t d = softmax_desc(MP_SOFTMAX_MASK_LENGTHS);
  return mp_softmax_backward(context, &d, at(y), at(kSecond), at(lengths), at(dx), &stats, NULL);
}
static mp_status_t call_embedding(size_t table, size_t indices, size_t out_at) {
  const mp_embedding_desc_t d = mp_embedding_desc_default(kSide, kSide, kSide, MP_FP32);
  return mp_embedding_forward(context, &d, at(table), at(indices), at(out_at), NULL);
}
static mp_status_t call_embedding_backward(size_t dout, size_t indices, size_t dtable) {
  const mp_embedding_desc_t d = mp_embedding_desc_default(kSide, kSide, kSide, MP_FP32);
  size_t bytes = 0;
  mp_embedding_workspace_size(context, &d, &bytes);
  return mp_embedding_backward(context, &d, at(indices), at(dout), at(dtable), &stats, at(space),
                               bytes, NULL);
}
static mp_status_t call_column_sum(size_t x, size_t unused, size_t sum) {
  const mp_column_sum_desc_t d = mp_column_sum_desc_default(kSide, kSide, MP_FP32);
  (void)unused;
  return mp_column_sum(context, &d, at(x), at(sum), NULL, at(space), kBytes, NULL);
}
static mp_status_t call_attention_backward(size_t q, size_t d_o, size_t dq) {
  const mp_attention_desc_t d = mp_attention_desc_default(1, 1, kSide, kSide, kSide, MP_FP32);
  mp_attention_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.q = t.k = t.v = t.o = at(q), t.d_o = at(d_o), t.lse = at(kSmall), t.stats = stats;
  t.dq = at(dq), t.dk = at(kFar), t.dv = at(kFourth);
  return mp_attention_backward(context, &d, &t, at(space), 4 * kSide, NULL);
}
static mp_status_t call_linear_xent(size_t x, size_t w, size_t dx) {
  const mp_linear_xent_desc_t d = mp_linear_xent_desc_default(kSide, kSide, kSide, MP_FP32);
  mp_xent_tensors_t t;
  size_t bytes = 0;
  MP_INIT_STRUCT(&t);
  t.x = at(x), t.w = at(w), t.labels = at(kSmall), t.row_loss = at(kSmall + 256), t.stats = stats;
  t.dx = at(dx), t.dw = at(kFar);
  mp_linear_xent_workspace_size(context, &d, &bytes);
  return mp_linear_xent(context, &d, &t, at(space), bytes, NULL);
}
static mp_status_t call_dropout(size_t x, size_t unused, size_t y) {
  const mp_dropout_desc_t d = mp_dropout_desc_default(kElems, 0.5f, MP_FP32);
  (void)unused;
  return mp_dropout(context, &d, NULL, at(x), at(y), &stats, NULL);
}
static mp_status_t call_cast(size_t src, size_t unused, size_t dst) {
  (void)unused;
  return mp_cast(context, at(src), MP_FP32, at(dst), MP_FP32, kElems, NULL);
}
static mp_status_t call_memcpy(size_t src, size_t unused, size_t dst) {
  (void)unused;
  return mp_memcpy(context, at(dst), at(src), kBytes, NULL);
}

/** Inputs that may equal the output. */
enum { kNeither = 0, kFirstMay = 1, kSecondMay = 2, kHasNoSecond = 4 };

static const struct {
  const char *function, *out;
  call_at call;
  int allowed;
  size_t second_bytes; /**< extent of the second input */
} kCalls[] = {
    {"mp_gemm", "D", call_gemm, kNeither, kBytes},
    {"mp_gemm", "D", call_gemm_c, kSecondMay, kBytes},
    {"mp_gemm", "D", call_gemm_aux, kNeither, kBytes},
    {"mp_gemm", "D", call_gemm_backward, kNeither, 4 * kSide},
    {"mp_gemm", "dbias", call_gemm_dbias, kNeither, kBytes},
    {"mp_gemm_batched", "D", call_batched, kNeither, 0},
    {"mp_gemm_grouped", "items[0]", call_grouped, kNeither, kBytes},
    {"mp_gemm_ragged", "D", call_ragged, kNeither, kBytes},
    {"mp_conv2d_fprop", "y", call_fprop, kNeither, kBytes},
    {"mp_conv2d_dgrad", "dx", call_dgrad, kNeither, kBytes},
    {"mp_conv2d_wgrad", "dfilter", call_wgrad, kNeither, kBytes},
    {"mp_pool2d_forward", "y", call_pool, kHasNoSecond, 0},
    {"mp_pool2d_forward", "index", call_pool_index, kNeither, kBytes},
    {"mp_pool2d_backward", "dx", call_pool_backward, kNeither, kBytes},
    {"mp_pool2d_backward", "dx", call_pool_indexed, kNeither, kBytes / 4},
    {"mp_nchw_to_nhwc", "dst", call_transpose, kHasNoSecond, 0},
    {"mp_batchnorm_forward_inference", "tensors->y", call_batchnorm, kFirstMay, 4 * kSide},
    {"mp_norm_forward", "tensors->y", call_norm, kFirstMay, kBytes},
    {"mp_norm_backward", "tensors->dx", call_norm_backward, kSecondMay, kBytes},
    {"mp_softmax_xent", "dx", call_xent, kFirstMay, 4 * kSide},
    {"mp_pointwise", "y", call_pointwise, kFirstMay | kSecondMay, kBytes},
    {"mp_sum_rows", "sum", call_sum_rows, kHasNoSecond, 0},
    {"mp_strided_copy", "y", call_strided_copy, kHasNoSecond, 0},
    {"mp_glu_backward", "dx", call_glu_backward, kFirstMay, kBytes / 2},
    {"mp_rope", "y", call_rope, kFirstMay, 4 * kSide / 2},
    {"mp_rope", "y", call_rope_positions, kFirstMay, 4 * kSide},
    {"mp_softmax_forward", "y", call_softmax, kFirstMay, kBytes},
    {"mp_softmax_forward", "y", call_softmax_lengths, kFirstMay, 4 * kSide},
    {"mp_softmax_backward", "dx", call_softmax_backward, kFirstMay | kSecondMay, kBytes},
    {"mp_softmax_backward", "dx", call_softmax_backward_lengths, kFirstMay, 4 * kSide},
    {"mp_embedding_forward", "out", call_embedding, kNeither, 4 * kSide},
    {"mp_dropout", "y", call_dropout, kFirstMay | kHasNoSecond, 0},
    {"mp_cast", "dst", call_cast, kFirstMay | kHasNoSecond, 0},
    {"mp_memcpy", "dst", call_memcpy, kFirstMay | kHasNoSecond, 0},
};

/** Calls with one input at another offset. */
static mp_status_t call_with(size_t i, int is_second, size_t place) {
  reset();
  return kCalls[i].call(is_second ? kFirst : place, is_second ? place : kSecond, kOut);
}

static void check_call(size_t i, int is_second) {
  char label[80];
  const int may_be_same = kCalls[i].allowed & (is_second ? kSecondMay : kFirstMay);
  const size_t bytes = is_second ? kCalls[i].second_bytes : kBytes;
  const size_t out_bytes = kCalls[i].call == call_gemm_dbias   ? 4 * kSide
                           : kCalls[i].call == call_pool_index ? kBytes / 4
                                                               : kBytes;
  snprintf(label, sizeof label, "the output is the %s input", is_second ? "second" : "first");
  const mp_status_t same = call_with(i, is_second, kOut);
  if (may_be_same)
    check_success(label, same);
  else
    check_failure(label, kCalls[i].function, same, MP_ERROR_INVALID_ARGUMENT, kCalls[i].out);
  if (kCalls[i].call == call_batched) return; /* arrays of one pointer */
  snprintf(label, sizeof label, "the output ends in the %s input", is_second ? "second" : "first");
  check_failure(label, kCalls[i].function, call_with(i, is_second, kOut + out_bytes - 4),
                MP_ERROR_INVALID_ARGUMENT, kCalls[i].out);
  snprintf(label, sizeof label, "the %s input ends in the output", is_second ? "second" : "first");
  check_failure(label, kCalls[i].function, call_with(i, is_second, kOut - bytes + 4),
                MP_ERROR_INVALID_ARGUMENT, kCalls[i].out);
}

/** D in columns of a wider matrix that A and B do not use. */
static void test_columns(void) {
  mp_gemm_desc_t d = mp_gemm_desc_default(8, 8, 8, MP_FP32, MP_FP32);
  d.ld_a = d.ld_b = d.ld_c = d.ld_d = 24;
  reset();
  WORKS(mp_gemm(context, &d, at(0), at(32), NULL, at(64), NULL, NULL, 0, NULL));
  d.batch_count = 2, d.stride_a = d.stride_b = d.stride_d = d.stride_c = 8 * 24;
  WORKS(mp_gemm(context, &d, at(0), at(32), NULL, at(64), NULL, NULL, 0, NULL));
  FAILS(mp_gemm, (context, &d, at(0), at(36), NULL, at(64), NULL, NULL, 0, NULL),
        MP_ERROR_INVALID_ARGUMENT, "D");
  d.ld_b = 25; /* rows of B overlap rows of D */
  d.batch_count = 1;
  FAILS(mp_gemm, (context, &d, at(0), at(32), NULL, at(64), NULL, NULL, 0, NULL),
        MP_ERROR_INVALID_ARGUMENT, "D");
}

/** Two items of a group that write the same elements, or adjacent elements. */
static void test_group(void) {
  const mp_gemm_desc_t d = mp_gemm_desc_default(0, 0, 0, MP_FP32, MP_FP32);
  mp_gemm_group_item_t items[3];
  for (int i = 0; i < 3; i++) {
    items[i] = mp_gemm_group_item_default(8, 8, 8);
    items[i].A = at(kFirst), items[i].B = at(kSecond);
    items[i].D = at(kOut + 32 * (size_t)i), items[i].ld_d = 24;
  }
  reset();
  WORKS(mp_gemm_grouped(context, &d, 3, items, NULL, NULL, 0, NULL));
  reset();
  items[2].D = at(kOut + 4);
  FAILS(mp_gemm_grouped, (context, &d, 3, items, NULL, NULL, 0, NULL), MP_ERROR_INVALID_ARGUMENT,
        "items[2]");
}

/** Outputs that must not overlap the statistics. */
static const struct {
  const char *function;
  call_at call;
  int num_written;
  size_t written[5];
} kMeasured[] = {
    {"mp_gemm", call_gemm_aux, 3, {kOut, kFirst, kSpace}},
    {"mp_gemm", call_gemm_dbias, 2, {kOut, kSpace}},
    {"mp_pool2d_backward", call_pool_backward, 1, {kOut}},
    {"mp_batchnorm_backward", call_batchnorm_backward, 4, {kOut, kSmall, kLse, kSpace}},
    {"mp_norm_backward", call_norm_backward, 4, {kOut, kSmall, kLse, kSpace}},
    {"mp_softmax_xent", call_xent, 5, {kOut, kSmall, kLse, kLoss, kCorrect}},
    {"mp_loss", call_loss, 4, {kOut, kFar, kLoss, kSpace}},
    {"mp_embedding_backward", call_embedding_backward, 2, {kOut, kSpace}},
    {"mp_attention_backward", call_attention_backward, 4, {kOut, kFar, kFourth, kSpace}},
    {"mp_linear_xent", call_linear_xent, 4, {kOut, kFar, kSmall + 256, kSpace}},
    {"mp_pointwise", call_pointwise, 1, {kOut}},
    {"mp_sum_rows", call_sum_rows, 1, {kOut}},
    {"mp_strided_copy", call_strided_copy, 1, {kOut}},
    {"mp_glu_backward", call_glu_backward, 1, {kOut}},
    {"mp_rope", call_rope, 1, {kOut}},
    {"mp_softmax_backward", call_softmax_backward, 1, {kOut}},
    {"mp_dropout", call_dropout, 1, {kOut}},
};

static void check_stats(size_t i, void *found_inf, void *amax, const char *culprit) {
  reset();
  stats.found_inf = found_inf, stats.amax = amax;
  const mp_status_t got = kMeasured[i].call(kFirst, kSecond, kOut);
  if (culprit == NULL)
    check_success("statistics outside the tensors", got);
  else
    check_failure("statistics overlap", kMeasured[i].function, got, MP_ERROR_INVALID_ARGUMENT,
                  culprit);
}

static void test_stats(void) {
  for (size_t i = 0; i < sizeof kMeasured / sizeof *kMeasured; i++) {
    check_stats(i, at(kApart), at(kApart + 4), NULL);
    check_stats(i, at(kApart), at(kApart), "stats");
    for (int j = 0; j < kMeasured[i].num_written; j++) {
      void *const written = at(kMeasured[i].written[j]);
      check_stats(i, written, at(kApart), "found_inf");
      check_stats(i, at(kApart), written, "amax");
    }
  }
  memset(&stats, 0, sizeof stats);
}

/** Tensors that the workspace must not overlap. */
static const struct {
  const char *function;
  call_at call;
  size_t tensors[7]; /**< kFirst and others, then 0 */
} kWithWorkspace[] = {
    {"mp_gemm", call_gemm, {kFirst, kSecond, kOut}},
    {"mp_gemm", call_gemm_c, {kFirst, kSecond, kOut}},
    {"mp_gemm", call_gemm_aux, {kFirst, kSecond, kOut, kThird}},
    {"mp_gemm", call_gemm_backward, {kFirst, kSecond, kOut, kThird}},
    {"mp_gemm", call_gemm_dbias, {kFirst, kSecond, kOut, kFar}},
    {"mp_gemm_batched", call_batched, {kFirst, kSecond, kOut}},
    {"mp_gemm_grouped", call_grouped, {kFirst, kSecond, kOut}},
    {"mp_gemm_ragged", call_ragged, {kFirst, kSecond, kOut, kSmall}},
    {"mp_column_sum", call_column_sum, {kFirst, kOut}},
    {"mp_conv2d_fprop", call_fprop, {kFirst, kSecond, kOut}},
    {"mp_conv2d_dgrad", call_dgrad, {kFirst, kSecond, kOut}},
    {"mp_conv2d_wgrad", call_wgrad, {kFirst, kSecond, kOut}},
    {"mp_batchnorm_forward_training",
     call_batchnorm_training,
     {kFirst, kSecond, kOut, kSmall, kFar}},
    {"mp_batchnorm_backward", call_batchnorm_backward, {kFirst, kSecond, kOut, kSmall}},
    {"mp_norm_backward", call_norm_backward, {kFirst, kSecond, kOut, kSmall}},
    {"mp_loss", call_loss, {kFirst, kSecond, kOut, kFar}},
    {"mp_embedding_backward", call_embedding_backward, {kFirst, kSecond, kOut}},
    {"mp_attention_backward",
     call_attention_backward,
     {kFirst, kSecond, kOut, kFar, kFourth, kSmall}},
    {"mp_linear_xent", call_linear_xent, {kFirst, kSecond, kOut, kFar, kSmall, kSmall + 256}},
};

static void test_workspace(void) {
  space_bytes = 256;
  for (size_t i = 0; i < sizeof kWithWorkspace / sizeof *kWithWorkspace; i++) {
    reset();
    if (kWithWorkspace[i].call != call_batched) /* its arrays contain no pointers */
      check_success("a workspace outside of the tensors",
                    kWithWorkspace[i].call(kFirst, kSecond, kOut));
    for (int j = 0; j == 0 || kWithWorkspace[i].tensors[j] != 0; j++) {
      space = kWithWorkspace[i].tensors[j];
      check_failure("the workspace overlaps a tensor", kWithWorkspace[i].function,
                    kWithWorkspace[i].call(kFirst, kSecond, kOut), MP_ERROR_INVALID_ARGUMENT,
                    "workspace");
    }
    space = kSpace;
  }
}

void test_overlap(void) {
  test_workspace();
  test_stats();
  reset();
  check_failure("both saved vectors are the same", "mp_batchnorm_forward_training",
                call_batchnorm_training(kFirst, kSmall, kOut), MP_ERROR_INVALID_ARGUMENT,
                "saved_inv_std");
  for (size_t i = 0; i < sizeof kCalls / sizeof *kCalls; i++) {
    check_call(i, 0);
    if ((kCalls[i].allowed & kHasNoSecond) == 0) check_call(i, 1);
  }
  reset();
  test_columns();
  test_group();
}
