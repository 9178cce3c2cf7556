// One scaler for several optimizers, and the flag of a step.
#include "checked_optimizer.h"

using namespace mptest;

namespace {

/// An optimizer whose gradients all equal `grad`.
struct Part : StepRun {
  explicit Part(double grad) : StepRun(spec_of(MP_OPT_SGD, sgd_hyper(0.5f, 0.9f))) {
    set_grads(grad);
  }
  void check(const UniqueScaler &scaler) {
    require_ok(mp_check_nonfinite(run.grads().list(), mp_scaler_get_found_inf_address(scaler.get()),
                                  kStream));
  }
  void step(const UniqueScaler &scaler, uint32_t flags) {
    StepRun::step(step_options(flags), scaler.get());
  }
};

}  // namespace

TEST_CASE("shared scaler: both optimizers skip if either overflows", "[step][short]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    for (const bool in_a : {true, false}) {
      for (const double value : {HUGE_VAL, std::nan("")}) {
        const UniqueScaler scaler = make_scaler(policy);
        Part a(1.0), b(2.0);
        (in_a ? a : b).inject(value);
        const OptimizerState a_before = a.run.state(), b_before = b.run.state();
        for (int skips = 1; skips <= 2; ++skips) {
          b.check(scaler);
          a.step(scaler, MP_STEP_FLAG_KEEP_SCALER);
          CHECK(flag_of(scaler) == 1.0f);
          b.step(scaler, 0);
          CAPTURE(policy, in_a, value, skips);
          CHECK(a.run.state() == a_before);
          CHECK(b.run.state() == b_before);
          CHECK(a.skipped.value() == 1.0f);
          CHECK(b.skipped.value() == 1.0f);
          CHECK(flag_of(scaler) == 0.0f);
          CHECK(state_of(scaler.get()).steps == skips);
          CHECK(state_of(scaler.get()).skipped == skips);
          CHECK(state_of(scaler.get()).skipped_nan == (std::isnan(value) ? skips : 0));
        }
        (in_a ? a : b).set_grads(1.0);
        b.check(scaler);
        a.step(scaler, MP_STEP_FLAG_KEEP_SCALER);
        b.step(scaler, 0);
        CHECK(a.run.t() == 1);
        CHECK(b.run.t() == 1);
      }
    }
  }
}

TEST_CASE("shared scaler: an optimizer stepped before the overflow is applied, as in torch",
          "[step][short]") {
  const UniqueScaler scaler = make_scaler(MP_SCALER_POLICY_BACKOFF);
  Part a(1.0), b(2.0);
  b.inject(HUGE_VAL);
  a.step(scaler, MP_STEP_FLAG_KEEP_SCALER);
  b.step(scaler, 0);
  CHECK(a.run.t() == 1);
  CHECK(b.run.t() == 0);
  CHECK(state_of(scaler.get()).skipped == 1);
}

TEST_CASE("shared scaler: lognormal uses the largest gradient of all optimizers", "[step][short]") {
  const double grads[][2] = {{8.0, 0.5}, {0.5, 8.0}, {0.25, 0.125}};
  const UniqueScaler shared = make_scaler(MP_SCALER_POLICY_LOGNORMAL);
  const UniqueScaler alone = make_scaler(MP_SCALER_POLICY_LOGNORMAL);
  const UniqueScaler updated = make_scaler(MP_SCALER_POLICY_LOGNORMAL);
  for (const auto &pair : grads) {
    Part a(pair[0]), b(pair[1]), larger(std::max(pair[0], pair[1]));
    a.step(shared, MP_STEP_FLAG_KEEP_SCALER);
    b.step(shared, 0);
    larger.step(alone, 0);
    a.step(updated, MP_STEP_FLAG_KEEP_SCALER);
    b.step(updated, MP_STEP_FLAG_KEEP_SCALER);
    require_ok(mp_scaler_update(updated.get(), nullptr, kStream));
    CHECK(same_state(shared, alone));
    CHECK(same_state(updated, alone));
  }
  // The last update consumed the measured amax.
  expect_status(mp_scaler_update(updated.get(), nullptr, kStream), MP_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("shared scaler: MP_STEP_FLAG_KEEP_SCALER keeps the optimizer's internal scaler",
          "[step][short]") {
  Part a(1.0);
  a.StepRun::step(step_options(MP_STEP_FLAG_KEEP_SCALER));
  CHECK(a.run.t() == 1);
  CHECK(state_of(mp_optimizer_get_scaler(a.run.get())).steps == 0);
}

TEST_CASE("step: any flag except 0 skips", "[step][short]") {
  for (const float found_inf : {1.0f, 2.0f, -1.0f, 0x1p-149f, NAN, -0.0f}) {
    const bool skips = found_inf != 0.0f;
    const UniqueScaler scaler = make_scaler(MP_SCALER_POLICY_BACKOFF);
    Part a(1.0);
    const OptimizerState before = a.run.state();
    write_float(mp_scaler_get_found_inf_address(scaler.get()), found_inf);
    a.step(scaler, 0);
    CAPTURE(found_inf);
    CHECK((a.run.state() == before) == skips);
    CHECK(a.skipped.value() == (skips ? 1.0f : 0.0f));
    CHECK(state_of(scaler.get()).skipped == skips);
    CHECK(same_bits(flag_of(scaler), 0.0f));
  }
}
