/* mpcore/scaler.h: the loss scaler. */
#include <math.h>

#include "harness.h"

/* ---------------------------------------------------------------- creation */

static mp_status_t call_config(void *s) {
  const mp_status_t status = mp_scaler_create(&out.scaler, context, s);
  if (status == MP_SUCCESS) mp_scaler_destroy(out.scaler);
  return status;
}

static void check_config(const char *parameter, mp_scaler_policy_t policy,
                         const struct field_case *fields, size_t count) {
  const mp_scaler_config_t initial = mp_scaler_config_default(policy);
  check_struct(SUBJECT("mp_scaler_create", parameter, initial, call_config), fields, count);
}

static void test_create(void) {
  const struct field_case any[] = {
      INTS(mp_scaler_config_t, policy, 0, 5, -1),
      INTS(mp_scaler_config_t, flags, 2, MP_SCALER_FLAG_REFILL_EACH_STEP),
      REALS(mp_scaler_config_t, init_scale, 0, -1, NAN, INFINITY, 0.5, 33554432),
      REALS(mp_scaler_config_t, min_scale, 0, NAN, 1e-40),
      REALS(mp_scaler_config_t, max_scale, INFINITY, NAN, -1, 0),
      INTS(mp_scaler_config_t, max_consecutive_skips, -1),
      INTS(mp_scaler_config_t, history_length, -1, 16777217),
      INTS(mp_scaler_config_t, reserved0, 1),
  };
  check_config("config", MP_SCALER_POLICY_STATIC, any, COUNT(any));

  const struct field_case backoff[] = {
      INTS(mp_scaler_config_t, flags, 4),
      REALS(mp_scaler_config_t, min_scale, -1, NAN, 131072),
      REALS(mp_scaler_config_t, max_scale, INFINITY),
      REALS(mp_scaler_config_t, growth_factor, 1, NAN, INFINITY),
      REALS(mp_scaler_config_t, backoff_factor, 0, 1, NAN),
      INTS(mp_scaler_config_t, growth_interval, 0),
      INTS(mp_scaler_config_t, hysteresis, 0),
  };
  check_config("config (backoff)", MP_SCALER_POLICY_BACKOFF, backoff, COUNT(backoff));

  const struct field_case lognormal[] = {
      REALS(mp_scaler_config_t, backoff_factor, 1),
      INTS(mp_scaler_config_t, growth_interval, 0),
      REALS(mp_scaler_config_t, log2_max, NAN),
      REALS(mp_scaler_config_t, beta1, 1, -0.1),
      REALS(mp_scaler_config_t, beta2, 1, NAN),
      REALS(mp_scaler_config_t, overflow_std_dev, INFINITY),
      REALS(mp_scaler_config_t, sigma_floor, -1, NAN),
  };
  check_config("config (lognormal)", MP_SCALER_POLICY_LOGNORMAL, lognormal, COUNT(lognormal));

  const struct field_case logmax[] = {
      INTS(mp_scaler_config_t, flags, 1),       REALS(mp_scaler_config_t, min_scale, 0),
      REALS(mp_scaler_config_t, log2_max, NAN), REALS(mp_scaler_config_t, overflow_std_dev, NAN),
      REALS(mp_scaler_config_t, beta1, 1),      REALS(mp_scaler_config_t, beta2, -0.5),
  };
  check_config("config (logmax)", MP_SCALER_POLICY_LOGMAX, logmax, COUNT(logmax));

  mp_scaler_destroy(NULL);
  check(mp_scaler_get_scale_address(NULL) == NULL &&
            mp_scaler_get_inv_scale_address(NULL) == NULL &&
            mp_scaler_get_found_inf_address(NULL) == NULL,
        "without a scaler, addresses are NULL");
}

/* ---------------------------------------------------------------- state */

static mp_scaler_t lognormal_scaler, backoff_scaler, logmax_scaler; /* used by the subjects below */

static mp_scaler_state_t state_of(mp_scaler_t scaler) {
  mp_scaler_state_t state = INITIALIZED(mp_scaler_state_t);
  mp_scaler_get_state_sync(scaler, &state, NULL);
  return state;
}

/** State after ten steps, of which three were skipped. */
static mp_scaler_state_t trained_state(void) {
  mp_scaler_state_t state = state_of(lognormal_scaler);
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
  return state;
}

CALL_OF(call_get_state, mp_scaler_get_state_sync(lognormal_scaler, s, NULL))
CALL_OF(call_set_state, mp_scaler_set_state_sync(lognormal_scaler, s, NULL))
CALL_OF(call_set_backoff_state, mp_scaler_set_state_sync(backoff_scaler, s, NULL))
CALL_OF(call_set_logmax_state, mp_scaler_set_state_sync(logmax_scaler, s, NULL))

static void test_state(void) {
  mp_scaler_state_t state = state_of(lognormal_scaler);
  check_struct_size(SUBJECT("mp_scaler_get_state_sync", "state", state, call_get_state));
  const struct field_case fields[] = {
      INTS(mp_scaler_state_t, policy, MP_SCALER_POLICY_BACKOFF, 0, 77),
      REALS(mp_scaler_state_t, scale, 0, NAN, 0.5, 33554432),
      INTS(mp_scaler_state_t, status, 2),
      INTS(mp_scaler_state_t, growth_tracker, -1, 2000 /* growth_interval */, INT32_MAX),
      INTS(mp_scaler_state_t, steps, -1, INT64_MAX, ((int64_t)1 << 52) + 1),
      INTS(mp_scaler_state_t, overflows, 1),
      INTS(mp_scaler_state_t, skipped, -1),
      INTS(mp_scaler_state_t, skipped_nan, -1),
      INTS(mp_scaler_state_t, consecutive_skips, -1),
      REALS(mp_scaler_state_t, log2_mean, NAN, 1 /* a mean without samples */),
      REALS(mp_scaler_state_t, log2_mean_slow, INFINITY, -1),
      REALS(mp_scaler_state_t, log2_square_slow, NAN, 1),
      REALS(mp_scaler_state_t, headroom, NAN, -1, INFINITY),
      INTS(mp_scaler_state_t, beta1_power, -1), /* NaN: all bits set */
      INTS(mp_scaler_state_t, beta2_power, -1),
      REALS(mp_scaler_state_t, beta1_power, -0.5),
      REALS(mp_scaler_state_t, beta2_power, 1.5),
      FIELD(mp_scaler_state_t, spikes, ints, MP_ERROR_UNSUPPORTED, 1),
  };
  CHECK_STRUCT("mp_scaler_set_state_sync", "state", state, call_set_state, fields);

  const struct field_case trained_fields[] = {
      INTS(mp_scaler_state_t, skipped, 11 /* of ten steps */, INT64_MAX,
           4 /* the sum of its causes */),
      INTS(mp_scaler_state_t, overflows, -1),
      INTS(mp_scaler_state_t, out_of_range, 2),
      INTS(mp_scaler_state_t, no_scale, 1, INT64_MAX),
      INTS(mp_scaler_state_t, skipped_nan, 3 /* more than the overflows */, INT64_MAX),
      INTS(mp_scaler_state_t, consecutive_skips, 4, INT64_MAX),
      REALS(mp_scaler_state_t, log2_mean, 200 /* log2 of gradients with mean 400 */, -1e30),
      REALS(mp_scaler_state_t, log2_mean_slow, -200),
      REALS(mp_scaler_state_t, log2_square_slow, -1, 1e30),
  };
  const mp_scaler_state_t trained = trained_state();
  CHECK_FIELDS("mp_scaler_set_state_sync", "state (trained)", trained, call_set_state,
               trained_fields);

  const struct field_case backoff_fields[] = {
      INTS(mp_scaler_state_t, policy, MP_SCALER_POLICY_LOGNORMAL),
      INTS(mp_scaler_state_t, hysteresis_left, -1, 2 /* hysteresis = 1 */),
      INTS(mp_scaler_state_t, growth_tracker, -1, 2000, INT32_MAX),
  };
  const mp_scaler_state_t backoff = state_of(backoff_scaler), logmax = state_of(logmax_scaler);
  CHECK_FIELDS("mp_scaler_set_state_sync", "state (backoff)", backoff, call_set_backoff_state,
               backoff_fields);

  const struct field_case logmax_fields[] = {
      REALS(mp_scaler_state_t, scale, NAN),
      REALS(mp_scaler_state_t, log2_mean, NAN),
      REALS(mp_scaler_state_t, log2_square_slow, -1),
      REALS(mp_scaler_state_t, beta2_power, -1),
  };
  CHECK_FIELDS("mp_scaler_set_state_sync", "state (logmax)", logmax, call_set_logmax_state,
               logmax_fields);

  state.scale = 8.0f;
  float scale[2] = {0.0f, 0.0f};
  int good = mp_scaler_set_state_sync(lognormal_scaler, &state, NULL) == MP_SUCCESS;
  mp_memcpy(context, &scale[0], mp_scaler_get_scale_address(lognormal_scaler), sizeof(float), NULL);
  mp_memcpy(context, &scale[1], mp_scaler_get_inv_scale_address(lognormal_scaler), sizeof(float),
            NULL);
  good = good && mp_stream_sync(context, NULL) == MP_SUCCESS;
  check(good && scale[0] == 8.0f && scale[1] == 0.125f, "a restored state sets S and 1/S");
  state.growth_tracker = 2000;
  INVALID(mp_scaler_set_state_sync, (lognormal_scaler, &state, NULL),
          "state->growth_tracker = 2000 is outside [0, growth_interval) = [0, 2000)");
  state = trained;
  state.log2_mean = 1000.0f;
  INVALID(mp_scaler_set_state_sync, (lognormal_scaler, &state, NULL),
          "state->log2_mean = 1000 must be in [-150, 150]");
  state.log2_mean = 0.0f;
  state.skipped = 11;
  INVALID(mp_scaler_set_state_sync, (lognormal_scaler, &state, NULL),
          "state->skipped = 11 is outside [0, steps] = [0, 10]");
}

/* ---------------------------------------------------------------- scaling and updating */

static void test_calls(mp_scaler_t scaler) {
  INVALID(mp_scale_loss, (scaler, at(0), at(64), MP_DTYPE_NONE, 1, NULL), "dtype");
  INVALID(mp_scale_loss, (scaler, at(0), at(64), MP_FP32, -1, NULL), "count");
  INVALID(mp_scale_loss, (scaler, at(0), at(64), MP_FP32, INT64_MAX, NULL), "count");
  WORKS(mp_scale_loss(scaler, at(0), at(0), MP_FP32, 1, NULL));
  WORKS(mp_scale_loss(scaler, NULL, NULL, MP_FP32, 0, NULL));

  INVALID(mp_scaler_update, (lognormal_scaler, NULL, NULL), "amax");
  WORKS(mp_scaler_update(scaler, NULL, NULL));
  WORKS(mp_scaler_update(scaler, at(0), NULL));

  float scales[1];
  INVALID(mp_scaler_get_history_sync, (scaler, -1, scales, NULL, &out.t, NULL), "capacity");
  int64_t count = -1;
  WORKS(mp_scaler_get_history_sync(scaler, 1, NULL, NULL, &count, NULL));
  check(count == 0, "the history of a scaler without history is empty");
}

static void test_query(mp_scaler_t scaler) {
  INVALID(mp_scaler_query_step, (scaler, 0, &out.outcome), "step");
  INVALID(mp_scaler_query_step, (scaler, INT64_MIN, &out.outcome), "step");

  mp_scaler_state_t state = state_of(scaler);
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

  INVALID(mp_grads_accumulate, (other_scaler, grads, sums, 1.0f, 0, NULL), "scaler");
  INVALID(mp_grads_accumulate, (scaler, hole, sums, 1.0f, 0, NULL), "grads");
  INVALID(mp_grads_accumulate, (scaler, grads, grads, 1.0f, 0, NULL), "sums");
  INVALID(mp_grads_accumulate, (scaler, grads, shorter, 1.0f, 0, NULL), "sums");
  INVALID(mp_grads_accumulate, (scaler, grads, hole, 1.0f, 0, NULL), "sums");
  INVALID(mp_grads_accumulate, (scaler, grads, foreign, 1.0f, 0, NULL), "sums");
  INVALID(mp_grads_accumulate, (scaler, grads, sums, NAN, 0, NULL), "weight");
  INVALID(mp_grads_accumulate, (scaler, grads, sums, INFINITY, 0, NULL), "weight");
  INVALID(mp_grads_accumulate, (scaler, grads, sums, 1.0f, 4, NULL), "flags");
  INVALID(mp_grads_to_fp32, (scaler, grads, grads, NULL), "out");
  INVALID(mp_grads_to_fp32, (scaler, grads, foreign, NULL), "out");
  WORKS(mp_grads_accumulate(scaler, grads, sums, 0.0f, MP_ACCUMULATE_FLAG_FIRST, NULL));
  WORKS(mp_grads_accumulate(scaler, grads, sums, -1.0f, MP_ACCUMULATE_FLAG_LAST, NULL));
  WORKS(mp_grads_to_fp32(scaler, sums, sums, NULL));

  mp_scaler_destroy(other_scaler);
  const mp_tensor_list_t lists[] = {grads, sums, shorter, hole, foreign};
  for (size_t i = 0; i < COUNT(lists); i++) mp_tensor_list_destroy(lists[i]);
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
