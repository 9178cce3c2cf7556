// mp_*_init: defaults of every struct, except those of optimizers (optimizer_desc.cpp).
#include "capi/defaults.h"

#include <limits>

using namespace mp;

mp_context_config_t mp::default_context_config() {
  auto c = zero_struct<mp_context_config_t>();
  c.device = MP_DEVICE_AUTO;
  return c;
}

mp_scaler_state_t mp::default_scaler_state(const mp_scaler_config_t &config) {
  auto s = zero_struct<mp_scaler_state_t>();
  store(config.policy, s.policy);
  s.scale = config.init_scale;
  s.growth_tracker = (config.flags & MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED) != 0 ? -1 : 0;
  s.hysteresis_left = config.hysteresis;
  s.beta1_power = s.beta2_power = 1.0;
  return s;
}

mp_comm_t mp::default_comm() {
  auto c = zero_struct<mp_comm_t>();
  c.world_size = 1;
  return c;
}

mp_scaler_config_t mp::default_scaler_config(const mp_scaler_policy_t &policy) {
  auto c = zero_struct<mp_scaler_config_t>();
  store(policy, c.policy);
  c.init_scale = enum_value(policy) == MP_SCALER_POLICY_STATIC
                     ? 1.0f
                     : 65536.0f;  // 2^16: torch.amp.GradScaler
  c.min_scale = 1.0f;
  c.max_scale = 16777216.0f;  // 2^24
  c.growth_factor = 2.0;
  c.backoff_factor = 0.5;
  c.beta1 = 0.99;
  c.beta2 = 0.999;
  c.log2_max = 15.9993f;  // log2(65504), fp16
  c.overflow_std_dev = 3.0902f;
  c.sigma_floor = 0.5f;
  c.growth_interval = 2000;
  c.hysteresis = 1;
  c.max_consecutive_skips = 100;  // a scale of 2^24 reaches 1 after 24
  return c;
}

namespace {

/// Sets the fields that mp_xent_desc_t and mp_linear_xent_desc_t share.
template <class Desc>
void set_loss(Desc &d) {
  d.dtype_labels = MP_INT32;
  d.weight = 1.0f;
  d.flags = MP_XENT_FLAG_IGNORE_LABEL;
  d.ignore_label = -100;
}

}  // namespace

mp_status_t mp_context_config_init(mp_context_config_t *config, size_t struct_size) {
  return init(__func__, config, "config", struct_size, default_context_config);
}

mp_status_t mp_epilogue_init(mp_epilogue_t *epilogue, size_t struct_size) {
  return init(__func__, epilogue, "epilogue", struct_size, zero_struct<mp_epilogue_t>);
}

mp_status_t mp_gemm_desc_init(mp_gemm_desc_t *desc, size_t struct_size, int64_t m, int64_t n,
                              int64_t k, mp_dtype_t dtype_ab, mp_dtype_t dtype_cd) {
  return init(__func__, desc, "desc", struct_size, [&] {
    auto d = zero_struct<mp_gemm_desc_t>();
    d.op_a = d.op_b = MP_OP_N;
    MP_STORE_FIELDS(d, dtype_ab, dtype_cd, m, n, k);
    d.alpha = 1.0f;
    d.batch_count = 1;
    d.ld_a = k;
    d.ld_b = d.ld_c = d.ld_d = n;
    return d;
  });
}

mp_status_t mp_gemm_group_item_init(mp_gemm_group_item_t *item, size_t struct_size, int64_t m,
                                    int64_t n, int64_t k) {
  return init(__func__, item, "item", struct_size, [&] {
    auto i = zero_struct<mp_gemm_group_item_t>();
    MP_STORE_FIELDS(i, m, n, k);
    i.ld_a = k;
    i.ld_b = i.ld_c = i.ld_d = n;
    return i;
  });
}

mp_status_t mp_conv2d_desc_init(mp_conv2d_desc_t *desc, size_t struct_size, int32_t n, int32_t h,
                                int32_t w, int32_t c, int32_t k, int32_t r, int32_t s,
                                mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_conv2d_desc_t &d) {
    store(dtype, d.dtype_out);
    MP_STORE_FIELDS(d, n, h, w, c, k, r, s);
    d.stride_h = d.stride_w = d.dilation_h = d.dilation_w = 1;
    d.groups = 1;
    d.alpha = 1.0f;
  });
}

mp_status_t mp_scaler_config_init(mp_scaler_config_t *config, size_t struct_size,
                                  mp_scaler_policy_t policy) {
  return init(__func__, config, "config", struct_size,
              [&] { return default_scaler_config(policy); });
}

mp_status_t mp_scaler_state_init(mp_scaler_state_t *state, size_t struct_size,
                                 const mp_scaler_config_t *config) {
  return init(__func__, state, "state", struct_size,
              [&] { return default_scaler_state(read_struct(config, "config")); });
}

mp_status_t mp_model_options_init(mp_model_options_t *options, size_t struct_size) {
  return init(__func__, options, "options", struct_size, zero_struct<mp_model_options_t>);
}

mp_status_t mp_comm_init(mp_comm_t *comm, size_t struct_size) {
  return init(__func__, comm, "comm", struct_size, default_comm);
}

mp_status_t mp_step_options_init(mp_step_options_t *options, size_t struct_size) {
  return init(__func__, options, "options", struct_size, zero_struct<mp_step_options_t>);
}

mp_status_t mp_xent_desc_init(mp_xent_desc_t *desc, size_t struct_size, int64_t rows,
                              int64_t classes, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_xent_desc_t &d) {
    d.rows = rows;
    d.classes = d.ld_logits = d.ld_dlogits = classes;
    set_loss(d);
  });
}

mp_status_t mp_linear_xent_desc_init(mp_linear_xent_desc_t *desc, size_t struct_size, int64_t rows,
                                     int64_t width, int64_t classes, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_linear_xent_desc_t &d) {
    MP_STORE_FIELDS(d, rows, classes);
    d.width = d.ld_x = d.ld_w = d.ld_dx = d.ld_dw = width;
    set_loss(d);
  });
}

mp_status_t mp_loss_desc_init(mp_loss_desc_t *desc, size_t struct_size, mp_loss_kind_t kind,
                              int64_t count, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_loss_desc_t &d) {
    MP_STORE_FIELDS(d, kind, count);
    store(dtype, d.dtype_target);
    d.weight = d.delta = 1.0f;
    d.reduction = kind == MP_LOSS_LINEAR ? MP_LOSS_REDUCTION_SUM : MP_LOSS_REDUCTION_MEAN;
  });
}

mp_status_t mp_pool2d_desc_init(mp_pool2d_desc_t *desc, size_t struct_size, mp_pool_mode_t mode,
                                int32_t n, int32_t h, int32_t w, int32_t c, int32_t window_h,
                                int32_t window_w, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_pool2d_desc_t &d) {
    MP_STORE_FIELDS(d, mode, n, h, w, c);
    d.window_h = d.stride_h = window_h;
    d.window_w = d.stride_w = window_w;
    d.dilation_h = d.dilation_w = 1;
  });
}

mp_status_t mp_batchnorm_desc_init(mp_batchnorm_desc_t *desc, size_t struct_size, int64_t rows,
                                   int32_t channels, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_batchnorm_desc_t &d) {
    MP_STORE_FIELDS(d, rows, channels);
    d.epsilon = 1e-5f;
    d.momentum = 0.1f;
  });
}

mp_status_t mp_norm_desc_init(mp_norm_desc_t *desc, size_t struct_size, mp_norm_kind_t kind,
                              int64_t rows, int64_t columns, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_norm_desc_t &d) {
    MP_STORE_FIELDS(d, kind, rows, columns);
    store(dtype, d.dtype_residual);
    d.groups = 1;
    d.epsilon = 1e-5f;
  });
}

mp_status_t mp_pointwise_desc_init(mp_pointwise_desc_t *desc, size_t struct_size,
                                   mp_pointwise_op_t op, int64_t rows, int64_t columns,
                                   mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_pointwise_desc_t &d) {
    MP_STORE_FIELDS(d, op, rows);
    store(dtype, d.dtype_b);
    d.columns = d.ld_b = columns;
    d.slope = 0.01f;
    d.high = std::numeric_limits<float>::infinity();
    d.low = -d.high;
  });
}

mp_status_t mp_column_sum_desc_init(mp_column_sum_desc_t *desc, size_t struct_size, int64_t rows,
                                    int64_t columns, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_column_sum_desc_t &d) {
    d.dtype_sum = MP_FP32;
    d.rows = rows;
    d.columns = d.ld = columns;
  });
}

mp_status_t mp_sum_rows_desc_init(mp_sum_rows_desc_t *desc, size_t struct_size, int64_t rows,
                                  int64_t period, int64_t columns, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_sum_rows_desc_t &d) {
    d.dtype_sum = MP_FP32;
    MP_STORE_FIELDS(d, rows, period);
    d.columns = d.ld_x = d.ld_sum = columns;
  });
}

mp_status_t mp_glu_desc_init(mp_glu_desc_t *desc, size_t struct_size, mp_activation_t activation,
                             int64_t rows, int64_t columns, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_glu_desc_t &d) {
    MP_STORE_FIELDS(d, activation, rows);
    d.columns = d.ld_y = columns;
    // An overflow leaves 0, which the functions reject.
    if (__builtin_mul_overflow(columns, 2, &d.ld_x)) d.ld_x = 0;
  });
}

mp_status_t mp_strided_copy_desc_init(mp_strided_copy_desc_t *desc, size_t struct_size,
                                      mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype,
                   [&](mp_strided_copy_desc_t &d) { d.alpha = 1.0f; });
}

mp_status_t mp_rnn_desc_init(mp_rnn_desc_t *desc, size_t struct_size, mp_rnn_cell_t cell,
                             int32_t batch, int32_t timesteps, int32_t input_size,
                             int32_t hidden_size, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_rnn_desc_t &d) {
    MP_STORE_FIELDS(d, cell, input_size, hidden_size, batch, timesteps);
    store(dtype, d.dtype_dw);
    d.layers = 1;
  });
}

mp_status_t mp_embedding_desc_init(mp_embedding_desc_t *desc, size_t struct_size,
                                   int64_t num_indices, int32_t num_embeddings,
                                   int64_t embedding_dim, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_embedding_desc_t &d) {
    store(dtype, d.dtype_dtable);
    d.dtype_indices = MP_INT32;
    MP_STORE_FIELDS(d, num_indices, num_embeddings);
    d.embedding_dim = d.ld_table = d.ld_out = d.ld_dtable = embedding_dim;
  });
}

mp_status_t mp_dropout_desc_init(mp_dropout_desc_t *desc, size_t struct_size, int64_t count,
                                 float p, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype,
                   [&](mp_dropout_desc_t &d) { MP_STORE_FIELDS(d, count, p); });
}

mp_status_t mp_rope_desc_init(mp_rope_desc_t *desc, size_t struct_size, int64_t rows, int32_t heads,
                              int32_t head_dim, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_rope_desc_t &d) {
    MP_STORE_FIELDS(d, rows, heads);
    d.head_dim = d.rotary_dim = head_dim;
    d.base = 10000.0f;
  });
}

mp_status_t mp_softmax_desc_init(mp_softmax_desc_t *desc, size_t struct_size, int64_t rows,
                                 int64_t columns, mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_softmax_desc_t &d) {
    store(dtype, d.dtype_mask);
    d.rows = rows;
    d.columns = d.ld_x = d.ld_y = d.ld_mask = columns;
    d.scale = 1.0f;
  });
}

mp_status_t mp_attention_desc_init(mp_attention_desc_t *desc, size_t struct_size, int32_t batch,
                                   int32_t heads, int64_t q_len, int64_t kv_len, int32_t head_dim,
                                   mp_dtype_t dtype) {
  return init_desc(__func__, desc, struct_size, dtype, [&](mp_attention_desc_t &d) {
    MP_STORE_FIELDS(d, batch, q_len, kv_len);
    d.heads = d.kv_heads = heads;
    d.head_dim = d.head_dim_v = head_dim;
    d.window_left = d.window_right = -1;
  });
}
