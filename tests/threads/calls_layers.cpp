// Layers, casts and reductions; only the recurrent layer selects between kernels.
#include "calls.h"

namespace mptest {

namespace {

using mptools::check;
using mptools::kStream;

Bytes cast(mp_context_t context) {
  constexpr int64_t kCount = 5000;
  Operands operands(context);
  const void *const values = operands.input(MP_FP32, kCount);
  for (const mp_dtype_t dtype : {MP_FP16, MP_BF16})
    check(
        mp_cast(context, values, MP_FP32, operands.output(dtype, kCount), dtype, kCount, kStream));
  return operands.bytes();
}

Bytes pool(mp_context_t context) {
  Operands operands(context);
  const mp_pool2d_desc_t desc = mp_pool2d_desc_default(MP_POOL_MAX, 2, 8, 6, 16, 2, 2, MP_FP16);
  const int64_t x = 2 * 8 * 6 * 16, y = x / 4;
  const void *const values = operands.input(MP_FP16, x);
  check(mp_pool2d_forward(context, &desc, values, operands.output(MP_FP16, y), kStream));
  check(mp_pool2d_backward(context, &desc, values, operands.input(MP_FP16, y),
                           operands.output(MP_FP16, x), nullptr, kStream));
  return operands.bytes();
}

Bytes normalise(mp_context_t context) {
  constexpr int64_t kRows = 70;
  constexpr int32_t kChannels = 24;
  Operands operands(context);
  const mp_batchnorm_desc_t desc = mp_batchnorm_desc_default(kRows, kChannels, MP_FP16);
  size_t bytes = 0;
  check(mp_batchnorm_workspace_size(context, &desc, &bytes));
  const auto floats = [&] { return static_cast<float *>(operands.output(MP_FP32, kChannels)); };
  mp_batchnorm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = operands.input(MP_FP16, kRows * kChannels);
  t.gamma = static_cast<const float *>(operands.input(MP_FP32, kChannels));
  t.beta = static_cast<const float *>(operands.input(MP_FP32, kChannels));
  t.running_mean = floats(), t.running_var = floats();
  t.saved_mean = floats(), t.saved_inv_std = floats();
  t.y = operands.output(MP_FP16, kRows * kChannels);
  t.dy = operands.input(MP_FP16, kRows * kChannels);
  t.dx = operands.output(MP_FP16, kRows * kChannels);
  t.dgamma = floats(), t.dbeta = floats();
  void *const workspace = operands.scratch(bytes);
  check(mp_batchnorm_forward_training(context, &desc, &t, workspace, bytes, kStream));
  check(mp_batchnorm_backward(context, &desc, &t, workspace, bytes, kStream));
  return operands.bytes();
}

Bytes norm(mp_context_t context) {
  constexpr int64_t kRows = 70, kColumns = 300, kCount = kRows * kColumns;
  Operands operands(context);
  mp_norm_desc_t desc = mp_norm_desc_default(MP_NORM_RMS, kRows, kColumns, MP_FP16);
  desc.dropout = 0.25f;
  size_t bytes = 0;
  check(mp_norm_backward_workspace_size(context, &desc, &bytes));
  mp_norm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = operands.input(MP_FP16, kCount);
  t.gamma = static_cast<const float *>(operands.input(MP_FP32, kColumns));
  t.y = operands.output(MP_FP16, kCount);
  t.rstd = static_cast<float *>(operands.output(MP_FP32, kRows));
  t.dy = operands.input(MP_FP16, kCount);
  t.dx = operands.output(MP_FP16, kCount);
  t.dgamma = static_cast<float *>(operands.output(MP_FP32, kColumns));
  void *const workspace = operands.scratch(bytes);
  check(mp_norm_forward(context, &desc, &t, kStream));
  check(mp_norm_backward(context, &desc, &t, workspace, bytes, kStream));
  return operands.bytes();
}

Bytes pointwise(mp_context_t context) {
  constexpr int64_t kRows = 30, kColumns = 50;
  Operands operands(context);
  mp_pointwise_desc_t desc = mp_pointwise_desc_default(MP_POINTWISE_ADD, kRows, kColumns, MP_BF16);
  desc.activation = MP_ACT_GELU;
  check(mp_pointwise(context, &desc, operands.input(MP_BF16, kRows * kColumns),
                     operands.input(MP_BF16, kRows * kColumns),
                     operands.output(MP_BF16, kRows * kColumns), nullptr, kStream));
  return operands.bytes();
}

Bytes column_sum(mp_context_t context) {
  constexpr int64_t kRows = 400, kColumns = 21;
  Operands operands(context);
  const mp_column_sum_desc_t desc = mp_column_sum_desc_default(kRows, kColumns, MP_BF16);
  size_t bytes = 0;
  check(mp_column_sum_workspace_size(context, &desc, &bytes));
  check(mp_column_sum(context, &desc, operands.input(MP_BF16, kRows * kColumns),
                      operands.output(MP_FP32, kColumns), nullptr, operands.scratch(bytes), bytes,
                      kStream));
  return operands.bytes();
}

Bytes element_loss(mp_context_t context) {
  constexpr int64_t kCount = 5000;
  Operands operands(context);
  const mp_loss_desc_t desc = mp_loss_desc_default(MP_LOSS_BCE_WITH_LOGITS, kCount, MP_FP16);
  size_t bytes = 0;
  check(mp_loss_workspace_size(context, &desc, &bytes));
  mp_loss_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.prediction = operands.input(MP_FP16, kCount);
  t.target = operands.input(MP_FP16, kCount);
  t.loss = static_cast<float *>(operands.output(MP_FP32, 1));
  t.dprediction = operands.output(MP_FP16, kCount);
  check(mp_loss(context, &desc, &t, operands.scratch(bytes), bytes, kStream));
  return operands.bytes();
}

Bytes softmax_xent(mp_context_t context) {
  constexpr int64_t kRows = 40, kClasses = 21;
  Operands operands(context);
  const mp_xent_desc_t desc = mp_xent_desc_default(kRows, kClasses, MP_FP16);
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = operands.input(MP_FP16, kRows * kClasses);
  t.labels = operands.indices(kRows, kClasses);
  t.row_loss = static_cast<float *>(operands.output(MP_FP32, kRows));
  t.loss = static_cast<float *>(operands.output(MP_FP32, 1));
  t.correct = operands.counter();
  t.dx = operands.output(MP_FP16, kRows * kClasses);
  check(mp_softmax_xent(context, &desc, &t, kStream));
  t.class_weights = static_cast<const float *>(operands.input(MP_FP32, kClasses));
  t.row_loss = static_cast<float *>(operands.output(MP_FP32, kRows));
  t.dx = operands.output(MP_FP16, kRows * kClasses);
  check(mp_softmax_xent(context, &desc, &t, kStream));
  return operands.bytes();
}

Bytes linear_xent(mp_context_t context) {
  constexpr int64_t kRows = 40, kWidth = 24, kClasses = 21;
  Operands operands(context);
  const mp_linear_xent_desc_t desc = mp_linear_xent_desc_default(kRows, kWidth, kClasses, MP_FP16);
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = operands.input(MP_FP16, kRows * kWidth);
  t.w = operands.input(MP_FP16, kClasses * kWidth);
  t.labels = operands.indices(kRows, kClasses);
  t.row_loss = static_cast<float *>(operands.output(MP_FP32, kRows));
  t.dx = operands.output(MP_FP16, kRows * kWidth);
  t.dw = static_cast<float *>(operands.output(MP_FP32, kClasses * kWidth));
  t.dbias = static_cast<float *>(operands.output(MP_FP32, kClasses));
  size_t bytes = 0;
  check(mp_linear_xent_workspace_size(context, &desc, &bytes));
  check(mp_linear_xent(context, &desc, &t, operands.scratch(bytes), bytes, kStream));
  return operands.bytes();
}

Bytes embedding(mp_context_t context) {
  constexpr int64_t kRows = 60, kWidth = 16;
  constexpr int32_t kWords = 19;
  Operands operands(context);
  const mp_embedding_desc_t desc = mp_embedding_desc_default(kRows, kWords, kWidth, MP_FP16);
  const int32_t *const indices = operands.indices(kRows, kWords);
  size_t bytes = 0;
  check(mp_embedding_workspace_size(context, &desc, &bytes));
  check(mp_embedding_forward(context, &desc, operands.input(MP_FP16, kWords * kWidth), indices,
                             operands.output(MP_FP16, kRows * kWidth), kStream));
  check(mp_embedding_backward(context, &desc, indices, operands.input(MP_FP16, kRows * kWidth),
                              operands.output(desc.dtype_dtable, kWords * kWidth), nullptr,
                              operands.scratch(bytes), bytes, kStream));
  return operands.bytes();
}

Bytes dropout(mp_context_t context) {
  constexpr int64_t kCount = 900;
  Operands operands(context);
  mp_dropout_desc_t desc = mp_dropout_desc_default(kCount, 0.3f, MP_FP16);
  desc.seed = 11;
  check(mp_dropout(context, &desc, nullptr, operands.input(MP_FP16, kCount),
                   operands.output(MP_FP16, kCount), nullptr, kStream));
  return operands.bytes();
}

Bytes gated_unit(mp_context_t context) {
  constexpr int64_t kRows = 30, kColumns = 50;
  Operands operands(context);
  const mp_glu_desc_t desc = mp_glu_desc_default(MP_ACT_SILU, kRows, kColumns, MP_BF16);
  const void *const x = operands.input(MP_BF16, kRows * 2 * kColumns);
  check(mp_glu_forward(context, &desc, x, operands.output(MP_BF16, kRows * kColumns), kStream));
  void *const dx = operands.output(MP_BF16, kRows * 2 * kColumns);
  check(mp_glu_backward(context, &desc, x, operands.input(MP_BF16, kRows * kColumns), dx, nullptr,
                        kStream));
  const mp_sum_rows_desc_t sum = mp_sum_rows_desc_default(kRows, 3, 2 * kColumns, MP_BF16);
  check(
      mp_sum_rows(context, &sum, dx, operands.output(MP_FP32, 3 * 2 * kColumns), nullptr, kStream));
  return operands.bytes();
}

Bytes strided_copy(mp_context_t context) {
  constexpr int64_t kRows = 30, kColumns = 50;
  Operands operands(context);
  mp_strided_copy_desc_t desc = mp_strided_copy_desc_default(MP_BF16);
  desc.rank = 2;
  desc.extent[0] = desc.y_stride[1] = kRows;
  desc.extent[1] = desc.x_stride[0] = kColumns;
  desc.x_stride[1] = desc.y_stride[0] = 1;
  check(mp_strided_copy(context, &desc, operands.input(MP_BF16, kRows * kColumns),
                        operands.output(MP_BF16, kRows * kColumns), nullptr, kStream));
  return operands.bytes();
}

Bytes rope(mp_context_t context) {
  constexpr int32_t kTokens = 30, kHeads = 3, kWidth = 16;
  Operands operands(context);
  const mp_rope_desc_t desc = mp_rope_desc_default(kTokens, kHeads, kWidth, MP_FP16);
  check(mp_rope(context, &desc, nullptr, nullptr,
                operands.input(MP_FP16, kTokens * kHeads * kWidth),
                operands.output(MP_FP16, kTokens * kHeads * kWidth), nullptr, kStream));
  return operands.bytes();
}

Bytes softmax(mp_context_t context) {
  constexpr int64_t kRows = 20, kColumns = 2000;
  Operands operands(context);
  mp_softmax_desc_t desc = mp_softmax_desc_default(kRows, kColumns, MP_FP16);
  desc.mask = MP_SOFTMAX_MASK_CAUSAL;
  void *const y = operands.output(MP_FP16, kRows * kColumns);
  check(mp_softmax_forward(context, &desc, operands.input(MP_FP16, kRows * kColumns), nullptr, y,
                           kStream));
  check(mp_softmax_backward(context, &desc, y, operands.input(MP_FP16, kRows * kColumns), nullptr,
                            operands.output(MP_FP16, kRows * kColumns), nullptr, kStream));
  return operands.bytes();
}

Bytes attention(mp_context_t context) {
  constexpr int64_t kRows = 40, kWidth = 2 * 8;
  Operands operands(context);
  mp_attention_desc_t desc = mp_attention_desc_default(1, 2, kRows, kRows, 8, MP_FP16);
  desc.flags = MP_ATTENTION_FLAG_CAUSAL;
  desc.dropout = 0.25f;
  size_t bytes = 0;
  check(mp_attention_backward_workspace_size(context, &desc, &bytes));
  mp_attention_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.q = operands.input(MP_FP16, kRows * kWidth);
  t.k = operands.input(MP_FP16, kRows * kWidth);
  t.v = operands.input(MP_FP16, kRows * kWidth);
  t.d_o = operands.input(MP_FP16, kRows * kWidth);
  t.o = operands.output(MP_FP16, kRows * kWidth);
  t.lse = static_cast<float *>(operands.output(MP_FP32, 2 * kRows));
  t.dq = operands.output(MP_FP16, kRows * kWidth);
  t.dk = operands.output(MP_FP16, kRows * kWidth);
  t.dv = operands.output(MP_FP16, kRows * kWidth);
  check(mp_attention_forward(context, &desc, &t, kStream));
  check(mp_attention_backward(context, &desc, &t, operands.scratch(bytes), bytes, kStream));
  return operands.bytes();
}

Bytes lstm(mp_context_t context) {
  constexpr int32_t kBatch = 4, kSteps = 3, kIn = 16, kHidden = 24;
  Operands operands(context);
  const mp_rnn_desc_t desc =
      mp_rnn_desc_default(MP_RNN_LSTM, kBatch, kSteps, kIn, kHidden, MP_FP16);
  mp_rnn_sizes_t sizes;
  MP_INIT_STRUCT(&sizes);
  check(mp_rnn_get_sizes(context, &desc, &sizes));
  mp_rnn_weights_t weights;
  MP_INIT_STRUCT(&weights);
  weights.w_ih = operands.input(MP_FP16, 4 * kHidden * kIn);
  weights.w_hh = operands.input(MP_FP16, 4 * kHidden * kHidden);
  weights.b_ih = static_cast<const float *>(operands.input(MP_FP32, 4 * kHidden));
  weights.b_hh = static_cast<const float *>(operands.input(MP_FP32, 4 * kHidden));
  mp_rnn_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.num_weights = sizes.num_weights;
  t.weights = &weights;
  t.x = operands.input(MP_FP16, kSteps * kBatch * kIn);
  t.y = operands.output(MP_FP16, kSteps * kBatch * kHidden);
  t.cn = static_cast<float *>(operands.output(MP_FP32, kBatch * kHidden));
  check(mp_rnn_forward_inference(context, &desc, &t, operands.scratch(sizes.workspace_bytes),
                                 sizes.workspace_bytes, kStream));
  return operands.bytes();
}

}  // namespace

void add_layers(std::vector<Call> &calls) {
  calls.push_back({"cast", cast});
  calls.push_back({"pool2d", pool});
  calls.push_back({"batchnorm", normalise});
  calls.push_back({"norm", norm});
  calls.push_back({"pointwise", pointwise});
  calls.push_back({"column_sum", column_sum});
  calls.push_back({"element_loss", element_loss});
  calls.push_back({"softmax_xent", softmax_xent});
  calls.push_back({"linear_xent", linear_xent});
  calls.push_back({"embedding", embedding});
  calls.push_back({"dropout", dropout});
  calls.push_back({"glu and sum_rows", gated_unit});
  calls.push_back({"strided_copy", strided_copy});
  calls.push_back({"rope", rope});
  calls.push_back({"softmax", softmax});
  calls.push_back({"attention", attention});
  calls.push_back({"rnn", lstm});
}

}  // namespace mptest
