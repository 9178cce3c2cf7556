// mp_scale_step equals, bit for bit, all other ways of taking a step, first the sequence of calls
// that mpcore/step.h documents.
//
// Two runs with equal tensors and scalers receive the same gradients in each step; one makes the
// fused call, the other takes the step in another way.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

// ---------------------------------------------------------------------------- ways

/// Calls mp_check_nonfinite, mp_l2norm, mp_amax, mp_clip_factor, mp_optimizer_step,
/// mp_scaler_update.
void make_separate_calls(StepRun &side, mp_step_options_t given, const TensorSet &) {
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
  if (given.max_grad_norm > 0.0f) {
    require_ok(mp_clip_factor(context(), norm.data(), inv_scale, given.max_grad_norm,
                              clipped.data(), kStream));
    grad_scale = clipped.data();
  }
  if (side.reports_norms) {
    side.grad_norm.set(read_float(inv_scale) * norm.value());
    std::vector<float> norms = tensor_norms.download();
    for (float &tensor_norm : norms) tensor_norm *= read_float(inv_scale);
    side.tensor_norms.upload(norms);
  }
  side.skipped.set(read_float(found_inf) != 0.0f ? 1.0f : 0.0f);
  side.run.step(grad_scale, found_inf);
  if (scaler != nullptr) require_ok(mp_scaler_update(scaler, amax.data(), kStream));
}

void pass_no_options(StepRun &side, mp_step_options_t, const TensorSet &) {
  const int64_t t = side.run.t();
  require_ok(mp_scale_step(side.run.get(), side.scaler.get(), nullptr, kStream));
  side.skipped.set(side.run.t() == t ? 1.0f : 0.0f);
}

void check_before(StepRun &side, mp_step_options_t options, const TensorSet &) {
  const DeviceFloat amax(-1.0f);
  check_gradients(side, amax);
  const float measured = amax.value();
  options.flags = MP_STEP_FLAG_CHECKED;
  options.amax = amax.data();
  side.step(options);
  CHECK(same_bits(amax.value(), measured));
}

/// Stores the unscaled gradients of `batch`, which are the scaled ones if there is no scaler.
void accumulate_before(StepRun &side, mp_step_options_t options, const TensorSet &batch) {
  const mp_tensor_list_t sums = side.run.grads().list();
  if (side.scaler)
    require_ok(mp_grads_accumulate(side.scaler.get(), batch.list(), sums, 1.0f,
                                   MP_ACCUMULATE_FLAG_FIRST, kStream));
  else
    side.run.grads().upload(batch.download());
  options.flags = MP_STEP_FLAG_UNSCALED;
  side.step(options);
}

void convert_before(StepRun &side, mp_step_options_t options, const TensorSet &batch) {
  require_ok(mp_grads_to_fp32(side.scaler.get(), batch.list(), side.run.grads().list(), kStream));
  options.flags = MP_STEP_FLAG_UNSCALED | MP_STEP_FLAG_CHECKED;
  side.step(options);
}

/// Updates the weights without the scaler, like another library's optimizer.
void use_any_optimizer(StepRun &side, mp_step_options_t, const TensorSet &batch) {
  require_ok(mp_grads_to_fp32(side.scaler.get(), batch.list(), side.run.grads().list(), kStream));
  side.skipped.set(flag_of(side.scaler));
  side.run.step(nullptr, mp_scaler_get_found_inf_address(side.scaler.get()));
  require_ok(mp_scaler_update(side.scaler.get(), nullptr, kStream));
}

void update_after(StepRun &side, mp_step_options_t options, const TensorSet &) {
  options.flags = MP_STEP_FLAG_KEEP_SCALER;
  side.step(options);
  require_ok(mp_scaler_update(side.used_scaler(), nullptr, kStream));
}

void be_the_only_rank(StepRun &side, mp_step_options_t options, const TensorSet &) {
  const mp_comm_t comm = mp_comm_default();
  options.flags = MP_STEP_FLAG_SHARDED;
  options.comm = &comm;
  side.step(options);
}

void count_overflows(StepRun &side, mp_step_options_t options, const TensorSet &) {
  const DeviceValue<int64_t> overflows(0);
  options.model_overflows = overflows.data();
  side.step(options);
}

struct Way {
  const char *name;
  /// @param batch  scaled gradients, if the run's own become sums in fp32
  void (*step)(StepRun &side, mp_step_options_t options, const TensorSet &batch);
  bool has_norms = true;     ///< supports norms and clipping
  bool accumulates = false;  ///< unscales first; norms are equal if S is a power of two
};

const Way kSeparateCalls = {"separate calls", make_separate_calls};
const Way kWays[] = {
    kSeparateCalls,
    {"without options", pass_no_options, false},
    {"checked gradients", check_before, false},
    {"unscaled gradients", accumulate_before, true, true},
    {"unscaled and checked gradients", convert_before, false, true},
    {"unscaled gradients and any optimizer", use_any_optimizer, false, true},
    {"a separate update of the scaler", update_after},
    {"a communicator of one rank", be_the_only_rank},
    {"a count of overflows", count_overflows},
};

// ---------------------------------------------------------------------------- comparison

using Scaler = std::optional<mp_scaler_config_t>;

void check_way(const Way &way, const OptimizerSpec &spec, Scaler config, float max_grad_norm,
               int steps, uint64_t seed) {
  OptimizerSpec other_spec = spec;
  if (way.accumulates) {
    if (!config && way.step != accumulate_before) return;
    if (config && config->policy == MP_SCALER_POLICY_LOGMAX) return;
    if (way.has_norms && config && config->policy == MP_SCALER_POLICY_STATIC)
      config->init_scale = 1024.0f;
    other_spec.grads = with_dtype(spec.grads, MP_FP32);
  }
  StepRun fused(spec, config), other(other_spec, config);
  TensorSet batch(spec.grads);
  const mp_step_options_t options = step_options(0, max_grad_norm);
  Random random(seed);
  // A step must also clip by norms that it does not report.
  fused.reports_norms = other.reports_norms = way.has_norms && random.integer(0, 1) == 1;
  int64_t applied = 0;
  for (int step = 1; step <= steps; ++step) {
    bool skips = upload_gradients(
        {&fused.run.grads(), way.accumulates ? &batch : &other.run.grads()}, random);
    if (config && random.integer(0, 7) == 0) {
      raise_flag(fused.scaler);
      raise_flag(other.scaler);
      skips = true;
    }
    fused.step(options);
    way.step(other, options, batch);
    CAPTURE(way.name, step, skips, spec.kind, config ? static_cast<int>(config->policy) : -1);
    check_equal(fused, other);
    applied += !skips;
    CHECK(fused.run.t() == applied);
    CHECK(fused.skipped.value() == (skips ? 1.0f : 0.0f));
    if (config) CHECK(outcome_sync(other.scaler, step) == outcome_sync(fused.scaler, step));
  }
}

std::vector<Scaler> all_scalers() {
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

TEST_CASE("step: equals every other way of taking it", "[step][short]") {
  uint64_t seed = 1;
  for (const Way &way : kWays) {
    for (const OptimizerSpec &spec : all_kinds()) {
      for (const Scaler &scaler : all_scalers()) {
        check_way(way, spec, scaler, 0.0f, 4, ++seed);
        if (way.has_norms) check_way(way, with_everything(spec), scaler, 0.5f, 4, ++seed);
      }
    }
  }
}

TEST_CASE("step: equals its parts for every rule with all options, awkward tensors, many steps",
          "[step]") {
  uint64_t seed = 300;
  for (const Scaler &scaler : all_scalers()) {
    for (const OptimizerSpec &spec : all_rules())
      check_way(kSeparateCalls, with_everything(spec), scaler, 0.5f, 6, ++seed);
    check_way(kSeparateCalls, adamw_spec(), scaler, 2.0f, 80, ++seed);
  }
  for (OptimizerSpec spec : all_kinds()) {
    spec.groups[0].max_tensor_norm = .25f;
    spec.grads = awkward_tensors();
    spec.model = mixed_models(spec.grads.size());
    check_way(kSeparateCalls, spec, all_scalers()[3], 0.5f, 4, ++seed);
  }
}

TEST_CASE("step: S below 1 makes gradients beyond FP16 representable", "[step][short]") {
  constexpr double kGrad = 0x1p20;
  const auto train = [&](mp_scaler_policy_t policy, float min_scale) {
    mp_scaler_config_t config = mp_scaler_config_default(policy);
    config.init_scale = 4.0f;
    config.min_scale = min_scale;
    StepRun side(spec_of(MP_OPT_SGD, sgd_hyper(0x1p-20f, 0)), config);
    for (int step = 0; step < 12; ++step) {
      side.set_grads(kGrad * scale_of(side.scaler));
      side.step();
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
  StepRun side(momentum_spec()), same(momentum_spec());
  TensorSet other(side.run.grads().specs());
  Random random(5);
  const TensorValues values = real_values(other.specs(), random, 1.0);
  other.upload(values);
  same.run.grads().upload(values);
  require_ok(mp_tensor_list_set_data(side.run.grads().list(), other.pointers().data(), kStream));
  side.step();
  same.step();
  check_equal(side, same);
}
