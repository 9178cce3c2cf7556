// Lists of enumerators, for messages.  A switch without default checks at compile time (-Wswitch)
// that each list is complete.
#include "capi/message.h"

#include <algorithm>

namespace mp {

#define MP_ENUMERATOR(name) {name, #name},
#define MP_CASE(name) case name:
#define MP_ENUMERATORS(Enum, LIST)                              \
  [[maybe_unused]] static constexpr void check_list(Enum e) {   \
    switch (e) {                                                \
      LIST(MP_CASE)                                             \
      break;                                                    \
    }                                                           \
  }                                                             \
  template <>                                                   \
  Enumerators enumerators_of<Enum>() {                          \
    static constexpr Enumerator kAll[] = {LIST(MP_ENUMERATOR)}; \
    return kAll;                                                \
  }

// clang-format off
#define MP_LIST(X) \
  X(MP_SUCCESS) X(MP_ERROR_INVALID_ARGUMENT) X(MP_ERROR_MISALIGNED) \
  X(MP_ERROR_WORKSPACE_TOO_SMALL) X(MP_ERROR_STRUCT_SIZE) X(MP_ERROR_UNSUPPORTED) \
  X(MP_ERROR_ARCH_MISMATCH) X(MP_ERROR_NOT_FOUND) X(MP_ERROR_OUT_OF_MEMORY) X(MP_ERROR_CUDA) \
  X(MP_ERROR_COMM) X(MP_ERROR_INTERNAL)
MP_ENUMERATORS(mp_status_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_DTYPE_NONE) X(MP_FP16) X(MP_BF16) X(MP_FP32) X(MP_INT32) X(MP_INT64) \
  X(MP_STATE_M8) X(MP_STATE_V8) X(MP_REMAINDER16) X(MP_REMAINDER8)
MP_ENUMERATORS(mp_dtype_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_OP_N) X(MP_OP_T)
MP_ENUMERATORS(mp_op_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_ACT_NONE) X(MP_ACT_RELU) X(MP_ACT_GELU) X(MP_ACT_DRELU) X(MP_ACT_DGELU) X(MP_ACT_SIGMOID) \
  X(MP_ACT_TANH) X(MP_ACT_DSIGMOID) X(MP_ACT_DTANH) X(MP_ACT_SILU) X(MP_ACT_DSILU) \
  X(MP_ACT_GELU_ERF) X(MP_ACT_DGELU_ERF)
MP_ENUMERATORS(mp_activation_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_RAGGED_M) X(MP_RAGGED_K)
MP_ENUMERATORS(mp_ragged_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_CONV_FPROP) X(MP_CONV_DGRAD) X(MP_CONV_WGRAD)
MP_ENUMERATORS(mp_conv_op_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_LOSS_MSE) X(MP_LOSS_L1) X(MP_LOSS_BCE_WITH_LOGITS) X(MP_LOSS_HUBER) X(MP_LOSS_SMOOTH_L1) \
  X(MP_LOSS_LINEAR)
MP_ENUMERATORS(mp_loss_kind_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_LOSS_REDUCTION_MEAN) X(MP_LOSS_REDUCTION_SUM)
MP_ENUMERATORS(mp_loss_reduction_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_POOL_MAX) X(MP_POOL_AVG_INCLUDE_PAD) X(MP_POOL_AVG_EXCLUDE_PAD)
MP_ENUMERATORS(mp_pool_mode_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_NORM_LAYER) X(MP_NORM_RMS)
MP_ENUMERATORS(mp_norm_kind_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_POINTWISE_COPY) X(MP_POINTWISE_ADD) X(MP_POINTWISE_MUL) X(MP_POINTWISE_SUB) \
  X(MP_POINTWISE_DIV) X(MP_POINTWISE_LEAKY_RELU) X(MP_POINTWISE_DLEAKY_RELU) \
  X(MP_POINTWISE_CLIP) X(MP_POINTWISE_DCLIP)
MP_ENUMERATORS(mp_pointwise_op_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_OPT_SGD) X(MP_OPT_ADAM) X(MP_OPT_LAMB) X(MP_OPT_NOVOGRAD) X(MP_OPT_ADAGRAD) \
  X(MP_OPT_RMSPROP)
MP_ENUMERATORS(mp_optimizer_kind_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_OPT_FLAG_NESTEROV) X(MP_OPT_FLAG_DECOUPLED_DECAY) X(MP_OPT_FLAG_NO_BIAS_CORRECTION) \
  X(MP_OPT_FLAG_MODEL_OVERFLOW) X(MP_OPT_FLAG_DECAY_AFTER_MOMENTUM) X(MP_OPT_FLAG_LARC) X(MP_OPT_FLAG_LARS) \
  X(MP_OPT_FLAG_NVLAMB) X(MP_OPT_FLAG_STOCHASTIC_ROUNDING)
MP_ENUMERATORS(mp_optimizer_flags_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_LR_CONSTANT) X(MP_LR_POLYNOMIAL) X(MP_LR_COSINE) X(MP_LR_EXPONENTIAL) \
  X(MP_LR_INVERSE_SQRT)
MP_ENUMERATORS(mp_lr_schedule_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_RNN_TANH) X(MP_RNN_RELU) X(MP_RNN_LSTM) X(MP_RNN_GRU)
MP_ENUMERATORS(mp_rnn_cell_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_SOFTMAX_MASK_NONE) X(MP_SOFTMAX_MASK_CAUSAL) X(MP_SOFTMAX_MASK_LENGTHS) \
  X(MP_SOFTMAX_MASK_ADDITIVE)
MP_ENUMERATORS(mp_softmax_mask_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_SCALER_POLICY_STATIC) X(MP_SCALER_POLICY_BACKOFF) X(MP_SCALER_POLICY_LOGNORMAL) X(MP_SCALER_POLICY_LOGMAX)
MP_ENUMERATORS(mp_scaler_policy_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_SCALER_STATUS_OK) X(MP_SCALER_STATUS_DIVERGED)
MP_ENUMERATORS(mp_scaler_status_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_SCALER_PRESET_LOGNORMAL) X(MP_SCALER_PRESET_TORCH) X(MP_SCALER_PRESET_APEX_AMP) \
  X(MP_SCALER_PRESET_APEX_HYSTERESIS) X(MP_SCALER_PRESET_MEGATRON) X(MP_SCALER_PRESET_DEEPSPEED) \
  X(MP_SCALER_PRESET_DEEPSPEED_FUSED) X(MP_SCALER_PRESET_KERAS) X(MP_SCALER_PRESET_KERAS_3) \
  X(MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF) X(MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX)
MP_ENUMERATORS(mp_scaler_preset_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_OP_CLASS_UNLISTED) X(MP_OP_CLASS_ALLOW) X(MP_OP_CLASS_INFER) X(MP_OP_CLASS_DENY) X(MP_OP_CLASS_CLEAR) \
  X(MP_OP_CLASS_PROMOTE)
MP_ENUMERATORS(mp_op_class_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_AUTOCAST_PRESET_DEFAULT) X(MP_AUTOCAST_PRESET_TENSORFLOW) X(MP_AUTOCAST_PRESET_TENSORFLOW_BF16) \
  X(MP_AUTOCAST_PRESET_PYTORCH) X(MP_AUTOCAST_PRESET_ONNX)
MP_ENUMERATORS(mp_autocast_preset_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_AUTOCAST_LEVEL_NORMAL) X(MP_AUTOCAST_LEVEL_INFER_AS_DENY) X(MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY) \
  X(MP_AUTOCAST_LEVEL_FORCE_ALL)
MP_ENUMERATORS(mp_autocast_level_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_AUTOCAST_FORMAT_TEXT) X(MP_AUTOCAST_FORMAT_JSON) X(MP_AUTOCAST_FORMAT_DOT)
MP_ENUMERATORS(mp_autocast_format_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_ATTRIBUTE_KIND_INT) X(MP_ATTRIBUTE_KIND_FLOAT) X(MP_ATTRIBUTE_KIND_INTS) \
  X(MP_ATTRIBUTE_KIND_FLOATS)
MP_ENUMERATORS(mp_attribute_kind_t, MP_LIST)
#undef MP_LIST

#define MP_LIST(X) \
  X(MP_GRAPH_MODE_INFERENCE) X(MP_GRAPH_MODE_TRAINING)
MP_ENUMERATORS(mp_graph_mode_t, MP_LIST)
#undef MP_LIST

// clang-format on

const char *name_of(Enumerators all, int32_t value) {
  const auto found = std::ranges::find(all, value, &Enumerator::value);
  return found != all.end() ? found->name : nullptr;
}

}  // namespace mp
