// mp_grads_accumulate, mp_grads_to_fp32 and MP_STEP_FLAG_UNSCALED: sums over micro-batches between
// which the scale may change.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

constexpr uint32_t kFirst = MP_ACCUMULATE_FLAG_FIRST, kLast = MP_ACCUMULATE_FLAG_LAST;

/// Returns a scaler that starts at `scale`.
UniqueScaler scaler_at(float scale, mp_scaler_policy_t policy = MP_SCALER_POLICY_STATIC) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.min_scale = 0x1p-20f;
  config.init_scale = scale;
  return make_scaler(config);
}

void set_scale(const UniqueScaler &scaler, float scale) {
  mp_scaler_state_t state = state_of(scaler.get());
  state.scale = scale;
  set_state(scaler.get(), state);
}

void update(const UniqueScaler &scaler) {
  require_ok(mp_scaler_update(scaler.get(), nullptr, kStream));
}

void accumulate(const UniqueScaler &scaler, const TensorSet &grads, const TensorSet &sums,
                float weight, uint32_t flags) {
  require_ok(mp_grads_accumulate(scaler.get(), grads.list(), sums.list(), weight, flags, kStream));
}

TensorValues scaled(TensorValues values, double by) {
  for (std::vector<double> &tensor : values)
    for (double &value : tensor) value *= by;
  return values;
}

void add(TensorValues &sums, const TensorValues &values, double weight) {
  for (size_t t = 0; t < sums.size(); ++t)
    for (size_t i = 0; i < sums[t].size(); ++i) sums[t][i] += weight * values[t][i];
}

double amax_of(const TensorValues &values) {
  double amax = 0.0;
  for (const std::vector<double> &tensor : values)
    for (const double value : tensor) amax = std::max(amax, std::fabs(value));
  return amax;
}

/// Sums micro-batches of small integers, each with a different power of two as S: exact.
void check_exact_window(const std::vector<TensorSpec> &specs, const std::vector<float> &weights,
                        uint64_t seed) {
  Random random(seed);
  const UniqueScaler scaler = scaler_at(1.0f);
  TensorSet grads(specs), sums(with_dtype(specs, MP_FP32));  // initially NaN
  TensorValues wanted = constant_values(specs, 0.0);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto scale = static_cast<float>(std::exp2(random.integer(-8, 12)));
    set_scale(scaler, scale);
    const TensorValues values = integer_values(specs, random, 7);
    grads.upload(scaled(values, scale));
    const std::vector<uint8_t> before = grads.bits();
    accumulate(scaler, grads, sums, weights[i], i == 0 ? kFirst : 0);
    add(wanted, values, weights[i]);
    CAPTURE(i, scale);
    CHECK(count_differences(sums.download(), wanted) == 0);
    CHECK(grads.bits() == before);
    CHECK(flag_of(scaler) == 0.0f);
    update(scaler);
    CHECK(state_of(scaler.get()).skipped == 0);
  }
}

// ---------------------------------------------------------------------------- windows and steps

constexpr int kMicroBatches = 3;

/// When the scaler is updated: by the step at the end of a window, or after each micro-batch.
enum class Usage { scale_per_window, scale_per_batch };

/// Gradient descent on sums over micro-batches: w -= sum.
struct Training : StepRun {
  Training(Usage usage, mp_scaler_policy_t policy)
      : StepRun(spec()), usage(usage), grads(small_tensors()) {
    scaler = scaler_at(1024.0f, policy);
    run.master().fill(100.0);
  }

  static OptimizerSpec spec() {
    OptimizerSpec spec;
    spec.groups = {sgd_hyper(1.0f, 0.0f)};
    spec.grads = with_dtype(small_tensors(), MP_FP32);
    return spec;
  }

  /// Accumulates gradients of 2, with one element of one micro-batch set to `bad`, and steps.
  void window(int bad_batch = -1, size_t tensor = 0, int64_t at = 0, double bad = 0.0) {
    for (int i = 0; i < kMicroBatches; ++i) {
      grads.fill(2.0 * scale_of(scaler));
      if (i == bad_batch) grads.inject(tensor, at, encode(grads.spec(tensor).dtype, bad));
      accumulate(scaler, grads, run.grads(), 0.5f, i == 0 ? kFirst : 0);
      if (usage == Usage::scale_per_batch) update(scaler);
    }
    if (usage == Usage::scale_per_window) return step(step_options(MP_STEP_FLAG_UNSCALED));
    mp_step_options_t options = step_options();
    options.found_inf = skipped.data();
    require_ok(mp_scale_step(run.get(), nullptr, &options, kStream));
  }

  Usage usage;
  TensorSet grads;
};

/// Takes a step with an overflow between clean ones.
void check_discarded(Usage usage, mp_scaler_policy_t policy, int batch, size_t tensor, int64_t at,
                     double bad) {
  Training training(usage, policy);
  training.window();
  CHECK(training.skipped.value() == 0.0f);
  const OptimizerState before = training.run.state();
  const mp_scaler_state_t clean = state_of(training.scaler.get());

  training.window(batch, tensor, at, bad);
  CHECK(training.run.state() == before);
  CHECK(training.skipped.value() == 1.0f);
  const mp_scaler_state_t state = state_of(training.scaler.get());
  CHECK(state.steps == 2 * clean.steps);
  CHECK(state.skipped == 1);
  CHECK(state.skipped_nan == (std::isnan(bad) ? 1 : 0));
  CHECK(flag_of(training.scaler) == 0.0f);
  if (policy == MP_SCALER_POLICY_BACKOFF) CHECK(state.scale == clean.scale / 2);

  training.window();
  CHECK(training.skipped.value() == 0.0f);
  CHECK(training.run.t() == 2);
  const TensorValues wanted =
      constant_values(training.run.master().specs(), 100.0 - 2.0 * kMicroBatches);
  CHECK(count_differences(training.run.master().download(), wanted) == 0);
  CHECK(state_of(training.scaler.get()).skipped == 1);
}

/// Compares a scaler's state after windows of three micro-batches with that of one which is given
/// the largest gradients.
void check_learning(const std::vector<TensorSpec> &specs) {
  const UniqueScaler windows = scaler_at(64.0f, MP_SCALER_POLICY_LOGNORMAL);
  const UniqueScaler told = scaler_at(64.0f, MP_SCALER_POLICY_LOGNORMAL);
  TensorSet grads(specs), sums(with_dtype(specs, MP_FP32));
  Random random(6);
  for (int step = 0; step < 6; ++step) {
    double amax = 0.0;
    for (int i = 0; i < 3; ++i) {
      grads.upload(real_values(grads.specs(), random, std::exp2(random.real(-4.0, 4.0))));
      amax = std::max(amax, amax_of(grads.download()));
      accumulate(windows, grads, sums, i == 1 ? 0.0f : 700.0f, i == 0 ? kFirst : 0);
    }
    update(windows);
    const DeviceFloat measured(static_cast<float>(amax));
    require_ok(mp_scaler_update(told.get(), measured.data(), kStream));
    CHECK(same_state(windows, told));
  }
  // The last update consumed the measured amax.
  expect_status(mp_scaler_update(windows.get(), nullptr, kStream), MP_ERROR_INVALID_ARGUMENT);
}

}  // namespace

// ---------------------------------------------------------------------------- sums

TEST_CASE("accumulate: sums are exact if S differs in each micro-batch", "[accumulate][short]") {
  const std::vector<TensorSpec> one_each = {
      {MP_FP16, 0}, {MP_BF16, 1, 3}, {MP_FP32, 1}, {MP_FP16, 1}, {MP_FP32, 0}};
  uint64_t seed = 1;
  for (const std::vector<TensorSpec> &specs :
       {std::vector<TensorSpec>{}, {{MP_FP16, 0}}, one_each, small_tensors()}) {
    check_exact_window(specs, {1.0f}, ++seed);
    check_exact_window(specs, {0.25f, 0.25f, 0.25f, 0.25f}, ++seed);
    check_exact_window(specs, {1.0f, 3.0f, 0.0f, -2.0f, 1.0f}, ++seed);
    check_exact_window(specs, {0.0f, 1.0f}, ++seed);
  }
}

TEST_CASE("accumulate: sums are exact for awkward sizes, types and alignments", "[accumulate]") {
  check_exact_window(awkward_tensors(), {1.0f, 0.5f, -4.0f}, 20);
}

TEST_CASE("accumulate: the factor is rounded once and each sum once", "[accumulate][short]") {
  const UniqueScaler scaler = scaler_at(96.0f);
  const float weight = 1.0f / 3.0f;
  const float factor = weight * read_float(mp_scaler_get_inv_scale_address(scaler.get()));
  TensorSet grads(small_tensors()), sums(with_dtype(small_tensors(), MP_FP32));
  Random random(3);
  TensorValues wanted = constant_values(grads.specs(), 0.0);
  for (int i = 0; i < 3; ++i) {
    grads.upload(real_values(grads.specs(), random, 1000.0));
    const TensorValues values = grads.download();
    for (size_t t = 0; t < values.size(); ++t) {
      for (size_t j = 0; j < values[t].size(); ++j) {
        const auto x = static_cast<float>(values[t][j]);
        wanted[t][j] = i == 0 ? factor * x : std::fma(factor, x, static_cast<float>(wanted[t][j]));
      }
    }
    accumulate(scaler, grads, sums, weight, i == 0 ? kFirst : 0);
    CHECK(count_differences(sums.download(), wanted) == 0);
  }
}

TEST_CASE("grads_to_fp32: result equals mp_unscale for any S", "[accumulate][short]") {
  for (const float scale : {1.0f, 96.0f, 0x1p-10f, 65536.0f}) {
    const UniqueScaler scaler = scaler_at(scale);
    TensorSet grads(small_tensors());
    TensorSet out(with_dtype(small_tensors(), MP_FP32)), unscaled(out.specs());
    Random random(5);
    grads.upload(real_values(grads.specs(), random, 1000.0));
    require_ok(mp_grads_to_fp32(scaler.get(), grads.list(), out.list(), kStream));
    const DeviceFloat found_inf(0.0f);
    require_ok(mp_unscale(grads.list(), unscaled.list(),
                          mp_scaler_get_inv_scale_address(scaler.get()), found_inf.data(),
                          kStream));
    CHECK(out.bits() == unscaled.bits());
    CHECK(flag_of(scaler) == 0.0f);
    TensorSet in_place(out.specs());
    in_place.upload(grads.download());
    require_ok(mp_grads_to_fp32(scaler.get(), in_place.list(), in_place.list(), kStream));
    CHECK(in_place.bits() == unscaled.bits());
  }
}

// ---------------------------------------------------------------------------- overflow

TEST_CASE("accumulate: an overflow discards only its own window", "[accumulate][short]") {
  for (const Usage usage : {Usage::scale_per_window, Usage::scale_per_batch}) {
    for (int batch = 0; batch < kMicroBatches; ++batch) {
      for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
        CAPTURE(static_cast<int>(usage), batch, bad);
        check_discarded(usage, MP_SCALER_POLICY_BACKOFF, batch, 0, 32, bad);  // the odd tail
      }
      check_discarded(usage, MP_SCALER_POLICY_BACKOFF, batch, 2, 0, HUGE_VAL);
      check_discarded(usage, MP_SCALER_POLICY_STATIC, batch, 3, 6, HUGE_VAL);
    }
  }
}

TEST_CASE("accumulate: overflows of opposite signs do not cancel", "[accumulate][short]") {
  const UniqueScaler scaler = scaler_at(1.0f, MP_SCALER_POLICY_BACKOFF);
  TensorSet grads({{MP_FP16, 3}}), sums({{MP_FP32, 3}});
  for (const double bad : {HUGE_VAL, -HUGE_VAL}) {
    grads.upload({{1.0, bad, 1.0}});
    accumulate(scaler, grads, sums, 1.0f, bad > 0.0 ? kFirst : 0);
  }
  CHECK(std::isnan(sums.download()[0][1]));
  CHECK(flag_of(scaler) == 1.0f);
}

TEST_CASE("accumulate: an overflow is detected with weight = 0", "[accumulate][short]") {
  for (const double bad : {HUGE_VAL, std::nan("")}) {
    const UniqueScaler scaler = scaler_at(8.0f, MP_SCALER_POLICY_BACKOFF);
    TensorSet grads({{MP_BF16, 9, 1}}), sums({{MP_FP32, 9}});
    grads.fill(1.0);
    grads.inject(0, 8, encode(MP_BF16, bad));
    accumulate(scaler, grads, sums, 0.0f, kFirst);
    CHECK(flag_of(scaler) == 1.0f);
    CHECK(std::isnan(sums.download()[0][8]));
    CHECK(sums.download()[0][7] == 0.0);
    update(scaler);
    CHECK(state_of(scaler.get()).skipped_nan == (std::isnan(bad) ? 1 : 0));
  }
}

TEST_CASE("accumulate: a sum that overflows fp32 is detected by the last call or by the step",
          "[accumulate][short]") {
  const UniqueScaler scaler = scaler_at(1.0f);
  OptimizerSpec spec = Training::spec();
  spec.grads = {{MP_FP32, 5, 1}};
  OptimizerRun run(spec);
  run.master().upload(constant_values(spec.grads, 1.0));
  const OptimizerState before = run.state();
  TensorSet grads(spec.grads);
  grads.upload({{1.0, 3e38, 1.0, 1.0, 1.0}});
  for (const uint32_t flags : {kLast, 0u}) {
    accumulate(scaler, grads, run.grads(), 1.0f, kFirst);
    accumulate(scaler, grads, run.grads(), 1.0f, flags);
    CHECK(flag_of(scaler) == (flags == kLast ? 1.0f : 0.0f));
    const mp_step_options_t options = step_options(MP_STEP_FLAG_UNSCALED);
    require_ok(mp_scale_step(run.get(), scaler.get(), &options, kStream));
    CHECK(run.state() == before);
    CHECK(flag_of(scaler) == 0.0f);
  }
  CHECK(state_of(scaler.get()).skipped == 2);
}

TEST_CASE("accumulate: a sum that overflows fp32 is detected in every warp",
          "[accumulate][short]") {
  const UniqueScaler scaler = scaler_at(1.0f);
  const std::vector<TensorSpec> specs = {{MP_FP32, 3000}};
  TensorSet grads(specs), sums(specs);
  for (size_t at = 0; at < 3000; at += 187) {
    TensorValues values = constant_values(specs, 1.0);
    values[0][at] = 3e38;
    grads.upload(values);
    CAPTURE(at);
    accumulate(scaler, grads, sums, 2.0f, kFirst | kLast);
    CHECK(flag_of(scaler) == 1.0f);
    update(scaler);
    accumulate(scaler, grads, sums, 1.0f, kFirst);
    CHECK(flag_of(scaler) == 0.0f);
    accumulate(scaler, grads, sums, 1.0f, kLast);
    CHECK(flag_of(scaler) == 1.0f);
    update(scaler);
  }
}

TEST_CASE("accumulate: S = 0 counts as an overflow", "[accumulate][short]") {
  const UniqueScaler scaler = make_scaler(mp_scaler_config_preset(MP_SCALER_PRESET_TORCH));
  for (int i = 0; i < 170; ++i) {
    write_float(mp_scaler_get_found_inf_address(scaler.get()), 1.0f);
    update(scaler);
  }
  REQUIRE(scale_of(scaler) == 0.0f);
  TensorSet grads({{MP_FP16, 9}}), out({{MP_FP32, 9}});
  grads.fill(0.0);
  require_ok(mp_grads_to_fp32(scaler.get(), grads.list(), out.list(), kStream));
  CHECK(flag_of(scaler) == 1.0f);
  CHECK(outcome_sync(scaler, 171) == MP_STEP_OUTCOME_OVERFLOW);
}

// ---------------------------------------------------------------------------- scaler

TEST_CASE("accumulate: the scaler receives the largest scaled gradient of the window",
          "[accumulate][short]") {
  check_learning(small_tensors());
  check_learning({{MP_FP16, 3000}});  // one in every warp of a block
}

TEST_CASE("accumulate: the last call of several lists sets the outcome",
          "[accumulate][query][short]") {
  const UniqueScaler scaler = scaler_at(8.0f, MP_SCALER_POLICY_BACKOFF);
  TensorSet grads({{MP_FP16, 9}}), sums({{MP_FP32, 9}});
  TensorSet other_grads({{MP_BF16, 7}, {MP_FP16, 5}}), other_sums({{MP_FP32, 7}, {MP_FP32, 5}});
  for (int64_t step = 1; step <= 9; ++step) {
    const bool bad = step % 3 == 0, other_bad = step % 4 == 0;
    grads.fill(bad ? HUGE_VAL : 1.0);
    other_grads.fill(other_bad ? HUGE_VAL : 1.0);
    accumulate(scaler, grads, sums, 1.0f, kFirst);
    CHECK(outcome_sync(scaler, step) == MP_STEP_OUTCOME_PENDING);
    const bool in_two_calls = step % 2 == 0;
    if (in_two_calls) {
      accumulate(scaler, other_grads, other_sums, 1.0f, kFirst);
      CHECK(outcome_sync(scaler, step) == MP_STEP_OUTCOME_PENDING);
    }
    accumulate(scaler, other_grads, other_sums, 1.0f, in_two_calls ? kLast : kFirst | kLast);
    const mp_step_outcome_t wanted =
        bad || other_bad ? MP_STEP_OUTCOME_OVERFLOW : MP_STEP_OUTCOME_TAKEN;
    CHECK(outcome_sync(scaler, step) == wanted);
    update(scaler);
    CHECK(outcome_sync(scaler, step) == wanted);
    CHECK(outcome_sync(scaler, step + 1) == MP_STEP_OUTCOME_PENDING);
  }
}

TEST_CASE("unscaled step: a learning scaler requires a measured amax", "[accumulate][short]") {
  for (const mp_scaler_policy_t policy : {MP_SCALER_POLICY_LOGNORMAL, MP_SCALER_POLICY_LOGMAX}) {
    Training training(Usage::scale_per_window, policy);
    training.set_grads(1.0);
    const OptimizerState before = training.run.state();
    const mp_step_options_t options = step_options(MP_STEP_FLAG_UNSCALED);
    expect_status(training.try_step(options), MP_ERROR_INVALID_ARGUMENT);
    CHECK(training.run.state() == before);
    training.window();
    CHECK(training.run.t() == 1);
    expect_status(training.try_step(options), MP_ERROR_INVALID_ARGUMENT);
    CHECK(state_of(training.scaler.get()).steps == 1);
  }
}
