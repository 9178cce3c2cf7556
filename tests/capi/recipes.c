/* The recipes of mpcore/step.h as a C program; lines between two rulers are those of the header.
 * Plain gradient descent, w -= g, with all gradients of a micro-batch equal. */
#include "harness.h"

enum { kTensors = 2, kMost = 16 };

static mp_context_t ctx;
static const mp_stream_t stream = NULL;
static const int64_t numel[kTensors] = {kMost, 3};
static mp_scaler_t scaler;
static mp_optimizer_t optimizer;
static mp_tensor_list_t grads, sums, grads32, masters, models;
static float *window_discarded;

/* ---------------------------------------------------------------- data */

/** Each list has 512 bytes of at(). */
enum place { kGrads = 1, kSums, kMasters, kModels, kScratch };

static void *tensor(enum place place, int t) {
  return at(512 * (size_t)place + 256 * (size_t)t);
}

static mp_tensor_list_t list_at(enum place place, mp_dtype_t dtype) {
  void *data[kTensors];
  for (int t = 0; t < kTensors; t++) data[t] = tensor(place, t);
  return make_list(ctx, dtype, kTensors, data, numel);
}

static void fill(enum place place, mp_dtype_t dtype, float value) {
  float values[kMost];
  for (int i = 0; i < kMost; i++) values[i] = value;
  for (int t = 0; t < kTensors; t++) {
    mp_memcpy(ctx, tensor(kScratch, 0), values, sizeof values, stream);
    mp_cast(ctx, tensor(kScratch, 0), MP_FP32, tensor(place, t), dtype, numel[t], stream);
  }
  mp_stream_sync(ctx, stream);
}

static float float_at(const void *device) {
  float value = -1.0f;
  mp_memcpy(ctx, &value, device, sizeof value, stream);
  mp_stream_sync(ctx, stream);
  return value;
}

/** Returns the last weight, from its 16-bit copy. */
static float weight(void) {
  mp_cast(ctx, tensor(kModels, 1), MP_FP16, tensor(kScratch, 0), MP_FP32, numel[1], stream);
  return float_at((const float *)tensor(kScratch, 0) + numel[1] - 1);
}

/** Micro-batch whose gradients are infinite; the others are 2, scaled. */
static int bad = -1;
static void forward_and_backward(int64_t i) {
  const float scale = float_at(mp_scaler_get_scale_address(scaler));
  fill(kGrads, MP_FP16, i == bad ? 1e30f : 2.0f * scale);
}

/** @param optimized  the gradients that the optimizer reads */
static void begin(enum place optimized) {
  ctx = context;
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.init_scale = 1024.0f;
  mp_scaler_create(&scaler, ctx, &config);
  grads = list_at(kGrads, MP_FP16);
  grads32 = sums = list_at(kSums, MP_FP32);
  masters = list_at(kMasters, MP_FP32);
  models = list_at(kModels, MP_FP16);
  window_discarded = at(0);
  fill(kMasters, MP_FP32, 100.0f);

  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 1.0f);
  group.beta1 = 0.0f;
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_SGD);
  desc.groups = &group;
  desc.grads = optimized == kSums ? sums : grads;
  desc.master = masters;
  desc.model = models;
  mp_optimizer_create(&optimizer, ctx, &desc);
}

static void end(void) {
  mp_optimizer_destroy(optimizer);
  mp_tensor_list_destroy(grads);
  mp_tensor_list_destroy(sums);
  mp_tensor_list_destroy(masters);
  mp_tensor_list_destroy(models);
  mp_scaler_destroy(scaler);
  reset();
}

static mp_scaler_state_t state(void) {
  mp_scaler_state_t s;
  MP_INIT_STRUCT(&s);
  mp_scaler_get_state_sync(scaler, &s, stream);
  return s;
}

/* ---------------------------------------------------------------- accumulation */

static void window_with_one_scale(int k) {
  mp_step_options_t options = mp_step_options_default();
  options.found_inf = window_discarded;
  /* ------------------------------------------------------------ */
  for (int i = 0; i < k; i++) {
    const uint32_t flags = i == 0 ? MP_ACCUMULATE_FLAG_FIRST : 0;
    forward_and_backward(i);
    mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
  }
  options.flags = MP_STEP_FLAG_UNSCALED;
  mp_scale_step(optimizer, scaler, &options, stream);
  /* ------------------------------------------------------------ */
}

static void window_with_any_scale(int k) {
  mp_step_options_t options = mp_step_options_default();
  options.found_inf = window_discarded;
  /* ------------------------------------------------------------ */
  for (int i = 0; i < k; i++) {
    const uint32_t flags = i == 0 ? MP_ACCUMULATE_FLAG_FIRST : 0;
    forward_and_backward(i);
    mp_grads_accumulate(scaler, grads, sums, 1.0f / (float)k, flags, stream);
    mp_scaler_update(scaler, NULL, stream);
  }
  mp_scale_step(optimizer, NULL, &options, stream);
  /* ------------------------------------------------------------ */
}

static void test_windows(void (*window)(int k), int64_t updates, const char *label) {
  begin(kSums);
  window(4);
  int good = weight() == 98.0f && float_at(window_discarded) == 0.0f;
  bad = 1;
  window(4);
  bad = -1;
  good = good && weight() == 98.0f && float_at(window_discarded) == 1.0f;
  good = good && state().skipped == 1 && state().scale == 512.0f;
  window(4);
  good = good && weight() == 96.0f && float_at(window_discarded) == 0.0f;
  check(good && state().steps == updates && state().skipped == 1, label);
  end();
}

/* ---------------------------------------------------------------- any optimizer */

/** An optimizer that is not part of the library; here it runs the library's kernels. */
static void my_optimizer(const float *found_inf) {
  if (float_at(found_inf) != 0.0f) return;
  mp_optimizer_step(optimizer, NULL, NULL, stream);
}

static void step_with_any_optimizer(void) {
  /* ------------------------------------------------------------ */
  const float *found_inf = mp_scaler_get_found_inf_address(scaler);
  mp_grads_to_fp32(scaler, grads, grads32, stream);
  my_optimizer(found_inf); /* masters and grads32; does nothing where *found_inf is not 0 */
  mp_masters_to_model(masters, models, found_inf, NULL, stream);
  mp_scaler_update(scaler, NULL, stream);
  /* ------------------------------------------------------------ */
}

static void my_host_optimizer(void) {
  mp_optimizer_step(optimizer, NULL, NULL, stream);
}

static void step_with_host_optimizer(int64_t n) {
  /* ------------------------------------------------------------ */
  mp_step_outcome_t outcome = MP_STEP_OUTCOME_PENDING;
  mp_grads_to_fp32(scaler, grads, grads32, stream);
  while (outcome == MP_STEP_OUTCOME_PENDING) mp_scaler_query_step(scaler, n, &outcome);
  if (outcome == MP_STEP_OUTCOME_TAKEN) {
    my_host_optimizer();
    mp_masters_to_model(masters, models, NULL, NULL, stream);
  }
  mp_scaler_update(scaler, NULL, stream);
  /* ------------------------------------------------------------ */
}

static void test_optimizers(int on_host) {
  begin(kSums);
  fill(kModels, MP_FP16, 100.0f);
  bad = 2;
  float weights[3];
  for (int i = 0; i < 3; i++) {
    forward_and_backward(i + 1);
    on_host ? step_with_host_optimizer(i + 1) : step_with_any_optimizer();
    weights[i] = weight();
  }
  bad = -1;
  check(weights[0] == 98.0f && weights[1] == 98.0f && weights[2] == 96.0f && state().skipped == 1,
        on_host ? "recipe: an optimizer on the host" : "recipe: any optimizer");
  end();
}

/* ---------------------------------------------------------------- queries without waiting */

static int advanced;
static void advance_lr_schedule(void) {
  advanced++;
}

static void train(int64_t steps) {
  /* ------------------------------------------------------------ */
  for (int64_t n = 1; n <= steps; n++) {
    mp_step_outcome_t outcome = n > 1 ? MP_STEP_OUTCOME_PENDING : MP_STEP_OUTCOME_SKIPPED;
    forward_and_backward(n); /* enqueued; step n - 1 is done long before this is */
    while (outcome == MP_STEP_OUTCOME_PENDING) mp_scaler_query_step(scaler, n - 1, &outcome);
    if (outcome == MP_STEP_OUTCOME_TAKEN) advance_lr_schedule();
    mp_scale_step(optimizer, scaler, NULL, stream);
  }
  /* ------------------------------------------------------------ */
}

void test_recipes(void) {
  test_windows(window_with_one_scale, 3, "recipe: accumulation, one S in a window");
  test_windows(window_with_any_scale, 12, "recipe: accumulation, S after each micro-batch");
  test_optimizers(0);
  test_optimizers(1);

  begin(kGrads);
  bad = 3;
  train(6);
  bad = -1;
  check(advanced == 4 && weight() == 90.0f, "recipe: query of the previous step");
  end();
}
