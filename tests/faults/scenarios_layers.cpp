// Scenarios of layers around GEMMs, and of recurrent layers.
#include <array>

#include "scenarios.h"

namespace mptest::faults {

namespace {

void classify(Run &run) {
  constexpr int64_t kRows = 6, kClasses = 10;
  mp_xent_desc_t desc = mp_xent_desc_default(kRows, kClasses, MP_FP16);
  void *const logits = run.tensor(MP_FP16, kRows * kClasses, 1);
  void *const dlogits = run.tensor(MP_FP16, kRows * kClasses, 2);
  const int32_t *const labels = run.integers({0, 9, 3, 4, 5, 6});
  float *const losses = run.floats(kRows + 2);
  auto *const correct = static_cast<int64_t *>(run.bytes(sizeof(int64_t)));
  mp_xent_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.x = logits;
  tensors.labels = labels;
  tensors.loss_scale = losses;
  tensors.row_loss = losses + 2;
  tensors.loss = losses + 1;
  tensors.correct = correct;
  tensors.dx = dlogits;
  FAULTY_CALL(run, mp_softmax_xent, run.context(), &desc, &tensors, nullptr);
  tensors.class_weights = run.floats(kClasses);
  FAULTY_CALL(run, mp_softmax_xent, run.context(), &desc, &tensors, nullptr);
  run.record_device(dlogits, kRows * kClasses * sizeof(uint16_t));
  run.record_device(losses, (kRows + 2) * sizeof *losses);
}

void pool(Run &run) {
  const mp_pool2d_desc_t desc = mp_pool2d_desc_default(MP_POOL_MAX, 1, 4, 4, 8, 2, 2, MP_FP16);
  void *const x = run.tensor(MP_FP16, 128, 1), *const y = run.tensor(MP_FP16, 128, 2);
  void *const dx = run.tensor(MP_FP16, 128, 3);
  FAULTY_CALL(run, mp_pool2d_forward, run.context(), &desc, x, y, nullptr);
  FAULTY_CALL(run, mp_pool2d_backward, run.context(), &desc, x, y, dx, nullptr, nullptr);
  FAULTY_CALL(run, mp_nhwc_to_nchw, run.context(), 1, 8, 4, 4, dx, MP_FP16, x, MP_FP16, nullptr);
  FAULTY_CALL(run, mp_nchw_to_nhwc, run.context(), 1, 8, 4, 4, x, MP_FP16, y, MP_FP16, nullptr);
  run.record_device(x, 128 * sizeof(uint16_t));
  run.record_device(y, 128 * sizeof(uint16_t));
}

void normalize(Run &run) {
  constexpr int64_t kRows = 16;
  constexpr int32_t kChannels = 8;
  mp_batchnorm_desc_t desc = mp_batchnorm_desc_default(kRows, kChannels, MP_FP16);
  mp_batchnorm_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.x = run.tensor(MP_FP16, kRows * kChannels, 1);
  tensors.gamma = run.floats(kChannels, 2);
  tensors.beta = run.floats(kChannels, 3);
  tensors.running_mean = run.floats(kChannels, 4);
  tensors.running_var = run.floats(kChannels, 5);
  tensors.saved_mean = run.floats(kChannels, 6);
  tensors.saved_inv_std = run.floats(kChannels, 7);
  tensors.y = run.tensor(MP_FP16, kRows * kChannels, 1);
  tensors.dy = run.tensor(MP_FP16, kRows * kChannels, 2);
  tensors.dx = run.tensor(MP_FP16, kRows * kChannels, 3);
  tensors.dgamma = run.floats(kChannels);
  tensors.dbeta = run.floats(kChannels);
  size_t bytes = 0;
  FAULTY_CALL(run, mp_batchnorm_workspace_size, run.context(), &desc, &bytes);
  void *const workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  FAULTY_CALL(run, mp_batchnorm_forward_training, run.context(), &desc, &tensors, workspace, bytes,
              nullptr);
  FAULTY_CALL(run, mp_batchnorm_backward, run.context(), &desc, &tensors, workspace, bytes,
              nullptr);
  run.record_device(tensors.running_mean, kChannels * sizeof(float));
  run.record_device(tensors.dx, kRows * kChannels * sizeof(uint16_t));
  FAULTY_CALL(run, mp_batchnorm_forward_inference, run.context(), &desc, &tensors, nullptr);
  run.record_device(tensors.y, kRows * kChannels * sizeof(uint16_t));
}

void normalize_rows(Run &run) {
  constexpr int64_t kRows = 6, kColumns = 8, kCount = kRows * kColumns;
  mp_norm_desc_t desc = mp_norm_desc_default(MP_NORM_LAYER, kRows, kColumns, MP_FP16);
  desc.dropout = 0.5f;
  mp_norm_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.x = run.tensor(MP_FP16, kCount, 1);
  tensors.residual = run.tensor(MP_FP16, kCount, 2);
  tensors.gamma = run.floats(kColumns, 3);
  tensors.sum = run.tensor(MP_FP16, kCount, 4);
  tensors.y = run.tensor(MP_FP16, kCount, 5);
  tensors.mean = run.floats(kRows, 6);
  tensors.rstd = run.floats(kRows, 7);
  tensors.dy = run.tensor(MP_FP16, kCount, 8);
  tensors.dx = run.tensor(MP_FP16, kCount, 9);
  tensors.dgamma = run.floats(kColumns);
  size_t bytes = 0;
  FAULTY_CALL(run, mp_norm_forward, run.context(), &desc, &tensors, nullptr);
  FAULTY_CALL(run, mp_norm_backward_workspace_size, run.context(), &desc, &bytes);
  void *const workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  FAULTY_CALL(run, mp_norm_backward, run.context(), &desc, &tensors, workspace, bytes, nullptr);
  run.record_device(tensors.y, kCount * sizeof(uint16_t));
  run.record_device(tensors.dx, kCount * sizeof(uint16_t));
  run.record_device(tensors.dgamma, kColumns * sizeof(float));
}

void compute_output_layer(Run &run) {
  constexpr int64_t kRows = 6, kWidth = 8, kClasses = 16;
  const mp_linear_xent_desc_t desc = mp_linear_xent_desc_default(kRows, kWidth, kClasses, MP_FP16);
  mp_xent_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  const int32_t *const labels = run.integers({0, 15, 3, -100, 7, 7});
  float *const count = run.floats(1, 1);
  tensors.x = run.tensor(MP_FP16, kRows * kWidth, 1);
  tensors.w = run.tensor(MP_FP16, kClasses * kWidth, 2);
  tensors.labels = labels;
  tensors.row_loss = run.floats(kRows);
  tensors.dx = run.tensor(MP_FP16, kRows * kWidth, 3);
  tensors.dw = run.floats(kClasses * kWidth, 4);
  tensors.dbias = run.floats(kClasses);
  size_t bytes = 0;
  FAULTY_CALL(run, mp_xent_count, run.context(), kRows, MP_INT32, labels, -100, count, nullptr);
  FAULTY_CALL(run, mp_linear_xent_workspace_size, run.context(), &desc, &bytes);
  void *const workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  FAULTY_CALL(run, mp_linear_xent, run.context(), &desc, &tensors, workspace, bytes, nullptr);
  run.record_device(count, sizeof(float));
  run.record_device(tensors.dx, kRows * kWidth * sizeof(uint16_t));
  run.record_device(tensors.dw, kClasses * kWidth * sizeof(float));
}

void embed(Run &run) {
  const mp_embedding_desc_t desc = mp_embedding_desc_default(6, 12, 8, MP_FP16);
  void *const table = run.tensor(MP_FP16, 12 * 8, 1), *const out = run.tensor(MP_FP16, 6 * 8, 2);
  void *const dtable = run.tensor(MP_FP16, 12 * 8, 3);
  const int32_t *const indices = run.integers({3, 1, 3, 11, 0, 3});
  size_t bytes = 0;
  FAULTY_CALL(run, mp_embedding_forward, run.context(), &desc, table, indices, out, nullptr);
  FAULTY_CALL(run, mp_embedding_workspace_size, run.context(), &desc, &bytes);
  void *const workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  FAULTY_CALL(run, mp_embedding_backward, run.context(), &desc, indices, out, dtable, nullptr,
              workspace, bytes, nullptr);
  run.record_device(dtable, 12 * 8 * sizeof(uint16_t));
}

void attend(Run &run) {
  constexpr int64_t kElems = 2 * 5 * 2 * 8;
  const mp_attention_desc_t desc = mp_attention_desc_default(2, 2, 5, 5, 8, MP_FP16);
  mp_attention_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.q = run.tensor(MP_FP16, kElems, 1);
  tensors.k = run.tensor(MP_FP16, kElems, 2);
  tensors.v = run.tensor(MP_FP16, kElems, 3);
  tensors.d_o = run.tensor(MP_FP16, kElems, 4);
  tensors.o = run.tensor(MP_FP16, kElems, 5);
  tensors.dq = run.tensor(MP_FP16, kElems, 6);
  tensors.dk = run.tensor(MP_FP16, kElems, 7);
  tensors.dv = run.tensor(MP_FP16, kElems, 8);
  tensors.lse = run.floats(2 * 2 * 5);
  size_t bytes = 0;
  FAULTY_CALL(run, mp_attention_forward, run.context(), &desc, &tensors, nullptr);
  FAULTY_CALL(run, mp_attention_backward_workspace_size, run.context(), &desc, &bytes);
  void *const workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  FAULTY_CALL(run, mp_attention_backward, run.context(), &desc, &tensors, workspace, bytes,
              nullptr);
  run.record_device(tensors.dk, kElems * sizeof(uint16_t));
}

/// Scalar arguments of elementwise calls.
void compute_by_element(Run &run) {
  void *const a = run.tensor(MP_FP16, 64, 1), *const b = run.tensor(MP_FP16, 64, 2);
  void *const y = run.tensor(MP_FP16, 64, 3);
  const mp_pointwise_desc_t sum = mp_pointwise_desc_default(MP_POINTWISE_ADD, 8, 8, MP_FP16);
  FAULTY_CALL(run, mp_pointwise, run.context(), &sum, a, b, y, nullptr, nullptr);
  const mp_loss_desc_t loss = mp_loss_desc_default(MP_LOSS_MSE, 64, MP_FP16);
  size_t bytes = 0;
  FAULTY_CALL(run, mp_loss_workspace_size, run.context(), &loss, &bytes);
  mp_loss_tensors_t tensors;
  MP_INIT_STRUCT(&tensors);
  tensors.prediction = y;
  tensors.target = b;
  tensors.dprediction = y;
  FAULTY_CALL(run, mp_loss, run.context(), &loss, &tensors, bytes > 0 ? run.bytes(bytes) : nullptr,
              bytes, nullptr);
  const mp_dropout_desc_t dropout = mp_dropout_desc_default(64, 0.5f, MP_FP16);
  FAULTY_CALL(run, mp_dropout, run.context(), &dropout, nullptr, y, y, nullptr, nullptr);
  const mp_glu_desc_t glu = mp_glu_desc_default(MP_ACT_SILU, 8, 4, MP_FP16);
  FAULTY_CALL(run, mp_glu_forward, run.context(), &glu, a, y, nullptr);
  FAULTY_CALL(run, mp_glu_backward, run.context(), &glu, a, b, y, nullptr, nullptr);
  const mp_rope_desc_t rope = mp_rope_desc_default(8, 2, 4, MP_FP16);
  FAULTY_CALL(run, mp_rope, run.context(), &rope, nullptr, nullptr, y, y, nullptr, nullptr);
  const mp_softmax_desc_t softmax = mp_softmax_desc_default(8, 8, MP_FP16);
  FAULTY_CALL(run, mp_softmax_forward, run.context(), &softmax, y, nullptr, y, nullptr);
  FAULTY_CALL(run, mp_softmax_backward, run.context(), &softmax, y, a, nullptr, y, nullptr,
              nullptr);
  float *const sums = run.floats(16);
  const mp_sum_rows_desc_t rows = mp_sum_rows_desc_default(8, 2, 8, MP_FP16);
  FAULTY_CALL(run, mp_sum_rows, run.context(), &rows, y, sums, nullptr, nullptr);
  run.record_device(sums, 16 * sizeof *sums);
  const mp_strided_copy_desc_t copy = mp_strided_copy_desc_default(MP_FP16);
  FAULTY_CALL(run, mp_strided_copy, run.context(), &copy, a, y, nullptr, nullptr);
  const mp_column_sum_desc_t columns = mp_column_sum_desc_default(8, 8, MP_FP16);
  bytes = 0;
  FAULTY_CALL(run, mp_column_sum_workspace_size, run.context(), &columns, &bytes);
  void *const workspace = bytes > 0 ? run.bytes(bytes) : nullptr;
  FAULTY_CALL(run, mp_column_sum, run.context(), &columns, a, b, nullptr, workspace, bytes,
              nullptr);
  float *const wide = run.floats(64);
  FAULTY_CALL(run, mp_cast, run.context(), y, MP_FP16, wide, MP_FP32, 64, nullptr);
  run.record_device(wide, 64 * sizeof *wide);
}

}  // namespace

void run_layers(Run &run) {
  classify(run);
  pool(run);
  normalize(run);
  normalize_rows(run);
  compute_output_layer(run);
  embed(run);
  attend(run);
  compute_by_element(run);
}

void run_recurrent_layers(Run &run) {
  constexpr int32_t kBatch = 2, kSteps = 3, kSize = 8;
  for (const mp_rnn_cell_t cell : {MP_RNN_LSTM, MP_RNN_GRU}) {
    const int32_t gates = cell == MP_RNN_LSTM ? 4 : 3;
    const mp_rnn_desc_t desc = mp_rnn_desc_default(cell, kBatch, kSteps, kSize, kSize, MP_FP16);
    mp_rnn_sizes_t sizes;
    MP_INIT_STRUCT(&sizes);
    FAULTY_CALL(run, mp_rnn_get_sizes, run.context(), &desc, &sizes);
    const int64_t count = int64_t{kBatch} * kSteps * kSize, matrix = int64_t{gates} * kSize * kSize;
    const mp_rnn_weights_t weights = {
        sizeof(mp_rnn_weights_t),       0,
        run.tensor(MP_FP16, matrix, 1), run.tensor(MP_FP16, matrix, 2),
        run.floats(gates * kSize, 3),   run.floats(gates * kSize, 4)};
    const mp_rnn_weight_grads_t grads = {sizeof(mp_rnn_weight_grads_t), 0,
                                         run.tensor(MP_FP16, matrix),   run.tensor(MP_FP16, matrix),
                                         run.floats(gates * kSize),     run.floats(gates * kSize)};
    mp_rnn_tensors_t tensors;
    MP_INIT_STRUCT(&tensors);
    tensors.num_weights = sizes.num_weights;
    tensors.weights = &weights;
    tensors.weight_grads = &grads;
    tensors.x = run.tensor(MP_FP16, count, 5);
    tensors.y = run.tensor(MP_FP16, count, 6);
    tensors.dy = run.tensor(MP_FP16, count, 7);
    tensors.dx = run.tensor(MP_FP16, count, 8);
    tensors.reserve = run.bytes(sizes.reserve_bytes);
    tensors.reserve_bytes = sizes.reserve_bytes;
    void *const workspace = run.bytes(sizes.workspace_bytes);
    FAULTY_CALL(run, mp_rnn_forward_inference, run.context(), &desc, &tensors, workspace,
                sizes.workspace_bytes, nullptr);
    const auto forward = [&] {
      return mp_rnn_forward_training(run.context(), &desc, &tensors, workspace,
                                     sizes.workspace_bytes, nullptr);
    };
    run.call("mp_rnn_forward_training", forward);
    // The gradients of the gates overwrite the gates.
    run.call(
        "mp_rnn_backward_data",
        [&] {
          return mp_rnn_backward_data(run.context(), &desc, &tensors, workspace,
                                      sizes.workspace_bytes, nullptr);
        },
        forward);
    FAULTY_CALL(run, mp_rnn_backward_weights, run.context(), &desc, &tensors, workspace,
                sizes.workspace_bytes, nullptr);
    run.record_device(tensors.y, static_cast<size_t>(count) * sizeof(uint16_t));
    run.record_device(tensors.dx, static_cast<size_t>(count) * sizeof(uint16_t));
    run.record_device(grads.w_hh, static_cast<size_t>(matrix) * sizeof(uint16_t));
  }
}

}  // namespace mptest::faults
