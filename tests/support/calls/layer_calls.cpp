// Layers, attention, casts and recurrent layers.
#include <iterator>

#include "catalog.h"
#include "tests/support/numeric.h"

namespace mptest {

namespace {

void cast(Caller &c) {
  constexpr int64_t kCount = 5000;
  const void *const src = c.input(MP_FP32, kCount);
  for (const mp_dtype_t dtype : kHalfTypes) {
    void *const dst = c.output(dtype, kCount);
    CALL(c, mp_cast, c.context(), src, MP_FP32, dst, dtype, kCount, nullptr);
  }
}

void pool(Caller &c) {
  const mp_pool2d_desc_t desc = mp_pool2d_desc_default(MP_POOL_MAX, 2, 8, 6, 16, 2, 2, MP_FP16);
  int32_t p = 0, q = 0;
  CALL(c, mp_pool2d_get_output_size, &desc, &p, &q);
  const int64_t count = 2 * 8 * 6 * 16, pooled = int64_t{2} * p * q * 16;
  const void *const x = c.input(MP_FP16, count), *const dy = c.input(MP_FP16, pooled);
  void *const y = c.output(MP_FP16, pooled), *const dx = c.output(MP_FP16, count);
  const mp_grad_stats_t stats = c.stats();
  uint8_t *const index =
      c.upload(Bytes(static_cast<size_t>(pooled)).data(), static_cast<size_t>(pooled));
  CALL(c, mp_pool2d_forward, c.context(), &desc, x, y, index, nullptr);
  CALL(c, mp_pool2d_backward, c.context(), &desc, x, nullptr, dy, dx, &stats, nullptr);
  CALL(c, mp_pool2d_backward, c.context(), &desc, x, index, dy, dx, &stats, nullptr);
}

void change_layout(Caller &c) {
  const void *const src = c.input(MP_FP16, 2 * 8 * 6 * 16);
  void *const nchw = c.output(MP_FP16, 2 * 8 * 6 * 16), *const dst =
                                                            c.output(MP_FP16, 2 * 8 * 6 * 16);
  CALL(c, mp_nhwc_to_nchw, c.context(), 2, 16, 8, 6, src, MP_FP16, nchw, MP_FP16, nullptr);
  CALL(c, mp_nchw_to_nhwc, c.context(), 2, 16, 8, 6, nchw, MP_FP16, dst, MP_FP16, nullptr);
}

void batchnorm(Caller &c) {
  constexpr int64_t kRows = 70, kCount = kRows * 24;
  constexpr int32_t kChannels = 24;
  const mp_batchnorm_desc_t desc = mp_batchnorm_desc_default(kRows, kChannels, MP_FP16);
  auto tensors = initialized<mp_batchnorm_tensors_t>();
  tensors.x = c.input(MP_FP16, kCount);
  tensors.gamma = c.floats(kChannels), tensors.beta = c.floats(kChannels);
  tensors.running_mean = c.sums(kChannels), tensors.running_var = c.sums(kChannels);
  tensors.saved_mean = c.sums(kChannels), tensors.saved_inv_std = c.sums(kChannels);
  tensors.y = c.output(MP_FP16, kCount);
  tensors.dy = c.input(MP_FP16, kCount);
  tensors.dx = c.output(MP_FP16, kCount);
  tensors.dgamma = c.sums(kChannels), tensors.dbeta = c.sums(kChannels);
  tensors.stats = c.stats();
  const Workspace w = WORKSPACE(c, mp_batchnorm_workspace_size, c.context(), &desc);
  CALL(c, mp_batchnorm_forward_training, c.context(), &desc, &tensors, w.data, w.bytes, nullptr);
  CALL(c, mp_batchnorm_backward, c.context(), &desc, &tensors, w.data, w.bytes, nullptr);
  tensors.y = c.output(MP_FP16, kCount);
  CALL(c, mp_batchnorm_forward_inference, c.context(), &desc, &tensors, nullptr);
}

void norm(Caller &c, mp_norm_kind_t kind) {
  constexpr int64_t kRows = 70, kColumns = 300, kCount = kRows * kColumns;
  const bool is_layer = kind == MP_NORM_LAYER;
  mp_norm_desc_t desc = mp_norm_desc_default(kind, kRows, kColumns, MP_FP16);
  desc.dropout = 0.25f;
  auto tensors = initialized<mp_norm_tensors_t>();
  tensors.x = c.input(MP_FP16, kCount);
  tensors.gamma = c.floats(kColumns);
  tensors.dropout_offset = c.dropout_offset();
  tensors.y = c.output(MP_FP16, kCount);
  tensors.rstd = c.sums(kRows);
  tensors.dy = c.input(MP_FP16, kCount);
  tensors.dx = c.output(MP_FP16, kCount);
  tensors.dgamma = c.sums(kColumns);
  tensors.stats = c.stats();
  if (is_layer) {
    tensors.residual = c.input(MP_FP16, kCount), tensors.sum = c.output(MP_FP16, kCount);
    tensors.beta = c.floats(kColumns), tensors.mean = c.sums(kRows);
    tensors.dsum = c.input(MP_FP16, kCount), tensors.dresidual = c.output(MP_FP16, kCount);
    tensors.dbeta = c.sums(kColumns);
  }
  const Workspace w = WORKSPACE(c, mp_norm_backward_workspace_size, c.context(), &desc);
  CALL(c, mp_norm_forward, c.context(), &desc, &tensors, nullptr);
  CALL(c, mp_norm_backward, c.context(), &desc, &tensors, w.data, w.bytes, nullptr);
}

void pointwise(Caller &c) {
  constexpr int64_t kRows = 30, kColumns = 50, kCount = kRows * kColumns;
  mp_pointwise_desc_t desc = mp_pointwise_desc_default(MP_POINTWISE_ADD, kRows, kColumns, MP_BF16);
  desc.activation = MP_ACT_GELU;
  const void *const a = c.input(MP_BF16, kCount), *const b = c.input(MP_BF16, kCount);
  void *const y = c.output(MP_BF16, kCount);
  const mp_grad_stats_t stats = c.stats();
  CALL(c, mp_pointwise, c.context(), &desc, a, b, y, &stats, nullptr);
}

void sum(Caller &c) {
  constexpr int64_t kRows = 420, kPeriod = 3, kColumns = 21;
  const mp_column_sum_desc_t of_columns = mp_column_sum_desc_default(kRows, kColumns, MP_BF16);
  const mp_sum_rows_desc_t of_rows = mp_sum_rows_desc_default(kRows, kPeriod, kColumns, MP_BF16);
  const void *const x = c.input(MP_BF16, kRows * kColumns);
  float *const sums = c.sums(kColumns), *const of_period = c.sums(kPeriod * kColumns);
  const mp_grad_stats_t stats = c.stats();
  mp_epilogue_t epilogue = mp_epilogue_default();
  epilogue.scale = c.number(0.5f);
  epilogue.stats = c.stats();
  const Workspace w = WORKSPACE(c, mp_column_sum_workspace_size, c.context(), &of_columns);
  CALL(c, mp_column_sum, c.context(), &of_columns, x, sums, &epilogue, w.data, w.bytes, nullptr);
  CALL(c, mp_sum_rows, c.context(), &of_rows, x, of_period, &stats, nullptr);
}

void element_loss(Caller &c) {
  constexpr int64_t kCount = 5000;
  const mp_loss_desc_t desc = mp_loss_desc_default(MP_LOSS_BCE_WITH_LOGITS, kCount, MP_FP16);
  auto tensors = initialized<mp_loss_tensors_t>();
  tensors.prediction = c.input(MP_FP16, kCount), tensors.target = c.input(MP_FP16, kCount);
  tensors.weights = c.floats(kCount), tensors.loss_scale = c.number(8.0f);
  tensors.element_loss = c.sums(kCount), tensors.loss = c.sums(1);
  tensors.dprediction = c.output(MP_FP16, kCount);
  tensors.stats = c.stats();
  const Workspace w = WORKSPACE(c, mp_loss_workspace_size, c.context(), &desc);
  CALL(c, mp_loss, c.context(), &desc, &tensors, w.data, w.bytes, nullptr);
}

void set_losses(Caller &c, mp_xent_tensors_t &tensors, int64_t rows) {
  tensors.loss_scale = c.number(8.0f), tensors.count = c.number(3.0f);
  tensors.row_loss = c.sums(rows), tensors.lse = c.sums(rows), tensors.loss = c.sums(1);
  tensors.correct = c.counter();
  tensors.stats = c.stats();
}

/// A call that fails after its first launch has counted some rows.
void clear_counter(const Caller &c, const mp_xent_tensors_t &tensors) {
  (void)mp_memset(c.context(), tensors.correct, 0, sizeof *tensors.correct, nullptr);
}

void softmax_xent(Caller &c) {
  constexpr int64_t kRows = 40, kClasses = 21;
  const mp_xent_desc_t desc = mp_xent_desc_default(kRows, kClasses, MP_FP16);
  int32_t *const labels = c.indices(kRows, kClasses);
  auto tensors = initialized<mp_xent_tensors_t>();
  tensors.x = c.input(MP_FP16, kRows * kClasses);
  tensors.labels = labels;
  for (const bool has_weights : {false, true}) {
    if (has_weights) tensors.class_weights = c.floats(kClasses);
    tensors.dx = c.output(MP_FP16, kRows * kClasses);
    set_losses(c, tensors, kRows);
    c.call_again([&] { clear_counter(c, tensors); }, "mp_softmax_xent", mp_softmax_xent,
                 c.context(), &desc, &tensors, nullptr);
  }
  float *const count = c.sums(1);
  CALL(c, mp_xent_count, c.context(), kRows, MP_INT32, labels, -100, count, nullptr);
  constexpr int64_t kLabels[] = {3, -100, 5};
  const int64_t *const wide = c.upload(kLabels, std::size(kLabels));
  CALL(c, mp_xent_count, c.context(), int64_t{std::size(kLabels)}, MP_INT64, wide, -100, count,
       nullptr);
}

void linear_xent(Caller &c) {
  constexpr int64_t kRows = 40, kWidth = 24, kClasses = 21;
  const mp_linear_xent_desc_t desc = mp_linear_xent_desc_default(kRows, kWidth, kClasses, MP_FP16);
  auto tensors = initialized<mp_xent_tensors_t>();
  tensors.x = c.input(MP_FP16, kRows * kWidth), tensors.w = c.input(MP_FP16, kClasses * kWidth);
  tensors.bias = c.input(MP_FP16, kClasses);
  tensors.labels = c.indices(kRows, kClasses);
  tensors.class_weights = c.floats(kClasses);
  set_losses(c, tensors, kRows);
  tensors.dx = c.output(MP_FP16, kRows * kWidth);
  tensors.dw = c.sums(kClasses * kWidth), tensors.dbias = c.sums(kClasses);
  const Workspace w = WORKSPACE(c, mp_linear_xent_workspace_size, c.context(), &desc);
  c.call_again([&] { clear_counter(c, tensors); }, "mp_linear_xent", mp_linear_xent, c.context(),
               &desc, &tensors, w.data, w.bytes, nullptr);
}

void embedding(Caller &c) {
  constexpr int64_t kRows = 60, kWidth = 16;
  constexpr int32_t kWords = 19;
  const mp_embedding_desc_t desc = mp_embedding_desc_default(kRows, kWords, kWidth, MP_FP16);
  int32_t *const indices = c.indices(kRows, kWords);
  const void *const table = c.input(MP_FP16, kWords * kWidth);
  const void *const dout = c.input(MP_FP16, kRows * kWidth);
  void *const out = c.output(MP_FP16, kRows * kWidth);
  void *const dtable = c.output(desc.dtype_dtable, kWords * kWidth);
  const mp_grad_stats_t stats = c.stats();
  const Workspace w = WORKSPACE(c, mp_embedding_workspace_size, c.context(), &desc);
  CALL(c, mp_embedding_forward, c.context(), &desc, table, indices, out, nullptr);
  CALL(c, mp_embedding_backward, c.context(), &desc, indices, dout, dtable, &stats, w.data, w.bytes,
       nullptr);
}

void dropout(Caller &c) {
  constexpr int64_t kCount = 900;
  mp_dropout_desc_t desc = mp_dropout_desc_default(kCount, 0.3f, MP_FP16);
  desc.seed = 11;
  const auto *const offset = c.dropout_offset();
  const void *const x = c.input(MP_FP16, kCount);
  void *const y = c.output(MP_FP16, kCount);
  const mp_grad_stats_t stats = c.stats();
  CALL(c, mp_dropout, c.context(), &desc, offset, x, y, &stats, nullptr);
}

void glu(Caller &c) {
  constexpr int64_t kRows = 30, kColumns = 50, kCount = kRows * kColumns;
  const mp_glu_desc_t desc = mp_glu_desc_default(MP_ACT_SILU, kRows, kColumns, MP_BF16);
  const void *const x = c.input(MP_BF16, 2 * kCount), *const dy = c.input(MP_BF16, kCount);
  void *const y = c.output(MP_BF16, kCount), *const dx = c.output(MP_BF16, 2 * kCount);
  const mp_grad_stats_t stats = c.stats();
  CALL(c, mp_glu_forward, c.context(), &desc, x, y, nullptr);
  CALL(c, mp_glu_backward, c.context(), &desc, x, dy, dx, &stats, nullptr);
}

void strided_copy(Caller &c) {
  constexpr int64_t kRows = 30, kColumns = 50;
  mp_strided_copy_desc_t desc = mp_strided_copy_desc_default(MP_BF16);
  desc.rank = 2;
  desc.extent[0] = desc.y_stride[1] = kRows;
  desc.extent[1] = desc.x_stride[0] = kColumns;
  desc.x_stride[1] = desc.y_stride[0] = 1;
  const void *const x = c.input(MP_BF16, kRows * kColumns);
  void *const y = c.output(MP_BF16, kRows * kColumns);
  const mp_grad_stats_t stats = c.stats();
  CALL(c, mp_strided_copy, c.context(), &desc, x, y, &stats, nullptr);
}

void rope(Caller &c) {
  constexpr int32_t kTokens = 30, kHeads = 3, kWidth = 16;
  const mp_rope_desc_t desc = mp_rope_desc_default(kTokens, kHeads, kWidth, MP_FP16);
  const int32_t *const positions = c.indices(kTokens, 100);
  const float *const inv_freq = c.floats(kWidth / 2);
  const void *const x = c.input(MP_FP16, kTokens * kHeads * kWidth);
  void *const y = c.output(MP_FP16, kTokens * kHeads * kWidth);
  const mp_grad_stats_t stats = c.stats();
  CALL(c, mp_rope, c.context(), &desc, positions, inv_freq, x, y, &stats, nullptr);
}

void softmax(Caller &c, mp_softmax_mask_t kind) {
  constexpr int64_t kRows = 20, kColumns = 2000, kCount = kRows * kColumns;
  mp_softmax_desc_t desc = mp_softmax_desc_default(kRows, kColumns, MP_FP16);
  desc.mask = kind;
  const void *const x = c.input(MP_FP16, kCount), *const dy = c.input(MP_FP16, kCount);
  const void *const mask = kind == MP_SOFTMAX_MASK_ADDITIVE ? c.input(MP_FP16, kCount) : nullptr;
  void *const y = c.output(MP_FP16, kCount), *const dx = c.output(MP_FP16, kCount);
  const mp_grad_stats_t stats = c.stats();
  CALL(c, mp_softmax_forward, c.context(), &desc, x, mask, y, nullptr);
  CALL(c, mp_softmax_backward, c.context(), &desc, y, dy, nullptr, dx, &stats, nullptr);
}

/// Padded: a sequence of 37 queries and 33 keys.  Packed: two sequences of 40 rows, 3 rows unused.
void attention(Caller &c, bool is_packed) {
  constexpr int64_t kRows = 40, kWidth = 2 * 8, kCount = kRows * kWidth;
  constexpr int32_t kLengths[] = {37, 33}, kQueryEnds[] = {21, 37}, kKeyEnds[] = {19, 37};
  mp_attention_desc_t desc =
      mp_attention_desc_default(is_packed ? 2 : 1, 2, kRows, kRows, 8, MP_FP16);
  if (is_packed) desc.q_rows = desc.kv_rows = kRows;
  desc.flags = MP_ATTENTION_FLAG_CAUSAL;
  desc.dropout = 0.25f;
  auto tensors = initialized<mp_attention_tensors_t>();
  tensors.q = c.input(MP_FP16, kCount), tensors.k = c.input(MP_FP16, kCount);
  tensors.v = c.input(MP_FP16, kCount), tensors.d_o = c.input(MP_FP16, kCount);
  tensors.o = c.output(MP_FP16, kCount), tensors.lse = c.sums(2 * kRows);
  tensors.dq = c.output(MP_FP16, kCount), tensors.dk = c.output(MP_FP16, kCount);
  tensors.dv = c.output(MP_FP16, kCount);
  if (is_packed)
    tensors.q_ends = c.upload(kQueryEnds, 2), tensors.kv_ends = c.upload(kKeyEnds, 2);
  else
    tensors.q_lengths = c.upload(kLengths, 1), tensors.kv_lengths = c.upload(kLengths + 1, 1);
  tensors.dropout_offset = c.dropout_offset();
  tensors.sinks = c.floats(2), tensors.dsinks = c.sums(2);
  tensors.stats = c.stats();
  const Workspace w = WORKSPACE(c, mp_attention_backward_workspace_size, c.context(), &desc);
  CALL(c, mp_attention_forward, c.context(), &desc, &tensors, nullptr);
  CALL(c, mp_attention_backward, c.context(), &desc, &tensors, w.data, w.bytes, nullptr);
}

void recurrent(Caller &c, mp_rnn_cell_t cell) {
  constexpr int32_t kBatch = 4, kSteps = 3, kIn = 16, kHidden = 24;
  const int32_t gates = cell == MP_RNN_LSTM ? 4 : 3;
  const mp_rnn_desc_t desc = mp_rnn_desc_default(cell, kBatch, kSteps, kIn, kHidden, MP_FP16);
  auto sizes = initialized<mp_rnn_sizes_t>();
  CALL(c, mp_rnn_get_sizes, c.context(), &desc, &sizes);
  auto weights = initialized<mp_rnn_weights_t>();
  weights.w_ih = c.input(MP_FP16, gates * kHidden * kIn);
  weights.w_hh = c.input(MP_FP16, gates * kHidden * kHidden);
  weights.b_ih = c.floats(gates * kHidden), weights.b_hh = c.floats(gates * kHidden);
  auto grads = initialized<mp_rnn_weight_grads_t>();
  grads.w_ih = c.output(MP_FP16, gates * kHidden * kIn);
  grads.w_hh = c.output(MP_FP16, gates * kHidden * kHidden);
  grads.b_ih = c.sums(gates * kHidden), grads.b_hh = c.sums(gates * kHidden);
  auto tensors = initialized<mp_rnn_tensors_t>();
  tensors.num_weights = sizes.num_weights;
  tensors.weights = &weights, tensors.weight_grads = &grads;
  tensors.x = c.input(MP_FP16, kSteps * kBatch * kIn);
  tensors.y = c.output(MP_FP16, kSteps * kBatch * kHidden);
  tensors.dy = c.input(MP_FP16, kSteps * kBatch * kHidden);
  tensors.dx = c.output(MP_FP16, kSteps * kBatch * kIn);
  constexpr int64_t kState = kBatch * kHidden;
  tensors.lengths = c.indices(kBatch, kSteps + 1);
  tensors.dropout_offset = c.dropout_offset();
  tensors.h0 = c.input(MP_FP16, kState), tensors.hn = c.output(MP_FP16, kState);
  tensors.dhn = c.input(MP_FP16, kState), tensors.dh0 = c.output(MP_FP16, kState);
  if (cell == MP_RNN_LSTM) {
    tensors.c0 = c.floats(kState), tensors.cn = c.sums(kState);
    tensors.dcn = c.floats(kState), tensors.dc0 = c.sums(kState);
  }
  tensors.stats = c.stats();
  tensors.reserve = c.scratch(sizes.reserve_bytes), tensors.reserve_bytes = sizes.reserve_bytes;
  void *const workspace = c.scratch(sizes.workspace_bytes);
  const size_t bytes = sizes.workspace_bytes;
  CALL(c, mp_rnn_forward_inference, c.context(), &desc, &tensors, workspace, bytes, nullptr);
  tensors.y = c.output(MP_FP16, kSteps * kBatch * kHidden), tensors.hn = c.output(MP_FP16, kState);
  if (cell == MP_RNN_LSTM) tensors.cn = c.sums(kState);
  CALL(c, mp_rnn_forward_training, c.context(), &desc, &tensors, workspace, bytes, nullptr);
  // The gradients of the gates overwrite the gates.
  c.call_again(
      [&] {
        (void)mp_rnn_forward_training(c.context(), &desc, &tensors, workspace, bytes, nullptr);
      },
      "mp_rnn_backward_data", mp_rnn_backward_data, c.context(), &desc, &tensors, workspace, bytes,
      nullptr);
  CALL(c, mp_rnn_backward_weights, c.context(), &desc, &tensors, workspace, bytes, nullptr);
}

}  // namespace

Catalog layer_calls() {
  return {{"cast", cast},
          {"pool2d", pool},
          {"layouts", change_layout},
          {"batchnorm", batchnorm},
          {"layer norm", [](Caller &c) { norm(c, MP_NORM_LAYER); }},
          {"RMS norm", [](Caller &c) { norm(c, MP_NORM_RMS); }},
          {"pointwise", pointwise},
          {"sums", sum},
          {"element-wise loss", element_loss},
          {"softmax_xent", softmax_xent},
          {"linear_xent", linear_xent},
          {"embedding", embedding},
          {"dropout", dropout},
          {"glu", glu},
          {"strided_copy", strided_copy},
          {"rope", rope},
          {"softmax, causal", [](Caller &c) { softmax(c, MP_SOFTMAX_MASK_CAUSAL); }},
          {"softmax, additive mask", [](Caller &c) { softmax(c, MP_SOFTMAX_MASK_ADDITIVE); }},
          {"attention", [](Caller &c) { attention(c, false); }},
          {"packed attention", [](Caller &c) { attention(c, true); }},
          {"LSTM", [](Caller &c) { recurrent(c, MP_RNN_LSTM); }},
          {"GRU", [](Caller &c) { recurrent(c, MP_RNN_GRU); }}};
}

}  // namespace mptest
