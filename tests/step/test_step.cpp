// mp_scale_step equals, bit for bit, the sequence of calls that mpcore/step.h documents.
//
// Two optimizers with equal tensors and two equal scalers receive the same gradients in each step;
// one side makes the fused call, the other the separate calls in the documented order.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

struct StepCase {
  OptimizerSpec optimizer;
  std::optional<mp_scaler_config_t> scaler;
  float max_grad_norm = 0.0f;  ///< 0 = no clipping
  bool with_outputs = true;    ///< request grad_norm and found_inf
};

void fused_step(StepRun &side, const StepCase &c) {
  const mp_step_options_t options = step_options(0, c.max_grad_norm);
  if (c.with_outputs) return side.step(options);
  require_ok(mp_scale_step(side.run.get(), side.scaler.get(),
                           c.max_grad_norm == 0.0f ? nullptr : &options, kStream));
}

/// Calls mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step,
/// mp_scaler_update.
void separate_steps(StepRun &side, const StepCase &c) {
  const mp_tensor_list_t grads = side.run.grads().list();
  const mp_scaler_t scaler = side.scaler.get();
  const DeviceFloat one(1.0f), norm(-1.0f), amax(-1.0f), clipped(-1.0f), flag(0.0f);
  const float *const inv_scale =
      scaler != nullptr ? mp_scaler_get_inv_scale_address(scaler) : one.data();
  float *const found_inf =
      scaler != nullptr ? mp_scaler_get_found_inf_address(scaler) : flag.data();

  require_ok(mp_check_nonfinite(grads, found_inf, kStream));
  const DeviceBuffer<float> tensor_norms(side.tensor_norms.size());
  require_ok(mp_l2norm(grads, norm.data(), tensor_norms.data(), kStream));
  require_ok(mp_amax(grads, amax.data(), nullptr, kStream));
  const float *grad_scale = inv_scale;
  if (c.max_grad_norm > 0.0f) {
    require_ok(mp_clip_factor(context(), norm.data(), inv_scale, c.max_grad_norm, clipped.data(),
                              kStream));
    grad_scale = clipped.data();
  }
  if (c.with_outputs) {
    side.grad_norm.set(read_float(inv_scale) * norm.value());
    std::vector<float> norms = tensor_norms.download();
    for (float &tensor_norm : norms) tensor_norm *= read_float(inv_scale);
    side.tensor_norms.upload(norms);
    side.skipped.set(read_float(found_inf) != 0.0f ? 1.0f : 0.0f);
  }
  side.run.step(grad_scale, found_inf);
  if (scaler != nullptr) require_ok(mp_scaler_update(scaler, amax.data(), kStream));
}

/// Raises the flag like a GEMM epilogue with an overflowing activation gradient.
void raise_flag(const StepRun &side) {
  write_float(mp_scaler_get_found_inf_address(side.scaler.get()), 1.0f);
}

void check_case(const StepCase &c, int steps, uint64_t seed) {
  StepRun fused(c.optimizer, c.scaler), separate(c.optimizer, c.scaler);
  Random random(seed);
  int64_t applied = 0;
  for (int step = 0; step < steps; ++step) {
    bool skips = upload_gradients({&fused.run.grads(), &separate.run.grads()}, random);
    if (fused.scaler && random.integer(0, 7) == 0) {
      raise_flag(fused);
      raise_flag(separate);
      skips = true;
    }
    fused_step(fused, c);
    separate_steps(separate, c);
    CAPTURE(step, skips, c.optimizer.kind, c.max_grad_norm, c.with_outputs);
    check_equal(fused, separate);
    applied += !skips;
    CHECK(fused.run.t() == applied);
    if (c.with_outputs) CHECK(fused.skipped.value() == (skips ? 1.0f : 0.0f));
  }
}

// ---------------------------------------------------------------------------- cases

std::vector<std::optional<mp_scaler_config_t>> all_scalers() {
  mp_scaler_config_t fixed = mp_scaler_config_default(MP_SCALER_POLICY_STATIC);
  fixed.init_scale = 96.0f;  // inexact reciprocal
  mp_scaler_config_t backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  backoff.growth_interval = 3;
  backoff.hysteresis = 2;
  mp_scaler_config_t lognormal = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
  lognormal.growth_interval = 3;
  const mp_scaler_config_t logmax = mp_scaler_config_preset(MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX);
  return {std::nullopt, fixed, backoff, lognormal, logmax};
}

}  // namespace

// ---------------------------------------------------------------------------- tests

TEST_CASE("step: equals its parts for every rule, policy and clipping", "[step][short]") {
  uint64_t seed = 1;
  for (const OptimizerSpec &optimizer : {momentum_spec(), adamw_spec()}) {
    for (const auto &scaler : all_scalers()) {
      for (const float max_grad_norm : {0.0f, 0.5f, 1e9f}) {
        for (const bool with_outputs : {false, true}) {
          INFO("policy " << (scaler ? static_cast<int>(scaler->policy) : -1));
          check_case({optimizer, scaler, max_grad_norm, with_outputs}, 8, ++seed);
        }
      }
    }
  }
}

TEST_CASE("step: equals its parts for every kind of optimizer", "[step][short]") {
  uint64_t seed = 50;
  for (const OptimizerSpec &optimizer : all_kinds()) {
    for (const auto &scaler : all_scalers()) {
      check_case({optimizer, scaler, 0.5f, true}, 6, ++seed);
      check_case({with_everything(optimizer), scaler, 0.5f, true}, 6, ++seed);
    }
  }
}

TEST_CASE("step: equals its parts for every rule with all its options", "[step]") {
  uint64_t seed = 300;
  for (const OptimizerSpec &optimizer : all_rules()) {
    for (const auto &scaler : all_scalers()) {
      check_case({with_everything(optimizer), scaler, 0.5f, true}, 6, ++seed);
    }
  }
}

TEST_CASE("step: equals its parts on awkward tensors", "[step]") {
  for (OptimizerSpec optimizer : all_kinds()) {
    optimizer.groups[0].max_tensor_norm = .25f;
    optimizer.grads = awkward_tensors();
    optimizer.model = mixed_models(optimizer.grads.size());
    check_case({optimizer, all_scalers()[3], 0.5f, true}, 5, 100);
  }
}

TEST_CASE("step: equals its parts over a long run", "[step]") {
  for (const auto &scaler : all_scalers()) {
    check_case({adamw_spec(), scaler, 2.0f, true}, 200, 200);
  }
}

TEST_CASE("step: S below 1 makes gradients beyond FP16 representable", "[step][short]") {
  constexpr double kGrad = 0x1p20;
  const auto train = [&](mp_scaler_policy_t policy, float min_scale) {
    mp_scaler_config_t config = mp_scaler_config_default(policy);
    config.init_scale = 4.0f;
    config.min_scale = min_scale;
    const StepCase c{spec_of(MP_OPT_SGD, sgd_hyper(0x1p-20f, 0)), config, 0.0f, true};
    StepRun side(c.optimizer, c.scaler);
    for (int step = 0; step < 12; ++step) {
      side.set_grads(kGrad * scale_of(side.scaler));
      fused_step(side, c);
    }
    const double applied = static_cast<double>(side.run.t());
    CHECK(side.run.master().download() ==
          constant_values(side.run.master().specs(), 1.0 - applied));
    return applied;
  };
  // S falls from 4 to 2^-5 in seven overflows; a gradient of 2^20 becomes 2^15.
  for (const mp_scaler_policy_t policy : {MP_SCALER_POLICY_BACKOFF, MP_SCALER_POLICY_LOGNORMAL}) {
    CHECK(train(policy, 0x1p-10f) == 5);
    CHECK(train(policy, 1.0f) == 0);
  }
}

TEST_CASE("step: set_data replaces the optimizer's gradients", "[step][short]") {
  const StepCase c{momentum_spec(), all_scalers()[1], 0.5f, true};
  StepRun side(c.optimizer, c.scaler), same(c.optimizer, c.scaler);
  TensorSet other(c.optimizer.grads);
  Random random(5);
  const TensorValues values = real_values(c.optimizer.grads, random, 1.0);
  other.upload(values);
  same.run.grads().upload(values);
  require_ok(mp_tensor_list_set_data(side.run.grads().list(), other.pointers().data(), kStream));
  fused_step(side, c);
  fused_step(same, c);
  CHECK(side.run.state() == same.run.state());
}
