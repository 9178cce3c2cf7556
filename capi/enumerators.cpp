// Lists of enumerators, for messages, and the table of types.  A switch without default checks at
// compile time (-Wswitch) that each list is complete.
#include "capi/message.h"

#include <algorithm>

#include "base/dtypes.h"

namespace mp {

/// Types: enumerator without MP_, name, bytes per element; 0 for MP_DTYPE_NONE and storage types.
#define MP_DTYPES(X)               \
  X(DTYPE_NONE, "none", 0)         \
  MP_FLOAT_TYPES(X)                \
  X(INT32, "int32", 4)             \
  X(INT64, "int64", 8)             \
  X(STATE_M8, "state_m8", 0)       \
  X(STATE_V8, "state_v8", 0)       \
  X(REMAINDER16, "remainder16", 0) \
  X(REMAINDER8, "remainder8", 0)
#define MP_DTYPE_NAME(type, ...) , MP_##type

#define MP_ENUMERATOR(name) {name, #name},
#define MP_CASE(name) case name:
#define MP_ENUMERATORS(Enum, ...)                                                   \
  [[maybe_unused]] static constexpr void check_list(Enum e) {                       \
    switch (e) {                                                                    \
      MP_FOR_EACH(MP_CASE, __VA_ARGS__)                                             \
      break;                                                                        \
    }                                                                               \
  }                                                                                 \
  template <>                                                                       \
  Enumerators enumerators_of<Enum>() {                                              \
    static constexpr Enumerator kAll[] = {MP_FOR_EACH(MP_ENUMERATOR, __VA_ARGS__)}; \
    return kAll;                                                                    \
  }

#define MP_ENUMERATORS_OF(...) MP_ENUMERATORS(__VA_ARGS__)

MP_ENUMERATORS(mp_status_t, MP_SUCCESS, MP_ERROR_INVALID_ARGUMENT, MP_ERROR_MISALIGNED,
               MP_ERROR_WORKSPACE_TOO_SMALL, MP_ERROR_STRUCT_SIZE, MP_ERROR_UNSUPPORTED,
               MP_ERROR_ARCH_MISMATCH, MP_ERROR_NOT_FOUND, MP_ERROR_OUT_OF_MEMORY, MP_ERROR_CUDA,
               MP_ERROR_COMM, MP_ERROR_INTERNAL)
MP_ENUMERATORS_OF(mp_dtype_t MP_DTYPES(MP_DTYPE_NAME))
MP_ENUMERATORS(mp_op_t, MP_OP_N, MP_OP_T)
MP_ENUMERATORS(mp_activation_t, MP_ACT_NONE, MP_ACT_RELU, MP_ACT_GELU, MP_ACT_DRELU, MP_ACT_DGELU,
               MP_ACT_SIGMOID, MP_ACT_TANH, MP_ACT_DSIGMOID, MP_ACT_DTANH, MP_ACT_SILU,
               MP_ACT_DSILU, MP_ACT_GELU_ERF, MP_ACT_DGELU_ERF)
MP_ENUMERATORS(mp_ragged_t, MP_RAGGED_M, MP_RAGGED_K)
MP_ENUMERATORS(mp_conv_op_t, MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD)
MP_ENUMERATORS(mp_loss_kind_t, MP_LOSS_MSE, MP_LOSS_L1, MP_LOSS_BCE_WITH_LOGITS, MP_LOSS_HUBER,
               MP_LOSS_SMOOTH_L1, MP_LOSS_LINEAR)
MP_ENUMERATORS(mp_loss_reduction_t, MP_LOSS_REDUCTION_MEAN, MP_LOSS_REDUCTION_SUM)
MP_ENUMERATORS(mp_pool_mode_t, MP_POOL_MAX, MP_POOL_AVG_INCLUDE_PAD, MP_POOL_AVG_EXCLUDE_PAD)
MP_ENUMERATORS(mp_norm_kind_t, MP_NORM_LAYER, MP_NORM_RMS)
MP_ENUMERATORS(mp_pointwise_op_t, MP_POINTWISE_COPY, MP_POINTWISE_ADD, MP_POINTWISE_MUL,
               MP_POINTWISE_SUB, MP_POINTWISE_DIV, MP_POINTWISE_LEAKY_RELU,
               MP_POINTWISE_DLEAKY_RELU, MP_POINTWISE_CLIP, MP_POINTWISE_DCLIP)
MP_ENUMERATORS(mp_optimizer_kind_t, MP_OPT_SGD, MP_OPT_ADAM, MP_OPT_LAMB, MP_OPT_NOVOGRAD,
               MP_OPT_ADAGRAD, MP_OPT_RMSPROP)
MP_ENUMERATORS(mp_optimizer_flags_t, MP_OPT_FLAG_NESTEROV, MP_OPT_FLAG_DECOUPLED_DECAY,
               MP_OPT_FLAG_NO_BIAS_CORRECTION, MP_OPT_FLAG_MODEL_OVERFLOW,
               MP_OPT_FLAG_DECAY_AFTER_MOMENTUM, MP_OPT_FLAG_LARC, MP_OPT_FLAG_LARS,
               MP_OPT_FLAG_NVLAMB, MP_OPT_FLAG_STOCHASTIC_ROUNDING)
MP_ENUMERATORS(mp_lr_schedule_t, MP_LR_CONSTANT, MP_LR_POLYNOMIAL, MP_LR_COSINE, MP_LR_EXPONENTIAL,
               MP_LR_INVERSE_SQRT)
MP_ENUMERATORS(mp_rnn_cell_t, MP_RNN_TANH, MP_RNN_RELU, MP_RNN_LSTM, MP_RNN_GRU)
MP_ENUMERATORS(mp_softmax_mask_t, MP_SOFTMAX_MASK_NONE, MP_SOFTMAX_MASK_CAUSAL,
               MP_SOFTMAX_MASK_LENGTHS, MP_SOFTMAX_MASK_ADDITIVE)
MP_ENUMERATORS(mp_scaler_policy_t, MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF,
               MP_SCALER_POLICY_LOGNORMAL, MP_SCALER_POLICY_LOGMAX)
MP_ENUMERATORS(mp_scaler_status_t, MP_SCALER_STATUS_OK, MP_SCALER_STATUS_DIVERGED)
MP_ENUMERATORS(mp_scaler_preset_t, MP_SCALER_PRESET_LOGNORMAL, MP_SCALER_PRESET_TORCH,
               MP_SCALER_PRESET_APEX_AMP, MP_SCALER_PRESET_APEX_HYSTERESIS,
               MP_SCALER_PRESET_MEGATRON, MP_SCALER_PRESET_DEEPSPEED,
               MP_SCALER_PRESET_DEEPSPEED_FUSED, MP_SCALER_PRESET_KERAS, MP_SCALER_PRESET_KERAS_3,
               MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF, MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX)
MP_ENUMERATORS(mp_op_class_t, MP_OP_CLASS_UNLISTED, MP_OP_CLASS_ALLOW, MP_OP_CLASS_INFER,
               MP_OP_CLASS_DENY, MP_OP_CLASS_CLEAR, MP_OP_CLASS_PROMOTE)
MP_ENUMERATORS(mp_autocast_preset_t, MP_AUTOCAST_PRESET_DEFAULT, MP_AUTOCAST_PRESET_TENSORFLOW,
               MP_AUTOCAST_PRESET_TENSORFLOW_BF16, MP_AUTOCAST_PRESET_PYTORCH,
               MP_AUTOCAST_PRESET_ONNX)
MP_ENUMERATORS(mp_autocast_level_t, MP_AUTOCAST_LEVEL_NORMAL, MP_AUTOCAST_LEVEL_INFER_AS_DENY,
               MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY, MP_AUTOCAST_LEVEL_FORCE_ALL)
MP_ENUMERATORS(mp_autocast_format_t, MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON,
               MP_AUTOCAST_FORMAT_DOT)
MP_ENUMERATORS(mp_attribute_kind_t, MP_ATTRIBUTE_KIND_INT, MP_ATTRIBUTE_KIND_FLOAT,
               MP_ATTRIBUTE_KIND_INTS, MP_ATTRIBUTE_KIND_FLOATS)
MP_ENUMERATORS(mp_graph_mode_t, MP_GRAPH_MODE_INFERENCE, MP_GRAPH_MODE_TRAINING)

const char *name_of(Enumerators all, int32_t value) {
  const auto found = std::ranges::find(all, value, &Enumerator::value);
  return found != all.end() ? found->name : nullptr;
}

}  // namespace mp

size_t mp_dtype_size(mp_dtype_t dtype) {
#define MP_DTYPE_SIZE(type, name, bytes, ...) \
  case MP_##type:                             \
    return bytes;
  switch (mp::enum_value(dtype)) { MP_DTYPES(MP_DTYPE_SIZE) }
  return 0;
}

const char *mp_dtype_name(mp_dtype_t dtype) {
#define MP_DTYPE_TEXT(type, name, ...) \
  case MP_##type:                      \
    return name;
  switch (mp::enum_value(dtype)) { MP_DTYPES(MP_DTYPE_TEXT) }
  return "?";
}
