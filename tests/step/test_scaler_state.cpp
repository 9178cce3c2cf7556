// Reported state of a scaler: divergence, NaN versus infinity, the history; every reached state can
// be restored.
#include <cfloat>
#include <cstring>

#include "scaler_run.h"

using namespace mptest;

namespace {

mp_scaler_config_t diverging(mp_scaler_policy_t policy, int32_t max_consecutive_skips) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.max_consecutive_skips = max_consecutive_skips;
  return config;
}

const mp_scaler_policy_t kDynamicPolicies[] = {MP_SCALER_POLICY_BACKOFF,
                                               MP_SCALER_POLICY_LOGNORMAL};

}  // namespace

// ---------------------------------------------------------------------------- divergence

TEST_CASE("scaler state: diverges after max_consecutive_skips skips in a row, 0 for never",
          "[scaler][short]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies)
    for (const int limit : {5, 0}) {
      ScalerRun run(diverging(policy, limit));
      for (int update = 0; update < 54; ++update) {
        const int skips = update % 18;  // 0: a clean step
        run.update(skips > 0 ? 1.0f : 0.0f);
        CAPTURE(policy, limit, update);
        CHECK(run.state().status ==
              (limit > 0 && skips >= limit ? MP_SCALER_STATUS_DIVERGED : MP_SCALER_STATUS_OK));
        CHECK(run.state().consecutive_skips == skips);
        CHECK(run.state().skipped == update - update / 18);
      }
    }
}

TEST_CASE("scaler state: divergence freezes S and the policy", "[scaler][short]") {
  for (const mp_scaler_policy_t policy : kDynamicPolicies) {
    ScalerRun run(diverging(policy, 5));
    run.update(0.0f, 0.25);
    const float before = run.scale();
    for (int i = 1; i <= 5; ++i) CHECK(run.update(1.0f) == std::ldexp(before, -i));
    const mp_scaler_state_t diverged = run.state();
    for (int i = 0; i < 50; ++i) CHECK(run.update(1.0f) == std::ldexp(before, -5));
    mp_scaler_state_t later = run.state();
    CHECK(later.skipped == 55);
    later.steps = diverged.steps;
    later.skipped = diverged.skipped;
    later.overflows = diverged.overflows;
    later.consecutive_skips = diverged.consecutive_skips;
    CHECK(std::memcmp(&later, &diverged, sizeof later) == 0);
  }
}

// ---------------------------------------------------------------------------- NaN

TEST_CASE("scaler state: amax distinguishes NaN from infinity", "[scaler][short]") {
  for (const mp_scaler_policy_t policy : kScalerPolicies) {
    ScalerRun run(mp_scaler_config_default(policy));
    for (const float amax : {1.0f, HUGE_VALF, NAN, -NAN, 0.0f, HUGE_VALF, 2.0f}) {
      run.update_by_amax(amax);
      CHECK(outcome_sync(run.scaler(), run.state().steps) ==
            (std::isfinite(amax) ? MP_STEP_OUTCOME_TAKEN : MP_STEP_OUTCOME_OVERFLOW));
    }
    CAPTURE(policy);
    CHECK(run.state().steps == 7);
    CHECK(run.state().overflows == 4);
    CHECK(run.state().skipped_nan == 2);
    // An amax of 0 leaves logmax with S = NaN.
    CHECK(run.state().no_scale == (policy == MP_SCALER_POLICY_LOGMAX));
  }
}

TEST_CASE("scaler state: backoff uses amax only to detect overflow", "[scaler][short]") {
  ScalerRun by_flag(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
  ScalerRun by_amax(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
  for (const float amax : {1.0f, HUGE_VALF, 0.0f, NAN, 65504.0f}) {
    by_flag.update(std::isfinite(amax) ? 0.0f : 1.0f);
    CHECK(by_amax.update_by_amax(amax) == by_flag.scale());
  }
}

// ---------------------------------------------------------------------------- history

namespace {

struct History {
  std::vector<float> scales;
  std::vector<int32_t> skipped;
  bool operator==(const History &) const = default;
};

History history_of(mp_scaler_t scaler, int64_t capacity) {
  History history{std::vector<float>(static_cast<size_t>(capacity), -1.0f),
                  std::vector<int32_t>(static_cast<size_t>(capacity), -1)};
  int64_t count = -1;
  require_ok(mp_scaler_get_history_sync(scaler, capacity, history.scales.data(),
                                        history.skipped.data(), &count, kStream));
  REQUIRE(count >= 0);
  REQUIRE(count <= capacity);
  for (size_t i = static_cast<size_t>(count); i < history.scales.size(); ++i) {
    CHECK(history.scales[i] == -1.0f);  // not written
    CHECK(history.skipped[i] == -1);
  }
  history.scales.resize(static_cast<size_t>(count));
  history.skipped.resize(static_cast<size_t>(count));
  return history;
}

/// Returns the newest `count` entries.
History last_of(const History &all, size_t count) {
  const auto from = static_cast<ptrdiff_t>(all.scales.size() - std::min(count, all.scales.size()));
  return {{all.scales.begin() + from, all.scales.end()},
          {all.skipped.begin() + from, all.skipped.end()}};
}

/// Makes an update, one in three an overflow, and appends the expected history entry.
void run_and_note(ScalerRun &run, History &all, Random &random) {
  const float amaxes[] = {1.0f, 0.5f, 2.0f, 0.25f, HUGE_VALF, NAN};
  const float amax = amaxes[random.integer(0, 5)];
  all.scales.push_back(run.scale());
  all.skipped.push_back(std::isnan(amax) ? 2 : std::isinf(amax) ? 1 : 0);
  run.update_by_amax(amax);
}

}  // namespace

TEST_CASE("scaler state: the history contains the last updates", "[scaler][short]") {
  for (const mp_scaler_policy_t policy : kDynamicPolicies) {
    for (const int32_t length : {1, 2, 7, 100}) {
      mp_scaler_config_t config = mp_scaler_config_default(policy);
      config.history_length = length;
      config.growth_interval = 2;
      ScalerRun run(config);
      Random random(1);
      History all;
      for (int i = 0; i <= 30; ++i) {
        for (const int64_t capacity : {int64_t{0}, int64_t{1}, int64_t{length}, int64_t{50}}) {
          const auto kept = static_cast<size_t>(std::min<int64_t>(length, capacity));
          CAPTURE(policy, length, i, capacity);
          CHECK(history_of(run.get(), capacity) == last_of(all, kept));
        }
        run_and_note(run, all, random);
      }
    }
  }
}

TEST_CASE("scaler state: each array of the history is optional", "[scaler][short]") {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.history_length = 4;
  ScalerRun run(config);
  for (const float found_inf : {0.0f, 1.0f, 0.0f}) run.update(found_inf);
  float scales[3];
  int32_t skipped[3];
  int64_t count = -1;
  require_ok(mp_scaler_get_history_sync(run.get(), 3, scales, nullptr, &count, kStream));
  CHECK(count == 3);
  CHECK(std::vector<float>(scales, scales + 3) == std::vector<float>{65536, 65536, 32768});
  require_ok(mp_scaler_get_history_sync(run.get(), 3, nullptr, skipped, &count, kStream));
  CHECK(std::vector<int32_t>(skipped, skipped + 3) == std::vector<int32_t>{0, 1, 0});
  require_ok(mp_scaler_get_history_sync(run.get(), 2, nullptr, nullptr, &count, kStream));
  CHECK(count == 2);
}

TEST_CASE("scaler state: restoring a state empties the history", "[scaler][short]") {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.history_length = 4;
  ScalerRun run(config);
  for (int i = 0; i < 6; ++i) run.update(1.0f);
  set_state(run.get(), run.state());
  CHECK(history_of(run.get(), 4) == History{});
  const float scale = run.scale();
  run.update(0.0f);
  CHECK(history_of(run.get(), 4) == History{{scale}, {0}});
}

TEST_CASE("scaler state: restoring a state discards results since the last update",
          "[scaler][short]") {
  ScalerRun run(mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
  const mp_scaler_state_t state = run.state();
  TensorSet grads({{MP_FP16, 9, 1}}), sums({{MP_FP32, 9}});
  grads.fill(HUGE_VAL);
  require_ok(mp_grads_accumulate(run.get(), grads.list(), sums.list(), 1.0f,
                                 MP_ACCUMULATE_FLAG_FIRST | MP_ACCUMULATE_FLAG_LAST, kStream));
  CHECK(run.found_inf() != 0.0f);
  set_state(run.get(), state);
  CHECK(run.found_inf() == 0.0f);
  require_ok(mp_scaler_update(run.get(), nullptr, kStream));
  CHECK(run.state().overflows == 0);
}

// ---------------------------------------------------------------------------- restoring

namespace {

/// Returns the widest limits of the policy, so that its statistics reach the ends of their range.
mp_scaler_config_t wide(mp_scaler_policy_t policy, double beta1, double beta2) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.min_scale = 0x1p-127f;
  config.max_scale = FLT_MAX;
  config.beta1 = beta1;
  config.beta2 = beta2;
  config.growth_interval = 3;
  config.hysteresis = 4;
  config.max_consecutive_skips = 5;
  return config;
}

std::vector<mp_scaler_config_t> wide_configs() {
  std::vector<mp_scaler_config_t> configs = {wide(MP_SCALER_POLICY_STATIC, 0, 0),
                                             wide(MP_SCALER_POLICY_BACKOFF, 0, 0)};
  for (const uint32_t flags :
       {MP_SCALER_FLAG_REFILL_EACH_STEP, MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED}) {
    configs.push_back(configs[1]);
    configs.back().flags = flags;
  }
  for (const auto &[beta1, beta2] :
       {std::pair{0.0, 0.0}, std::pair{0.5, 0.9}, std::pair{0.99, 0.999},
        std::pair{0.999999, 0.9999999}, std::pair{1 - 0x1p-40, 1 - 0x1p-53}})
    configs.push_back(wide(MP_SCALER_POLICY_LOGNORMAL, beta1, beta2));
  configs.push_back(wide(MP_SCALER_POLICY_LOGNORMAL, 0.99, 0.999));
  configs.back().backoff_factor = DBL_MIN;  // an overflow computes S = 0
  configs.push_back(wide(MP_SCALER_POLICY_LOGNORMAL, 0.99, 0.999));
  configs.back().overflow_std_dev = -FLT_MAX;
  configs.push_back(wide(MP_SCALER_POLICY_LOGMAX, 0.99, 0.999));
  return configs;
}

}  // namespace

TEST_CASE("scaler state: every reachable state can be restored", "[scaler][short]") {
  // Gradients at the ends of fp32, constant or alternating, give the most extreme statistics.
  for (const mp_scaler_config_t &config : wide_configs()) {
    for (const std::vector<float> &amaxes :
         {std::vector<float>{FLT_TRUE_MIN}, std::vector<float>{FLT_MAX},
          std::vector<float>{FLT_MAX, FLT_TRUE_MIN},
          std::vector<float>{1e-3f, HUGE_VALF, 1e3f, NAN},
          std::vector<float>{HUGE_VALF, NAN, HUGE_VALF, HUGE_VALF, NAN, HUGE_VALF, NAN, 1.0f}}) {
      ScalerRun run(config);
      for (size_t i = 0; i < 60; ++i) {
        run.update_by_amax(amaxes[i % amaxes.size()]);
        const mp_scaler_state_t state = run.state();
        if (std::isnan(state.scale)) break;  // logmax, like upstream
        CAPTURE(config.policy, config.beta2, amaxes[0], i, state.log2_mean, state.log2_mean_slow,
                state.log2_square_slow, state.beta2_power);
        REQUIRE(mp_scaler_set_state_sync(run.get(), &state, kStream) == MP_SUCCESS);
      }
    }
  }
}
