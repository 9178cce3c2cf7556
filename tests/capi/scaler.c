/* mpcore/scaler.h: the loss scaler. */
#include <math.h>

#include "harness.h"

/* ---------------------------------------------------------------- creation */

static mp_scaler_policy_t policy; /* of the scalers created below */

INIT(init_config, mp_scaler_config_t, mp_scaler_config_default(policy))

static mp_status_t call_config(void *s) {
  const mp_status_t status = mp_scaler_create(&out.scaler, context, s);
  if (status == MP_SUCCESS) mp_scaler_destroy(out.scaler);
  return status;
}

#define CONFIG_FIELD(field, member, v) \
  FIELD(mp_scaler_config_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)
#define CHECK_CONFIG(name, fields)                                                       \
  do {                                                                                   \
    const struct subject config = {"mp_scaler_create", name, sizeof(mp_scaler_config_t), \
                                   init_config, call_config};                            \
    CHECK_FIELDS(&config, fields);                                                       \
  } while (0)

static void test_create(void) {
  policy = MP_SCALER_POLICY_STATIC;
  const struct field_case any[] = {
      CONFIG_FIELD(policy, i, 0),
      CONFIG_FIELD(policy, i, 5),
      CONFIG_FIELD(policy, i, -1),
      CONFIG_FIELD(flags, i, 2),
      CONFIG_FIELD(flags, i, MP_SCALER_FLAG_REFILL_EACH_STEP),
      CONFIG_FIELD(init_scale, f, 0.0f),
      CONFIG_FIELD(init_scale, f, -1.0f),
      CONFIG_FIELD(init_scale, f, NAN),
      CONFIG_FIELD(init_scale, f, INFINITY),
      CONFIG_FIELD(init_scale, f, 0.5f),
      CONFIG_FIELD(init_scale, f, 33554432.0f),
      CONFIG_FIELD(min_scale, f, 0.0f),
      CONFIG_FIELD(min_scale, f, NAN),
      CONFIG_FIELD(min_scale, f, 1e-40f),
      CONFIG_FIELD(max_scale, f, INFINITY),
      CONFIG_FIELD(max_scale, f, NAN),
      CONFIG_FIELD(max_scale, f, -1.0f),
      CONFIG_FIELD(max_scale, f, 0.0f),
      CONFIG_FIELD(max_consecutive_skips, i, -1),
      CONFIG_FIELD(history_length, i, -1),
      CONFIG_FIELD(history_length, i, 16777217),
      CONFIG_FIELD(reserved0, i, 1),
  };
  CHECK_CONFIG("config", any);
  const struct subject config = {"mp_scaler_create", "config", sizeof(mp_scaler_config_t),
                                 init_config, call_config};
  check_struct_size(&config);

  policy = MP_SCALER_POLICY_BACKOFF;
  const struct field_case backoff[] = {
      CONFIG_FIELD(flags, i, 4),
      CONFIG_FIELD(min_scale, f, -1.0f),
      CONFIG_FIELD(min_scale, f, NAN),
      CONFIG_FIELD(min_scale, f, 131072.0f),
      CONFIG_FIELD(max_scale, f, INFINITY),
      CONFIG_FIELD(growth_factor, d, 1.0),
      CONFIG_FIELD(growth_factor, d, NAN),
      CONFIG_FIELD(growth_factor, d, INFINITY),
      CONFIG_FIELD(backoff_factor, d, 0.0),
      CONFIG_FIELD(backoff_factor, d, 1.0),
      CONFIG_FIELD(backoff_factor, d, NAN),
      CONFIG_FIELD(growth_interval, i, 0),
      CONFIG_FIELD(hysteresis, i, 0),
  };
  CHECK_CONFIG("config (backoff)", backoff);

  policy = MP_SCALER_POLICY_LOGNORMAL;
  const struct field_case lognormal[] = {
      CONFIG_FIELD(backoff_factor, d, 1.0), CONFIG_FIELD(growth_interval, i, 0),
      CONFIG_FIELD(log2_max, f, NAN),       CONFIG_FIELD(beta1, d, 1.0),
      CONFIG_FIELD(beta1, d, -0.1),         CONFIG_FIELD(beta2, d, 1.0),
      CONFIG_FIELD(beta2, d, NAN),          CONFIG_FIELD(overflow_std_dev, f, INFINITY),
      CONFIG_FIELD(sigma_floor, f, -1.0f),  CONFIG_FIELD(sigma_floor, f, NAN),
  };
  CHECK_CONFIG("config (lognormal)", lognormal);

  policy = MP_SCALER_POLICY_LOGMAX;
  const struct field_case logmax[] = {
      CONFIG_FIELD(flags, i, 1),      CONFIG_FIELD(min_scale, f, 0.0f),
      CONFIG_FIELD(log2_max, f, NAN), CONFIG_FIELD(overflow_std_dev, f, NAN),
      CONFIG_FIELD(beta1, d, 1.0),    CONFIG_FIELD(beta2, d, -0.5),
  };
  CHECK_CONFIG("config (logmax)", logmax);

  mp_scaler_destroy(NULL);
  check(mp_scaler_get_scale_address(NULL) == NULL &&
            mp_scaler_get_inv_scale_address(NULL) == NULL &&
            mp_scaler_get_found_inf_address(NULL) == NULL,
        "without a scaler, addresses are NULL");
}

/* ---------------------------------------------------------------- state */

static mp_scaler_t lognormal_scaler, backoff_scaler, logmax_scaler; /* used by the subjects below */

static void init_state_of(mp_scaler_t scaler, void *s) {
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  mp_scaler_get_state_sync(scaler, &state, NULL);
  memcpy(s, &state, sizeof state);
}

static void init_state(void *s) {
  init_state_of(lognormal_scaler, s);
}

static void init_backoff_state(void *s) {
  init_state_of(backoff_scaler, s);
}

static void init_logmax_state(void *s) {
  init_state_of(logmax_scaler, s);
}

/** State after ten steps, of which three were skipped. */
static void init_trained_state(void *s) {
  mp_scaler_state_t state;
  init_state(&state);
  state.steps = 10;
  state.skipped = 3;
  state.overflows = 2;
  state.out_of_range = 1;
  state.skipped_nan = 2;
  state.consecutive_skips = 1;
  state.beta1_power = state.beta2_power = 0.5;
  state.log2_mean = state.log2_mean_slow = -5.0f;
  state.log2_square_slow = 60.0f;
  state.headroom = 2.5f;
  memcpy(s, &state, sizeof state);
}

CALL_OF(call_get_state, mp_scaler_get_state_sync(lognormal_scaler, s, NULL))
CALL_OF(call_set_state, mp_scaler_set_state_sync(lognormal_scaler, s, NULL))
CALL_OF(call_set_backoff_state, mp_scaler_set_state_sync(backoff_scaler, s, NULL))
CALL_OF(call_set_logmax_state, mp_scaler_set_state_sync(logmax_scaler, s, NULL))

#define STATE_FIELD(field, member, v) \
  FIELD(mp_scaler_state_t, field, member, v, MP_ERROR_INVALID_ARGUMENT)

static void test_state(void) {
  const struct subject get = {"mp_scaler_get_state_sync", "state", sizeof(mp_scaler_state_t),
                              init_state, call_get_state};
  check_struct_size(&get);
  const struct subject set = {"mp_scaler_set_state_sync", "state", sizeof(mp_scaler_state_t),
                              init_state, call_set_state};
  const struct field_case fields[] = {
      STATE_FIELD(policy, i, MP_SCALER_POLICY_BACKOFF),
      STATE_FIELD(policy, i, 0),
      STATE_FIELD(policy, i, 77),
      STATE_FIELD(scale, f, 0.0f),
      STATE_FIELD(scale, f, NAN),
      STATE_FIELD(scale, f, 0.5f),
      STATE_FIELD(scale, f, 33554432.0f),
      STATE_FIELD(status, i, 2),
      STATE_FIELD(growth_tracker, i, -1),
      STATE_FIELD(growth_tracker, i, 2000), /* growth_interval */
      STATE_FIELD(growth_tracker, i, INT32_MAX),
      STATE_FIELD(steps, i, -1),
      STATE_FIELD(steps, i, INT64_MAX),
      STATE_FIELD(steps, i, ((int64_t)1 << 52) + 1),
      STATE_FIELD(overflows, i, 1),
      STATE_FIELD(skipped, i, -1),
      STATE_FIELD(skipped_nan, i, -1),
      STATE_FIELD(consecutive_skips, i, -1),
      STATE_FIELD(log2_mean, f, NAN),
      STATE_FIELD(log2_mean_slow, f, INFINITY),
      STATE_FIELD(log2_square_slow, f, NAN),
      STATE_FIELD(headroom, f, NAN),
      STATE_FIELD(beta1_power, i, -1), /* NaN: all bits set */
      STATE_FIELD(beta2_power, i, -1),
      STATE_FIELD(beta1_power, d, -0.5),
      STATE_FIELD(beta2_power, d, 1.5),
      STATE_FIELD(log2_mean, f, 1.0f), /* a mean without samples */
      STATE_FIELD(log2_mean_slow, f, -1.0f),
      STATE_FIELD(log2_square_slow, f, 1.0f),
      STATE_FIELD(headroom, f, -1.0f),
      STATE_FIELD(headroom, f, INFINITY),
      FIELD(mp_scaler_state_t, spikes, i, 1, MP_ERROR_UNSUPPORTED),
  };
  CHECK_STRUCT(&set, fields);

  const struct subject set_trained = {"mp_scaler_set_state_sync", "state (trained)",
                                      sizeof(mp_scaler_state_t), init_trained_state,
                                      call_set_state};
  const struct field_case trained_fields[] = {
      STATE_FIELD(skipped, i, 11), /* of ten steps */
      STATE_FIELD(skipped, i, INT64_MAX),
      STATE_FIELD(skipped, i, 4), /* the sum of its causes */
      STATE_FIELD(overflows, i, -1),
      STATE_FIELD(out_of_range, i, 2),
      STATE_FIELD(no_scale, i, 1),
      STATE_FIELD(no_scale, i, INT64_MAX),
      STATE_FIELD(skipped_nan, i, 3), /* more than the overflows */
      STATE_FIELD(skipped_nan, i, INT64_MAX),
      STATE_FIELD(consecutive_skips, i, 4),
      STATE_FIELD(consecutive_skips, i, INT64_MAX),
      STATE_FIELD(log2_mean, f, 200.0f), /* log2 of gradients with mean 400 */
      STATE_FIELD(log2_mean, f, -1e30f),
      STATE_FIELD(log2_mean_slow, f, -200.0f),
      STATE_FIELD(log2_square_slow, f, -1.0f),
      STATE_FIELD(log2_square_slow, f, 1e30f),
  };
  CHECK_FIELDS(&set_trained, trained_fields);

  const struct subject set_backoff = {"mp_scaler_set_state_sync", "state (backoff)",
                                      sizeof(mp_scaler_state_t), init_backoff_state,
                                      call_set_backoff_state};
  const struct field_case backoff_fields[] = {
      STATE_FIELD(policy, i, MP_SCALER_POLICY_LOGNORMAL),
      STATE_FIELD(hysteresis_left, i, -1),
      STATE_FIELD(hysteresis_left, i, 2), /* hysteresis = 1 */
      STATE_FIELD(growth_tracker, i, -1),
      STATE_FIELD(growth_tracker, i, 2000),
      STATE_FIELD(growth_tracker, i, INT32_MAX),
  };
  CHECK_FIELDS(&set_backoff, backoff_fields);

  const struct subject set_logmax = {"mp_scaler_set_state_sync", "state (logmax)",
                                     sizeof(mp_scaler_state_t), init_logmax_state,
                                     call_set_logmax_state};
  const struct field_case logmax_fields[] = {
      STATE_FIELD(scale, f, NAN),
      STATE_FIELD(log2_mean, f, NAN),
      STATE_FIELD(log2_square_slow, f, -1.0f),
      STATE_FIELD(beta2_power, d, -1.0),
  };
  CHECK_FIELDS(&set_logmax, logmax_fields);

  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);

  init_state(&state);
  state.scale = 8.0f;
  float scale[2] = {0.0f, 0.0f};
  int good = mp_scaler_set_state_sync(lognormal_scaler, &state, NULL) == MP_SUCCESS;
  mp_memcpy(context, &scale[0], mp_scaler_get_scale_address(lognormal_scaler), sizeof(float), NULL);
  mp_memcpy(context, &scale[1], mp_scaler_get_inv_scale_address(lognormal_scaler), sizeof(float),
            NULL);
  good = good && mp_stream_sync(context, NULL) == MP_SUCCESS;
  check(good && scale[0] == 8.0f && scale[1] == 0.125f, "a restored state sets S and 1/S");
  state.growth_tracker = 2000;
  FAILS(mp_scaler_set_state_sync, (lognormal_scaler, &state, NULL), MP_ERROR_INVALID_ARGUMENT,
        "state->growth_tracker = 2000 is outside [0, growth_interval) = [0, 2000)");
  init_trained_state(&state);
  state.log2_mean = 1000.0f;
  FAILS(mp_scaler_set_state_sync, (lognormal_scaler, &state, NULL), MP_ERROR_INVALID_ARGUMENT,
        "state->log2_mean = 1000 must be in [-150, 150]");
  state.log2_mean = 0.0f;
  state.skipped = 11;
  FAILS(mp_scaler_set_state_sync, (lognormal_scaler, &state, NULL), MP_ERROR_INVALID_ARGUMENT,
        "state->skipped = 11 is outside [0, steps] = [0, 10]");
}

/* ---------------------------------------------------------------- scaling and updating */

static void test_calls(mp_scaler_t scaler) {
  FAILS(mp_scale_loss, (scaler, at(0), at(64), MP_DTYPE_NONE, 1, NULL), MP_ERROR_INVALID_ARGUMENT,
        "dtype");
  FAILS(mp_scale_loss, (scaler, at(0), at(64), MP_FP32, -1, NULL), MP_ERROR_INVALID_ARGUMENT,
        "count");
  FAILS(mp_scale_loss, (scaler, at(0), at(64), MP_FP32, INT64_MAX, NULL), MP_ERROR_INVALID_ARGUMENT,
        "count");
  WORKS(mp_scale_loss(scaler, at(0), at(0), MP_FP32, 1, NULL));
  WORKS(mp_scale_loss(scaler, NULL, NULL, MP_FP32, 0, NULL));

  FAILS(mp_scaler_update, (lognormal_scaler, NULL, NULL), MP_ERROR_INVALID_ARGUMENT, "amax");
  WORKS(mp_scaler_update(scaler, NULL, NULL));
  WORKS(mp_scaler_update(scaler, at(0), NULL));

  float scales[1];
  FAILS(mp_scaler_get_history_sync, (scaler, -1, scales, NULL, &out.t, NULL),
        MP_ERROR_INVALID_ARGUMENT, "capacity");
  int64_t count = -1;
  WORKS(mp_scaler_get_history_sync(scaler, 1, NULL, NULL, &count, NULL));
  check(count == 0, "the history of a scaler without history is empty");
}

static void test_query(mp_scaler_t scaler) {
  FAILS(mp_scaler_query_step, (scaler, 0, &out.outcome), MP_ERROR_INVALID_ARGUMENT, "step");
  FAILS(mp_scaler_query_step, (scaler, INT64_MIN, &out.outcome), MP_ERROR_INVALID_ARGUMENT, "step");

  mp_scaler_state_t state;
  init_state_of(scaler, &state);
  state.steps = 10;
  WORKS(mp_scaler_set_state_sync(scaler, &state, NULL));
  FAILS(mp_scaler_query_step, (scaler, 10, &out.outcome), MP_ERROR_NOT_FOUND, "step");
  mp_step_outcome_t outcome = MP_STEP_OUTCOME_TAKEN;
  WORKS(mp_scaler_query_step(scaler, 11, &outcome));
  check(outcome == MP_STEP_OUTCOME_PENDING, "a future step is pending");
}

/* ---------------------------------------------------------------- accumulation */

enum { kTensors = 2 };

/** @param hole  the second tensor has no address */
static mp_tensor_list_t list_at(mp_context_t of, size_t offset, mp_dtype_t dtype, uint32_t count,
                                int hole) {
  static const int64_t numel[kTensors] = {8, 24};
  void *data[kTensors];
  data[0] = at(offset);
  data[1] = hole ? NULL : at(offset + 256);
  return make_list(of, dtype, count, data, numel);
}

static void test_accumulate(mp_scaler_t scaler) {
  const mp_tensor_list_t grads = list_at(context, 0, MP_FP16, kTensors, 0);
  const mp_tensor_list_t sums = list_at(context, 1024, MP_FP32, kTensors, 0);
  const mp_tensor_list_t shorter = list_at(context, 1024, MP_FP32, 1, 0);
  const mp_tensor_list_t hole = list_at(context, 1024, MP_FP32, kTensors, 1);
  const mp_tensor_list_t foreign = list_at(other_context, 1024, MP_FP32, kTensors, 0);
  const mp_scaler_t other_scaler = make_scaler(other_context, MP_SCALER_POLICY_STATIC);
  const mp_status_t invalid = MP_ERROR_INVALID_ARGUMENT;

  FAILS(mp_grads_accumulate, (other_scaler, grads, sums, 1.0f, 0, NULL), invalid, "scaler");
  FAILS(mp_grads_accumulate, (scaler, hole, sums, 1.0f, 0, NULL), invalid, "grads");
  FAILS(mp_grads_accumulate, (scaler, grads, grads, 1.0f, 0, NULL), invalid, "sums");
  FAILS(mp_grads_accumulate, (scaler, grads, shorter, 1.0f, 0, NULL), invalid, "sums");
  FAILS(mp_grads_accumulate, (scaler, grads, hole, 1.0f, 0, NULL), invalid, "sums");
  FAILS(mp_grads_accumulate, (scaler, grads, foreign, 1.0f, 0, NULL), invalid, "sums");
  FAILS(mp_grads_accumulate, (scaler, grads, sums, NAN, 0, NULL), invalid, "weight");
  FAILS(mp_grads_accumulate, (scaler, grads, sums, INFINITY, 0, NULL), invalid, "weight");
  FAILS(mp_grads_accumulate, (scaler, grads, sums, 1.0f, 4, NULL), invalid, "flags");
  FAILS(mp_grads_to_fp32, (scaler, grads, grads, NULL), invalid, "out");
  FAILS(mp_grads_to_fp32, (scaler, grads, foreign, NULL), invalid, "out");
  WORKS(mp_grads_accumulate(scaler, grads, sums, 0.0f, MP_ACCUMULATE_FLAG_FIRST, NULL));
  WORKS(mp_grads_accumulate(scaler, grads, sums, -1.0f, MP_ACCUMULATE_FLAG_LAST, NULL));
  WORKS(mp_grads_to_fp32(scaler, sums, sums, NULL));

  mp_scaler_destroy(other_scaler);
  const mp_tensor_list_t lists[] = {grads, sums, shorter, hole, foreign};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) mp_tensor_list_destroy(lists[i]);
}

void test_scaler(void) {
  lognormal_scaler = make_scaler(context, MP_SCALER_POLICY_LOGNORMAL);
  backoff_scaler = make_scaler(context, MP_SCALER_POLICY_BACKOFF);
  logmax_scaler = make_scaler(context, MP_SCALER_POLICY_LOGMAX);
  test_create();
  test_state();
  test_calls(backoff_scaler);
  test_query(backoff_scaler);
  test_accumulate(backoff_scaler);
  mp_scaler_destroy(lognormal_scaler);
  mp_scaler_destroy(backoff_scaler);
  mp_scaler_destroy(logmax_scaler);
}
