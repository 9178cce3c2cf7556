// MP_STEP_FLAG_UNSCALED: a step with unscaled gradients equals the step with scaled ones, including
// norms, clipping and effect on the scaler.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

mp_scaler_config_t power_of_two_config(mp_scaler_policy_t policy) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.init_scale = 1024.0f;
  config.growth_interval = 2;
  return config;
}

/// Unscaling by a power of two is exact, so steps with scaled and unscaled gradients have equal
/// bits.
void check_unscaled(const OptimizerSpec &spec, mp_scaler_policy_t policy, float max_grad_norm,
                    uint64_t seed) {
  OptimizerSpec spec32 = spec;
  spec32.grads = with_dtype(spec.grads, MP_FP32);
  StepRun scaled(spec, power_of_two_config(policy)), unscaled(spec32, power_of_two_config(policy));
  TensorSet grads(spec.grads);
  Random random(seed);
  for (int step = 0; step < 6; ++step) {
    const TensorValues values = real_values(spec.grads, random, 5000.0);
    scaled.run.grads().upload(values);
    grads.upload(values);
    const bool overflow = step % 3 == 2;
    if (overflow) scaled.run.grads().inject(0, 1, encode(MP_FP16, HUGE_VAL));
    if (overflow) grads.inject(0, 1, encode(MP_FP16, HUGE_VAL));
    scaled.step(step_options(0, max_grad_norm));
    require_ok(mp_grads_accumulate(unscaled.scaler.get(), grads.list(), unscaled.run.grads().list(),
                                   1.0f, MP_ACCUMULATE_FLAG_FIRST, kStream));
    unscaled.step(step_options(MP_STEP_FLAG_UNSCALED, max_grad_norm));

    CAPTURE(spec.kind, policy, step);
    check_equal(unscaled, scaled);
    CHECK(unscaled.skipped.value() == (overflow ? 1.0f : 0.0f));
    CHECK(outcome_sync(unscaled.scaler, step + 1) == outcome_sync(scaled.scaler, step + 1));
  }
}

}  // namespace

TEST_CASE("unscaled step: norms, clipping and all rules equal those of scaled gradients",
          "[step][accumulate][short]") {
  uint64_t seed = 30;
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const mp_scaler_policy_t policy : kScalerPolicies) {
      check_unscaled(spec, policy, 0.0f, ++seed);
      check_unscaled(with_everything(spec), policy, 0.5f, ++seed);
    }
  }
}

TEST_CASE("unscaled step: without a scaler it equals the step with S = 1",
          "[step][accumulate][short]") {
  StepRun unscaled(momentum_spec()), plain(momentum_spec());
  for (StepRun *each : {&unscaled, &plain}) each->set_grads(1.0);
  unscaled.step(step_options(MP_STEP_FLAG_UNSCALED));
  plain.run.step();
  CHECK(unscaled.run.state() == plain.run.state());
}

TEST_CASE("unscaled step: MP_STEP_FLAG_CHECKED equals the step that checks the sums",
          "[step][accumulate][short]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    OptimizerSpec spec = adamw_spec();
    TensorSet grads(spec.grads);
    spec.grads = with_dtype(spec.grads, MP_FP32);
    StepRun one(spec, power_of_two_config(policy)), other(spec, power_of_two_config(policy));
    Random random(60);
    for (int step = 0; step < 6; ++step) {
      grads.upload(real_values(grads.specs(), random, 5000.0));
      if (step % 3 == 2) grads.inject(0, 1, encode(MP_FP16, HUGE_VAL));
      for (StepRun *side : {&one, &other}) {
        require_ok(
            mp_grads_to_fp32(side->scaler.get(), grads.list(), side->run.grads().list(), kStream));
        side->step(step_options(MP_STEP_FLAG_UNSCALED | (side == &one ? MP_STEP_FLAG_CHECKED : 0)));
      }
      CHECK(one.run.state() == other.run.state());
      CHECK(one.skipped.value() == (step % 3 == 2 ? 1.0f : 0.0f));
      CHECK(same_state(one.scaler, other.scaler));
    }
  }
}
