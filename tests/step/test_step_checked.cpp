// MP_STEP_FLAG_CHECKED: steps whose gradients were already checked.  test_step.cpp compares them
// with steps that check.
#include "rank_steps.h"

using namespace mptest;

namespace {

mp_step_options_t checked_options(const float *amax, uint32_t more_flags = 0) {
  mp_step_options_t options = step_options(MP_STEP_FLAG_CHECKED | more_flags);
  options.amax = amax;
  return options;
}

mp_scaler_config_t config_of(mp_scaler_policy_t policy) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.growth_interval = 3;
  return config;
}

}  // namespace

TEST_CASE("checked step: a non-finite gradient loses only its own update", "[step][short]") {
  StepRun side(momentum_spec(), config_of(MP_SCALER_POLICY_BACKOFF));
  side.set_grads(1.0);
  side.run.grads().inject(4, 7, encode(MP_FP16, kNaN));
  const TensorValues before = side.run.master().download();
  side.step(checked_options(nullptr));
  CHECK(side.skipped.value() == 0.0f);
  const TensorValues after = side.run.master().download();
  for (size_t i = 0; i < after[4].size(); ++i) CHECK((after[4][i] == before[4][i]) == (i == 7));
}

TEST_CASE("checked step: a raised flag or a non-finite amax skips the step", "[step][short]") {
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const float amax : {1.0f, HUGE_VALF, NAN}) {
      StepRun side(spec, config_of(MP_SCALER_POLICY_BACKOFF));
      side.set_grads(1.0);
      const DeviceFloat measured(amax), one(1.0f);
      if (std::isfinite(amax)) raise_flag(side.scaler);
      const OptimizerState before = side.run.state();
      const float scale = scale_of(side.scaler);
      side.step(checked_options(std::isfinite(amax) ? nullptr : measured.data()));
      CAPTURE(spec.kind, amax);
      CHECK(side.run.state() == before);
      CHECK(side.skipped.value() == 1.0f);
      CHECK(flag_of(side.scaler) == 0.0f);
      CHECK(scale_of(side.scaler) == scale / 2.0f);
      CHECK(state_of(side.scaler.get()).skipped_nan == std::isnan(amax));
      side.step(checked_options(one.data()));
      CHECK(side.run.t() == 1);
    }
  }
}

TEST_CASE("checked step: a raised flag skips in every warp of every block", "[step][short]") {
  for (OptimizerSpec spec : all_kinds()) {
    spec.grads = std::vector<TensorSpec>(8, TensorSpec{MP_FP16, 5000});
    spec.model = mixed_models(spec.grads.size());
    StepRun side(spec, config_of(MP_SCALER_POLICY_BACKOFF));
    side.set_grads(1.0);
    const DeviceFloat amax(1.0f);
    const OptimizerState before = side.run.state();
    for (int step = 0; step < 6; ++step) {  // the last block of each step clears the flag
      raise_flag(side.scaler);
      side.step(checked_options(amax.data()));
    }
    CAPTURE(spec.kind);
    CHECK(side.run.state() == before);
  }
}

TEST_CASE("checked step: several optimizers share one scaler", "[step][short]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    StepRun a(adamw_spec(), config_of(policy)), b(adamw_spec()),
        whole(adamw_spec(), config_of(policy));
    whole.reports_norms = false;
    Random random(3);
    for (int step = 0; step < 6; ++step) {
      upload_gradients({&a.run.grads(), &b.run.grads(), &whole.run.grads()}, random);
      const DeviceFloat amax(-1.0f);
      check_gradients(a, amax);
      a.step(checked_options(amax.data(), MP_STEP_FLAG_KEEP_SCALER));
      // The first optimizer's amax is stored, so the second needs none.
      b.step(checked_options(nullptr), a.scaler.get());
      whole.step();
      check_equal(a, whole);
      check_equal(b, whole);
    }
  }
}

TEST_CASE("checked step: a GEMM epilogue provides flag and amax", "[step][short]") {
  constexpr int64_t kRows = 24, kCols = 16;
  OptimizerSpec spec = spec_of(MP_OPT_ADAM, adam_hyper(.01f));
  spec.grads = {{MP_FP16, kRows * kCols}};
  spec.model = {MP_FP16};
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    StepRun checked(spec, config_of(policy)), two_passes(spec, config_of(policy));
    two_passes.reports_norms = false;
    for (const double x : {3.0, 300.0, 2.0, std::nan(""), 1.0}) {  // 300^2 overflows FP16
      const DeviceArray left(MP_FP16, std::vector<double>(kRows, x));
      const DeviceArray right(MP_FP16, std::vector<double>(kCols, x));
      const DeviceFloat amax(0.0f);
      for (StepRun *side : {&checked, &two_passes}) {
        const mp_gemm_desc_t gemm = mp_gemm_desc_default(kRows, kCols, 1, MP_FP16, MP_FP16);
        mp_epilogue_t epilogue = mp_epilogue_default();
        if (side == &checked)
          epilogue.stats = {mp_scaler_get_found_inf_address(side->scaler.get()), amax.data()};
        require_ok(mp_gemm(context(), &gemm, left.data(), right.data(), nullptr,
                           side->run.grads().at(0).data(), &epilogue, nullptr, 0, kStream));
      }
      checked.step(checked_options(amax.data()));
      two_passes.step();
      CAPTURE(policy, x);
      check_equal(checked, two_passes);
      CHECK(checked.skipped.value() == (x < 256.0 ? 0.0f : 1.0f));
    }
  }
}

TEST_CASE("checked step: ranks agree if their flags and amaxes differ", "[comm][step]") {
  const mp_scaler_config_t config = config_of(MP_SCALER_POLICY_LOGNORMAL);
  for (const uint32_t sharded : {0u, static_cast<uint32_t>(MP_STEP_FLAG_SHARDED)}) {
    RanksOfSteps ranks(std::vector<OptimizerSpec>(3, adamw_spec()), config);
    StepRun single(adamw_spec(), config);
    single.set_grads(1.0);
    const DeviceFloat largest(0.0f);
    const DeviceFloat amaxes[] = {DeviceFloat(0.0f), DeviceFloat(0.0f), DeviceFloat(0.0f)};
    const float told[][3] = {{1.0f, 8.0f, 2.0f}, {1.0f, NAN, 2.0f}, {4.0f, 0.0f, 0.0f},
                             {1.0f, 2.0f, NAN},  {HUGE_VALF, 1, 1}, {1.0f, 1.0f, 2.0f}};
    for (const auto &values : told) {
      float most = 0.0f;
      for (int rank = 0; rank < 3; ++rank) {
        write_float(amaxes[rank].data(), values[rank]);
        if (!std::isnan(most) && !(values[rank] <= most)) most = values[rank];
      }
      on_all_ranks(3, [&](int rank, const mp_comm_t &comm) {
        return step_with(comm, ranks.at(rank), checked_options(amaxes[rank].data(), sharded));
      });
      write_float(largest.data(), most);
      require_ok(single.try_step(checked_options(largest.data())));
      for (StepRun &rank : ranks) {
        CHECK(rank.skipped.value() == (std::isfinite(most) ? 0.0f : 1.0f));
        CHECK(rank.run.state() == single.run.state());
        CHECK(same_state(rank.scaler, single.scaler));
      }
    }
  }
}

TEST_CASE("checked step: an update without a stored amax is rejected", "[step][short]") {
  StepRun side(adamw_spec(), config_of(MP_SCALER_POLICY_LOGNORMAL));
  side.set_grads(1.0);
  side.step(checked_options(nullptr, MP_STEP_FLAG_KEEP_SCALER));
  expect_status(mp_scaler_update(side.scaler.get(), nullptr, kStream), MP_ERROR_INVALID_ARGUMENT);
  const DeviceFloat one(1.0f);
  side.step(checked_options(one.data(), MP_STEP_FLAG_KEEP_SCALER));
  side.step(checked_options(nullptr, MP_STEP_FLAG_KEEP_SCALER));
  require_ok(mp_scaler_update(side.scaler.get(), nullptr, kStream));
}
