// MP_STEP_FLAG_CHECKED: a step whose gradients were already checked equals, bit for bit, a step
// that checks them.
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

/// Also has the flag and amax measured with the gradients.
struct Side : StepRun {
  using StepRun::StepRun;

  float *flag() const { return mp_scaler_get_found_inf_address(scaler.get()); }
  /// Checks the gradients as epilogues do while they write them.
  void inspect() {
    require_ok(mp_check_nonfinite(run.grads().list(), flag(), kStream));
    require_ok(mp_amax(run.grads().list(), amax.data(), nullptr, kStream));
  }
  /// Takes a step that checks the gradients, without other outputs.
  void step_in_two_passes() {
    mp_step_options_t options = step_options();
    options.found_inf = skipped.data();
    require_ok(mp_scale_step(run.get(), scaler.get(), &options, kStream));
  }

  DeviceFloat amax{-1.0f};
};

void check_steps(const OptimizerSpec &spec, const mp_scaler_config_t &config, uint64_t seed,
                 bool with_amax) {
  Side checked(spec, config), two_passes(spec, config);
  Random random(seed);
  for (int step = 0; step < 5; ++step) {
    upload_gradients({&checked.run.grads(), &two_passes.run.grads()}, random);
    checked.inspect();
    const float amax = checked.amax.value();
    checked.step(checked_options(with_amax ? checked.amax.data() : nullptr));
    two_passes.step_in_two_passes();
    CAPTURE(step, spec.kind, config.policy, with_amax);
    if (with_amax) {
      check_equal(checked, two_passes);
      CHECK(same_bits(checked.amax.value(), amax));
    } else {
      // The step counts NaN as infinity if it gets no amax.
      CHECK(checked.run.state() == two_passes.run.state());
      CHECK(same_bits(scale_of(checked.scaler), scale_of(two_passes.scaler)));
    }
  }
}

}  // namespace

TEST_CASE("checked step: equals the step that checks, for every rule and policy", "[step][short]") {
  uint64_t seed = 1;
  for (const OptimizerSpec &spec : all_kinds()) {
    for (const mp_scaler_policy_t policy : kScalerPolicies) {
      check_steps(spec, config_of(policy), ++seed, true);
      if (policy != MP_SCALER_POLICY_LOGNORMAL) check_steps(spec, config_of(policy), ++seed, false);
    }
  }
}

TEST_CASE("checked step: a non-finite gradient loses only its own update", "[step][short]") {
  const OptimizerSpec spec = momentum_spec();
  Side side(spec, config_of(MP_SCALER_POLICY_BACKOFF));
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
      Side side(spec, config_of(MP_SCALER_POLICY_BACKOFF));
      side.set_grads(1.0);
      side.amax.set(amax);
      if (std::isfinite(amax)) write_float(side.flag(), 1.0f);
      const OptimizerState before = side.run.state();
      const float scale = scale_of(side.scaler);
      side.step(checked_options(side.amax.data()));
      CAPTURE(spec.kind, amax);
      CHECK(side.run.state() == before);
      CHECK(side.skipped.value() == 1.0f);
      CHECK(flag_of(side.scaler) == 0.0f);
      CHECK(scale_of(side.scaler) == scale / 2.0f);
      CHECK(state_of(side.scaler.get()).skipped_nan == std::isnan(amax));
      side.amax.set(1.0f);
      side.step(checked_options(side.amax.data()));
      CHECK(side.run.t() == 1);
    }
  }
}

TEST_CASE("checked step: a raised flag skips in every warp of every block", "[step][short]") {
  for (OptimizerSpec spec : all_kinds()) {
    spec.grads = std::vector<TensorSpec>(8, TensorSpec{MP_FP16, 5000});
    spec.model = mixed_models(spec.grads.size());
    Side side(spec, config_of(MP_SCALER_POLICY_BACKOFF));
    side.set_grads(1.0);
    side.amax.set(1.0f);
    const OptimizerState before = side.run.state();
    for (int step = 0; step < 6; ++step) {  // the last block of each step clears the flag
      write_float(side.flag(), 1.0f);
      side.step(checked_options(side.amax.data()));
    }
    CAPTURE(spec.kind);
    CHECK(side.run.state() == before);
    CHECK(side.run.t() == 0);
  }
}

TEST_CASE("checked step: several optimizers share one scaler", "[step][short]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    const OptimizerSpec spec = adamw_spec();
    Side a(spec, config_of(policy)), whole(spec, config_of(policy));
    OptimizerRun b(spec);
    b.master().fill(1.0);
    DeviceFloat skipped(-1.0f);
    Random random(3);
    for (int step = 0; step < 6; ++step) {
      upload_gradients({&a.run.grads(), &b.grads(), &whole.run.grads()}, random);
      a.inspect();
      a.step(checked_options(a.amax.data(), MP_STEP_FLAG_KEEP_SCALER));
      // The first optimizer's amax is stored, so the second needs none.
      mp_step_options_t options = checked_options(nullptr);
      options.found_inf = skipped.data();
      require_ok(mp_scale_step(b.get(), a.scaler.get(), &options, kStream));
      whole.step_in_two_passes();
      check_equal(a, whole);
      CHECK(b.t() == whole.run.t());
      CHECK(skipped.value() == a.skipped.value());
    }
  }
}

TEST_CASE("checked step: a GEMM epilogue provides flag and amax", "[step][short]") {
  constexpr int64_t kRows = 24, kCols = 16;
  OptimizerSpec spec = spec_of(MP_OPT_ADAM, adam_hyper(.01f));
  spec.grads = {{MP_FP16, kRows * kCols}};
  spec.model = {MP_FP16};
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    Side checked(spec, config_of(policy)), two_passes(spec, config_of(policy));
    for (const double x : {3.0, 300.0, 2.0, std::nan(""), 1.0}) {  // 300^2 overflows FP16
      const DeviceArray left(MP_FP16, std::vector<double>(kRows, x));
      const DeviceArray right(MP_FP16, std::vector<double>(kCols, x));
      checked.amax.set(0.0f);
      for (Side *side : {&checked, &two_passes}) {
        const mp_gemm_desc_t gemm = mp_gemm_desc_default(kRows, kCols, 1, MP_FP16, MP_FP16);
        mp_epilogue_t epilogue = mp_epilogue_default();
        if (side == &checked) {
          epilogue.stats.amax = side->amax.data();
          epilogue.stats.found_inf = side->flag();
        }
        require_ok(mp_gemm(context(), &gemm, left.data(), right.data(), nullptr,
                           side->run.grads().at(0).data(), &epilogue, nullptr, 0, kStream));
      }
      checked.step(checked_options(checked.amax.data()));
      two_passes.step_in_two_passes();
      CAPTURE(policy, x);
      check_equal(checked, two_passes);
      CHECK(checked.skipped.value() == (x < 256.0 ? 0.0f : 1.0f));
    }
  }
}

TEST_CASE("checked step: ranks agree if their flags and amaxes differ", "[comm][step]") {
  const mp_scaler_config_t config = config_of(MP_SCALER_POLICY_LOGNORMAL);
  for (const uint32_t sharded : {0u, static_cast<uint32_t>(MP_STEP_FLAG_SHARDED)}) {
    RanksOfSteps ranks(std::vector<OptimizerSpec>(3, adamw_spec()), &config);
    RankOfSteps single(adamw_spec(), &config);
    const DeviceFloat largest(0.0f);
    const DeviceFloat amaxes[] = {DeviceFloat(0.0f), DeviceFloat(0.0f), DeviceFloat(0.0f)};
    const float told[][3] = {{1.0f, 8.0f, 2.0f}, {1.0f, NAN, 2.0f}, {4.0f, 0.0f, 0.0f},
                             {1.0f, 2.0f, NAN},  {HUGE_VALF, 1, 1}, {1.0f, 1.0f, 2.0f}};
    for (const auto &values : told) {
      bool finite = true;
      float most = 0.0f;
      for (int rank = 0; rank < 3; ++rank) {
        write_float(amaxes[rank].data(), values[rank]);
        finite = finite && std::isfinite(values[rank]);
        if (!std::isnan(most) && !(values[rank] <= most)) most = values[rank];
      }
      on_all_ranks(3, [&](int rank, const mp_comm_t &comm) {
        return ranks.at(rank).step(&comm, checked_options(amaxes[rank].data(), sharded));
      });
      write_float(largest.data(), most);
      require_ok(single.try_step(checked_options(largest.data())));
      for (RankOfSteps &rank : ranks) {
        CHECK(rank.skipped.value() == (finite ? 0.0f : 1.0f));
        CHECK(rank.run.state() == single.run.state());
        CHECK(same_state(rank.scaler, single.scaler));
      }
    }
  }
}

TEST_CASE("checked step: an update without a stored amax is rejected", "[step][short]") {
  Side side(adamw_spec(), config_of(MP_SCALER_POLICY_LOGNORMAL));
  side.set_grads(1.0);
  side.step(checked_options(nullptr, MP_STEP_FLAG_KEEP_SCALER));
  expect_status(mp_scaler_update(side.scaler.get(), nullptr, kStream), MP_ERROR_INVALID_ARGUMENT);
  side.amax.set(1.0f);
  side.step(checked_options(side.amax.data(), MP_STEP_FLAG_KEEP_SCALER));
  side.step(checked_options(nullptr, MP_STEP_FLAG_KEEP_SCALER));
  require_ok(mp_scaler_update(side.scaler.get(), nullptr, kStream));
}
