/* mp_*_init: sizes that are accepted and rejected, and the contents after a failure. */
#include <math.h>
#include <stdio.h>

#include "harness.h"

static const mp_scaler_config_t *config_of_state;

/* function, type, name of its first parameter, arguments after the size */
#define ALL_INITS(X)                                                                               \
  X(mp_context_config_init, mp_context_config_t, config, (s, size))                                \
  X(mp_epilogue_init, mp_epilogue_t, epilogue, (s, size))                                          \
  X(mp_gemm_desc_init, mp_gemm_desc_t, desc, (s, size, 2, 3, 5, MP_FP16, MP_FP32))                 \
  X(mp_gemm_group_item_init, mp_gemm_group_item_t, item, (s, size, 2, 3, 5))                       \
  X(mp_conv2d_desc_init, mp_conv2d_desc_t, desc, (s, size, 1, 2, 3, 4, 5, 1, 1, MP_FP16))          \
  X(mp_scaler_config_init, mp_scaler_config_t, config, (s, size, MP_SCALER_POLICY_LOGNORMAL))      \
  X(mp_scaler_config_init_preset, mp_scaler_config_t, config,                                      \
    (s, size, MP_SCALER_PRESET_MEGATRON))                                                          \
  X(mp_scaler_config_from_name, mp_scaler_config_t, config, ("LogMax", s, size))                   \
  X(mp_scaler_state_init, mp_scaler_state_t, state, (s, size, config_of_state))                    \
  X(mp_param_group_init, mp_param_group_t, group, (s, size, MP_OPT_ADAM, 0.5f))                    \
  X(mp_optimizer_desc_init, mp_optimizer_desc_t, desc, (s, size, MP_OPT_LAMB))                     \
  X(mp_model_options_init, mp_model_options_t, options, (s, size))                                 \
  X(mp_comm_init, mp_comm_t, comm, (s, size))                                                      \
  X(mp_step_options_init, mp_step_options_t, options, (s, size))                                   \
  X(mp_autocast_config_init, mp_autocast_config_t, config, (s, size, MP_BF16))                     \
  X(mp_autocast_scaler_init, mp_scaler_config_t, config, (s, size, MP_FP16))                       \
  X(mp_xent_desc_init, mp_xent_desc_t, desc, (s, size, 2, 3, MP_FP16))                             \
  X(mp_linear_xent_desc_init, mp_linear_xent_desc_t, desc, (s, size, 2, 3, 4, MP_FP16))            \
  X(mp_pool2d_desc_init, mp_pool2d_desc_t, desc,                                                   \
    (s, size, MP_POOL_MAX, 1, 4, 4, 3, 2, 2, MP_BF16))                                             \
  X(mp_batchnorm_desc_init, mp_batchnorm_desc_t, desc, (s, size, 7, 3, MP_FP32))                   \
  X(mp_norm_desc_init, mp_norm_desc_t, desc, (s, size, MP_NORM_RMS, 7, 3, MP_FP16))                \
  X(mp_loss_desc_init, mp_loss_desc_t, desc, (s, size, MP_LOSS_L1, 7, MP_BF16))                    \
  X(mp_pointwise_desc_init, mp_pointwise_desc_t, desc, (s, size, MP_POINTWISE_MUL, 7, 3, MP_BF16)) \
  X(mp_column_sum_desc_init, mp_column_sum_desc_t, desc, (s, size, 7, 3, MP_BF16))                 \
  X(mp_sum_rows_desc_init, mp_sum_rows_desc_t, desc, (s, size, 7, 2, 3, MP_BF16))                  \
  X(mp_glu_desc_init, mp_glu_desc_t, desc, (s, size, MP_ACT_SILU, 7, 3, MP_BF16))                  \
  X(mp_strided_copy_desc_init, mp_strided_copy_desc_t, desc, (s, size, MP_BF16))                   \
  X(mp_rnn_desc_init, mp_rnn_desc_t, desc, (s, size, MP_RNN_GRU, 2, 3, 4, 5, MP_BF16))             \
  X(mp_embedding_desc_init, mp_embedding_desc_t, desc, (s, size, 7, 3, 5, MP_FP16))                \
  X(mp_dropout_desc_init, mp_dropout_desc_t, desc, (s, size, 7, 0.5f, MP_FP32))                    \
  X(mp_rope_desc_init, mp_rope_desc_t, desc, (s, size, 7, 2, 8, MP_FP16))                          \
  X(mp_softmax_desc_init, mp_softmax_desc_t, desc, (s, size, 7, 3, MP_FP16))                       \
  X(mp_attention_desc_init, mp_attention_desc_t, desc, (s, size, 2, 3, 4, 5, 6, MP_FP16))

#define DEFINE_CALL(function, type, parameter, arguments)    \
  static mp_status_t call_##function(void *s, size_t size) { \
    return function arguments;                               \
  }
ALL_INITS(DEFINE_CALL)

static const struct init_case {
  const char *function, *parameter;
  size_t size;
  mp_status_t (*call)(void *s, size_t size);
} cases[] = {
#define CASE(function, type, parameter, arguments) \
  {#function, #parameter, sizeof(type), call_##function},
    ALL_INITS(CASE)};

enum { kBehind = 16, kPattern = 0xA5 };

union bytes {
  uint32_t struct_size;
  uint64_t aligned;
  unsigned char byte[256];
};

static union bytes filled_with_pattern(void) {
  union bytes b;
  memset(&b, kPattern, sizeof b);
  return b;
}

static int all_are(const unsigned char *bytes, size_t count, int value) {
  for (size_t i = 0; i < count; i++) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

static void check_init(const struct init_case *c) {
  char label[96];
  union bytes b = filled_with_pattern();
  snprintf(label, sizeof label, "%s: sizeof", c->function);
  check_success(label, c->call(&b, c->size));
  check(b.struct_size == c->size && all_are(b.byte + c->size, kBehind, kPattern), label);

  union bytes newer = filled_with_pattern();
  snprintf(label, sizeof label, "%s: the larger struct of a newer caller", c->function);
  check_success(label, c->call(&newer, c->size + kBehind));
  check(newer.struct_size == c->size + kBehind &&
            memcmp(newer.byte + sizeof newer.struct_size, b.byte + sizeof b.struct_size,
                   c->size - sizeof b.struct_size) == 0 &&
            all_are(newer.byte + c->size, kBehind, 0) &&
            all_are(newer.byte + c->size + kBehind, kBehind, kPattern),
        label);

  const size_t refused[] = {0, c->size - 1, 5000, (size_t)1 << 40};
  for (size_t i = 0; i < COUNT(refused); i++) {
    b = filled_with_pattern();
    snprintf(label, sizeof label, "%s: struct_size = %lu", c->function, (unsigned long)refused[i]);
    check_failure(label, c->function, c->call(&b, refused[i]), MP_ERROR_STRUCT_SIZE, "struct_size");
    /* A failing call zeroes as many bytes as the caller specifies.  A size that no version of a
     * struct has writes nothing. */
    const size_t zeros = refused[i] < c->size ? refused[i] : 0;
    check(all_are(b.byte, zeros, 0) && all_are(b.byte + zeros, sizeof b - zeros, kPattern), label);
  }
  snprintf(label, sizeof label, "%s: NULL", c->function);
  check_failure(label, c->function, c->call(NULL, c->size), MP_ERROR_INVALID_ARGUMENT,
                c->parameter);
}

#define KEEPS(initial, field) check((int)(initial).field == n, "unknown: " #field " of " #initial)

/** Unknown enumerators are kept; the function that takes the struct rejects them. */
static void test_unknown_enumerators(void) {
  const int numbers[] = {-1, 4, 77, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < COUNT(numbers); i++) {
    const int n = numbers[i];
    const mp_dtype_t dtype = (mp_dtype_t)n;
    KEEPS(mp_gemm_desc_default(2, 3, 5, dtype, dtype), dtype_ab);
    KEEPS(mp_gemm_desc_default(2, 3, 5, dtype, dtype), dtype_cd);
    KEEPS(mp_conv2d_desc_default(1, 2, 3, 4, 5, 1, 1, dtype), dtype);
    KEEPS(mp_conv2d_desc_default(1, 2, 3, 4, 5, 1, 1, dtype), dtype_out);
    KEEPS(mp_pointwise_desc_default((mp_pointwise_op_t)n, 7, 3, dtype), op);
    KEEPS(mp_pointwise_desc_default((mp_pointwise_op_t)n, 7, 3, dtype), dtype);
    KEEPS(mp_pointwise_desc_default((mp_pointwise_op_t)n, 7, 3, dtype), dtype_b);
    KEEPS(mp_rnn_desc_default((mp_rnn_cell_t)n, 2, 3, 4, 5, dtype), cell);
    KEEPS(mp_rnn_desc_default((mp_rnn_cell_t)n, 2, 3, 4, 5, dtype), dtype);
    KEEPS(mp_rnn_desc_default((mp_rnn_cell_t)n, 2, 3, 4, 5, dtype), dtype_dw);
    KEEPS(mp_embedding_desc_default(7, 3, 5, dtype), dtype);
    KEEPS(mp_embedding_desc_default(7, 3, 5, dtype), dtype_dtable);
    KEEPS(mp_pool2d_desc_default((mp_pool_mode_t)n, 1, 4, 4, 3, 2, 2, dtype), mode);
    KEEPS(mp_pool2d_desc_default((mp_pool_mode_t)n, 1, 4, 4, 3, 2, 2, dtype), dtype);
    KEEPS(mp_xent_desc_default(2, 3, dtype), dtype);
    KEEPS(mp_linear_xent_desc_default(2, 3, 4, dtype), dtype);
    KEEPS(mp_batchnorm_desc_default(7, 3, dtype), dtype);
    KEEPS(mp_norm_desc_default((mp_norm_kind_t)n, 7, 3, dtype), kind);
    KEEPS(mp_norm_desc_default((mp_norm_kind_t)n, 7, 3, dtype), dtype);
    KEEPS(mp_norm_desc_default((mp_norm_kind_t)n, 7, 3, dtype), dtype_residual);
    KEEPS(mp_dropout_desc_default(7, 0.5f, dtype), dtype);
    KEEPS(mp_sum_rows_desc_default(7, 2, 3, dtype), dtype);
    KEEPS(mp_glu_desc_default((mp_activation_t)n, 7, 3, dtype), activation);
    KEEPS(mp_glu_desc_default((mp_activation_t)n, 7, 3, dtype), dtype);
    KEEPS(mp_strided_copy_desc_default(dtype), dtype);
    KEEPS(mp_rope_desc_default(7, 2, 8, dtype), dtype);
    KEEPS(mp_softmax_desc_default(7, 3, dtype), dtype);
    KEEPS(mp_softmax_desc_default(7, 3, dtype), dtype_mask);
    KEEPS(mp_attention_desc_default(2, 3, 4, 5, 6, dtype), dtype);
    KEEPS(mp_scaler_config_default((mp_scaler_policy_t)n), policy);
    KEEPS(mp_autocast_config_default(dtype), dtype_low);
    KEEPS(mp_optimizer_desc_default((mp_optimizer_kind_t)n), kind);
    check(mp_param_group_default((mp_optimizer_kind_t)n, 0.5f).lr == 0.5f, "lr of an unknown kind");
  }
}

/** A struct without known defaults is zeroed, and every other call rejects it. */
static void test_without_defaults(void) {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  mp_scaler_state_t state = INITIALIZED(mp_scaler_state_t);
  const mp_scaler_preset_t none = (mp_scaler_preset_t)0;
  INVALID(mp_scaler_config_init_preset, (&config, sizeof config, none), "preset");
  INVALID(mp_scaler_config_init_preset, (&config, sizeof config, (mp_scaler_preset_t)12), "preset");
  check(all_are((const unsigned char *)&config, sizeof config, 0),
        "an unknown preset leaves zeros");
  config = mp_scaler_config_preset(none);
  reset();
  FAILS(mp_scaler_create, (&out.scaler, context, &config), MP_ERROR_STRUCT_SIZE, "config");
  FAILS(mp_scaler_create, (&out.scaler, context, &config), MP_ERROR_STRUCT_SIZE,
        "check that the initialization succeeded");

  INVALID(mp_scaler_state_init, (&state, sizeof state, NULL), "config");
  FAILS(mp_scaler_state_init, (&state, sizeof state, &config), MP_ERROR_STRUCT_SIZE, "config");
  check(state.struct_size == 0, "a state without a config is not initialized");
}

static int same_config(const char *name, mp_scaler_config_t wanted) {
  mp_scaler_config_t config;
  return mp_scaler_config_from_name(name, &config, sizeof config) == MP_SUCCESS &&
         memcmp(&config, &wanted, sizeof config) == 0;
}

/** Returns whether the name gives a static scale that a scaler accepts. */
static int is_static(const char *name, float scale) {
  mp_scaler_config_t config;
  mp_scaler_t scaler;
  if (mp_scaler_config_from_name(name, &config, sizeof config) != MP_SUCCESS) return 0;
  if (mp_scaler_create(&scaler, context, &config) != MP_SUCCESS) return 0;
  mp_scaler_destroy(scaler);
  return config.policy == MP_SCALER_POLICY_STATIC && config.init_scale == scale;
}

static void test_optimizer_names(void) {
  static const char *const names[] = {"sgd",     "Adam",    "LAMB", "novograd",
                                      "adagrad", "RMSprop", "adamw"};
  static const mp_optimizer_kind_t kinds[] = {MP_OPT_SGD,      MP_OPT_ADAM,    MP_OPT_LAMB,
                                              MP_OPT_NOVOGRAD, MP_OPT_ADAGRAD, MP_OPT_RMSPROP,
                                              MP_OPT_ADAM};
  mp_optimizer_desc_t desc;
  mp_param_group_t group;
  for (int i = 0; i < 7; i++) {
    mp_optimizer_desc_t wanted = mp_optimizer_desc_default(kinds[i]);
    mp_param_group_t wanted_group = mp_param_group_default(kinds[i], 0.5f);
    if (i == 6) {
      wanted.flags = MP_OPT_FLAG_DECOUPLED_DECAY;
      wanted_group.weight_decay = 0.01f;
    }
    wanted.groups = &group;
    check(mp_optimizer_desc_from_name(names[i], &desc, sizeof desc, &group, sizeof group, 0.5f) ==
                  MP_SUCCESS &&
              memcmp(&desc, &wanted, sizeof desc) == 0 &&
              memcmp(&group, &wanted_group, sizeof group) == 0,
          names[i]);
  }
  static const char *const unknown[] = {"", "adamw ", "adamwx", "MP_OPT_ADAM"};
  for (int i = 0; i < 4; i++) {
    memset(&desc, kPattern, sizeof desc);
    FAILS(mp_optimizer_desc_from_name, (unknown[i], &desc, sizeof desc, &group, sizeof group, 0.5f),
          MP_ERROR_NOT_FOUND, "adamw");
    check(all_are((const unsigned char *)&desc, sizeof desc, 0), "an unknown name leaves zeros");
  }
  FAILS(mp_optimizer_desc_from_name, ("adam", &desc, sizeof desc, &group, 8, 0.5f),
        MP_ERROR_STRUCT_SIZE, "group");
  FAILS(mp_optimizer_desc_from_name, ("adam", &desc, 8, &group, sizeof group, 0.5f),
        MP_ERROR_STRUCT_SIZE, "struct_size");
}

static void test_names(void) {
  static const struct {
    const char *name;
    mp_scaler_preset_t preset;
  } presets[] = {{"Backoff", MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF},
                 {"backoff", MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF},
                 {"LogMax", MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX},
                 {"LOGMAX", MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX},
                 {"LogNormal", MP_SCALER_PRESET_LOGNORMAL},
                 {"dynamic", MP_SCALER_PRESET_APEX_AMP}};
  for (size_t i = 0; i < COUNT(presets); i++)
    check(same_config(presets[i].name, mp_scaler_config_preset(presets[i].preset)),
          presets[i].name);
  check(same_config("None", mp_scaler_config_default(MP_SCALER_POLICY_STATIC)), "None");
  check(same_config("1", mp_scaler_config_default(MP_SCALER_POLICY_STATIC)), "S = 1");
  check(is_static("128", 128.0f), "S = 128");
  check(is_static("65536.0", 65536.0f), "S = 65536.0");
  check(is_static("1e3", 1000.0f), "S = 1e3");
  check(is_static("0.25", 0.25f), "S = 0.25, below the default's minimum");
  check(is_static("4294967296", 4294967296.0f), "S = 2^32, above the default's maximum");

  mp_scaler_config_t config;
  static const char *const no_scales[] = {"0",   "-128", "-0",    "inf",  "-Infinity",
                                          "NaN", "1e99", "1e-99", "1e-39"};
  for (size_t i = 0; i < COUNT(no_scales); i++)
    INVALID(mp_scaler_config_from_name, (no_scales[i], &config, sizeof config), no_scales[i]);
  check(all_are((const unsigned char *)&config, sizeof config, 0),
        "an invalid number leaves zeros");
  static const char *const unknown[] = {"", "static", "backof", "Backoff ", "128x", "0x80", "+1"};
  for (size_t i = 0; i < COUNT(unknown); i++) {
    FAILS(mp_scaler_config_from_name, (unknown[i], &config, sizeof config), MP_ERROR_NOT_FOUND,
          "Backoff, LogMax, lognormal, dynamic, none");
    FAILS(mp_scaler_config_from_name, (unknown[i], &config, sizeof config), MP_ERROR_NOT_FOUND,
          unknown[i]);
  }
  char endless[2000];
  memset(endless, 'x', sizeof endless - 1);
  endless[sizeof endless - 1] = '\0';
  FAILS(mp_scaler_config_from_name, (endless, &config, sizeof config), MP_ERROR_NOT_FOUND,
        "lognormal");
}

static mp_scaler_config_t imported_config;
static mp_scaler_state_t imported_state;

CALL_OF(import_torch, mp_scaler_from_torch(s, &imported_config, &imported_state))
CALL_OF(import_megatron, mp_scaler_from_megatron(s, &imported_state))

/** Checks states that GradScaler cannot have saved, or that no scaler of this library supports. */
static void test_torch_states(void) {
  const struct field_case fields[] = {
      REALS(mp_torch_scaler_t, scale, 0, -1, 1e-40, 1e39, -1e39, INFINITY, NAN),
      INTS(mp_torch_scaler_t, growth_tracker, -1, 100, 101, INT32_MAX, INT32_MIN),
      INTS(mp_torch_scaler_t, growth_interval, 0),
      REALS(mp_torch_scaler_t, growth_factor, 1),
      REALS(mp_torch_scaler_t, backoff_factor, NAN),
  };
  MP_INIT_STRUCT(&imported_config);
  MP_INIT_STRUCT(&imported_state);
  mp_torch_scaler_t torch = {1024.0, 2.0, 0.5, 100, 99};
  WORKS(import_torch(&torch));
  const mp_scaler_config_t config = imported_config;
  const mp_scaler_state_t state = imported_state;
  CHECK_FIELDS("mp_scaler_from_torch", "saved", torch, import_torch, fields);
  torch.growth_tracker = 100;
  INVALID(mp_scaler_from_torch, (&torch, &imported_config, &imported_state),
          "saved->growth_tracker = 100 is outside [0, growth_interval) = [0, 100)");
  torch.growth_tracker = 98;
  mp_scaler_config_t small = config;
  small.struct_size = 8;
  FAILS(mp_scaler_from_torch, (&torch, &small, &imported_state), MP_ERROR_STRUCT_SIZE, "config");
  check(memcmp(&config, &imported_config, sizeof config) == 0 &&
            memcmp(&state, &imported_state, sizeof state) == 0,
        "a rejected state of torch writes nothing");
}

static void test_megatron_states(void) {
  const struct field_case fields[] = {
      REALS(mp_megatron_scaler_t, scale, 0, -1, INFINITY, NAN),
      INTS(mp_megatron_scaler_t, growth_tracker, -1),
  };
  MP_INIT_STRUCT(&imported_state);
  mp_megatron_scaler_t megatron = {1024.0f, 7, 1};
  WORKS(import_megatron(&megatron));
  mp_scaler_state_t state = imported_state;
  CHECK_FIELDS("mp_scaler_from_megatron", "saved", megatron, import_megatron, fields);
  check(memcmp(&state, &imported_state, sizeof state) == 0,
        "a rejected state of Megatron writes nothing");

  /* mp_scaler_set_state_sync checks the fields that depend on the scaler. */
  const mp_scaler_config_t config = mp_scaler_config_preset(MP_SCALER_PRESET_MEGATRON);
  mp_scaler_t scaler = NULL;
  WORKS(mp_scaler_create(&scaler, context, &config));
  const mp_megatron_scaler_t late = {1024.0f, 1000, 1}, patient = {1024.0f, 7, 3};
  WORKS(mp_scaler_from_megatron(&late, &state));
  INVALID(mp_scaler_set_state_sync, (scaler, &state, NULL), "state->growth_tracker");
  WORKS(mp_scaler_from_megatron(&patient, &state));
  INVALID(mp_scaler_set_state_sync, (scaler, &state, NULL),
          "state->hysteresis_left = 3 is outside [0, hysteresis] = [0, 2]");
  mp_scaler_destroy(scaler);
}

void test_defaults(void) {
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config_of_state = &config;
  for (size_t i = 0; i < COUNT(cases); i++) check_init(&cases[i]);
  test_unknown_enumerators();
  test_without_defaults();
  test_optimizer_names();
  test_names();
  test_torch_states();
  test_megatron_states();
}
