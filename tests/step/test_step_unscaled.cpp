// MP_STEP_FLAG_UNSCALED: a step with unscaled gradients equals the step with scaled ones, including
// norms, clipping and effect on the scaler.
#include <cstring>

#include "checked_optimizer.h"

using namespace mptest;

namespace {

mp_scaler_config_t power_of_two_config(mp_scaler_policy_t policy) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.init_scale = 1024.0f;
  config.growth_interval = 2;
  return config;
}

/// An optimizer, a scaler, and the values reported by a step.
struct Reported {
  Reported(const OptimizerSpec &spec, const mp_scaler_config_t &config)
      : run(spec), scaler(make_scaler(config)) {
    run.master().upload(constant_values(run.master().specs(), 1.0));
    if (run.model() != nullptr) run.model()->upload(constant_values(run.model()->specs(), 1.0));
  }
  void step(float max_grad_norm, uint32_t flags) {
    mp_step_options_t options = mp_step_options_default();
    options.flags = flags;
    options.max_grad_norm = max_grad_norm;
    options.grad_norm = grad_norm.data();
    options.found_inf = skipped.data();
    options.tensor_norms = tensor_norms.data();
    require_ok(mp_scale_step(run.get(), scaler.get(), &options, kStream));
  }

  OptimizerRun run;
  UniqueScaler scaler;
  DeviceFloat grad_norm{-1.0f}, skipped{-1.0f};
  DeviceBuffer<float> tensor_norms{std::vector<float>(run.grads().count(), -1.0f)};
};

/// Unscaling by a power of two is exact, so steps with scaled and unscaled gradients have equal
/// bits.
void check_unscaled(const OptimizerSpec &spec, mp_scaler_policy_t policy, float max_grad_norm,
                    uint64_t seed) {
  OptimizerSpec spec32 = spec;
  spec32.grads = with_dtype(spec.grads, MP_FP32);
  Reported scaled(spec, power_of_two_config(policy)), unscaled(spec32, power_of_two_config(policy));
  TensorSet grads(spec.grads);
  Random random(seed);
  for (int step = 0; step < 6; ++step) {
    const TensorValues values = real_values(spec.grads, random, 5000.0);
    scaled.run.grads().upload(values);
    grads.upload(values);
    const bool overflow = step % 3 == 2;
    if (overflow) scaled.run.grads().inject(0, 1, encode(MP_FP16, HUGE_VAL));
    if (overflow) grads.inject(0, 1, encode(MP_FP16, HUGE_VAL));
    scaled.step(max_grad_norm, 0);
    require_ok(mp_grads_accumulate(unscaled.scaler.get(), grads.list(), unscaled.run.grads().list(),
                                   1.0f, MP_ACCUMULATE_FLAG_FIRST, kStream));
    unscaled.step(max_grad_norm, MP_STEP_FLAG_UNSCALED);

    CAPTURE(spec.kind, policy, step);
    CHECK(unscaled.run.state() == scaled.run.state());
    CHECK(same_value(unscaled.grad_norm.value(), scaled.grad_norm.value()));
    CHECK(unscaled.skipped.value() == (overflow ? 1.0f : 0.0f));
    const std::vector<float> got = unscaled.tensor_norms.download();
    const std::vector<float> wanted = scaled.tensor_norms.download();
    for (size_t t = 0; t < got.size(); ++t) CHECK(same_value(got[t], wanted[t]));
    const mp_scaler_state_t one = state_of(unscaled.scaler.get());
    const mp_scaler_state_t other = state_of(scaled.scaler.get());
    CHECK(std::memcmp(&one, &other, sizeof one) == 0);
    CHECK(outcome_sync(unscaled.scaler, step + 1) == outcome_sync(scaled.scaler, step + 1));
  }
}

}  // namespace

TEST_CASE("unscaled step: norms, clipping and all rules equal those of scaled gradients",
          "[step][accumulate][short]") {
  uint64_t seed = 30;
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const mp_scaler_policy_t policy :
         {MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF, MP_SCALER_POLICY_LOGNORMAL}) {
      check_unscaled(spec, policy, 0.0f, ++seed);
      check_unscaled(with_everything(spec), policy, 0.5f, ++seed);
    }
  }
}

TEST_CASE("unscaled step: without a scaler it equals the step with S = 1",
          "[step][accumulate][short]") {
  OptimizerRun run(momentum_spec()), plain(momentum_spec());
  for (OptimizerRun *each : {&run, &plain}) {
    each->grads().upload(constant_values(run.grads().specs(), 1.0));
    each->master().upload(constant_values(run.master().specs(), 1.0));
  }
  mp_step_options_t options = mp_step_options_default();
  options.flags = MP_STEP_FLAG_UNSCALED;
  require_ok(mp_scale_step(run.get(), nullptr, &options, kStream));
  plain.step();
  CHECK(run.state() == plain.state());
}

TEST_CASE("unscaled step: MP_STEP_FLAG_CHECKED equals the step that checks the sums",
          "[step][accumulate][short]") {
  for (const mp_scaler_policy_t policy :
       {MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_BACKOFF, MP_SCALER_POLICY_LOGNORMAL}) {
    OptimizerSpec spec = adamw_spec();
    TensorSet grads(spec.grads);
    spec.grads = with_dtype(spec.grads, MP_FP32);
    Reported one(spec, power_of_two_config(policy)), other(spec, power_of_two_config(policy));
    Random random(60);
    for (int step = 0; step < 6; ++step) {
      grads.upload(real_values(grads.specs(), random, 5000.0));
      if (step % 3 == 2) grads.inject(0, 1, encode(MP_FP16, HUGE_VAL));
      for (Reported *side : {&one, &other}) {
        mp_step_options_t options = mp_step_options_default();
        options.flags = MP_STEP_FLAG_UNSCALED | (side == &one ? MP_STEP_FLAG_CHECKED : 0);
        options.found_inf = side->skipped.data();
        require_ok(
            mp_grads_to_fp32(side->scaler.get(), grads.list(), side->run.grads().list(), kStream));
        require_ok(mp_scale_step(side->run.get(), side->scaler.get(), &options, kStream));
      }
      CHECK(one.run.state() == other.run.state());
      CHECK(one.skipped.value() == (step % 3 == 2 ? 1.0f : 0.0f));
      const mp_scaler_state_t got = state_of(one.scaler.get()), want = state_of(other.scaler.get());
      CHECK(std::memcmp(&got, &want, sizeof got) == 0);
    }
  }
}
