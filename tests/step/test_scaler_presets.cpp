// Every preset against the system that it is named after, as implemented in upstream_scalers.h: the
// scales are equal in every step.
#include "scaler_run.h"
#include "upstream_scalers.h"

using namespace mptest;

namespace {

const mp_scaler_preset_t kPresets[] = {
    MP_SCALER_PRESET_LOGNORMAL,         MP_SCALER_PRESET_TORCH,
    MP_SCALER_PRESET_APEX_AMP,          MP_SCALER_PRESET_APEX_HYSTERESIS,
    MP_SCALER_PRESET_MEGATRON,          MP_SCALER_PRESET_DEEPSPEED,
    MP_SCALER_PRESET_DEEPSPEED_FUSED,   MP_SCALER_PRESET_KERAS,
    MP_SCALER_PRESET_KERAS_3,           MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF,
    MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX};

bool has_hysteresis(mp_scaler_preset_t preset) {
  return preset == MP_SCALER_PRESET_APEX_HYSTERESIS || preset == MP_SCALER_PRESET_MEGATRON ||
         preset == MP_SCALER_PRESET_DEEPSPEED;
}

mp_scaler_config_t short_config(mp_scaler_preset_t preset, int interval, int hysteresis) {
  mp_scaler_config_t config = mp_scaler_config_preset(preset);
  config.growth_interval = interval;
  if (has_hysteresis(preset)) config.hysteresis = hysteresis;
  return config;
}

/// Overflows and amaxes of a training: overflows occur singly and in bursts, gradients drift.
class Training {
 public:
  explicit Training(uint64_t seed) : random_(seed), rate_(random_.real(0.0, 0.5)) {}

  struct Step {
    bool overflow;
    double amax;
  };
  Step next() {
    if (burst_ == 0 && random_.real(0.0, 1.0) < 0.02) burst_ = random_.integer(2, 8);
    const bool overflow = burst_ > 0 || random_.real(0.0, 1.0) < rate_;
    burst_ -= burst_ > 0;
    log2_amax_ += random_.real(-0.5, 0.5);
    return {overflow, std::exp2(log2_amax_)};
  }

 private:
  Random random_;
  double rate_, log2_amax_ = 0.0;
  int64_t burst_ = 0;
};

/// True if S can be compared in fp32; some systems continue in fp64 or to infinity.
bool is_fp32(double scale) {
  return std::isfinite(static_cast<float>(scale)) &&
         static_cast<double>(static_cast<float>(scale)) == scale;
}

/// @return number of compared steps
int check_training(ScalerRun &run, const upstream::Update &update, uint64_t seed, int steps) {
  Training training(seed);
  for (int i = 0; i < steps; ++i) {
    const Training::Step step = training.next();
    const float scaled_amax = static_cast<float>(step.amax * run.scale());
    const double wanted = update(step.overflow, scaled_amax);
    if (!is_fp32(wanted)) return i;
    run.update_scaled(step.overflow ? 1.0f : 0.0f, scaled_amax);
    if (run.scale() == static_cast<float>(wanted)) continue;
    CAPTURE(seed, i, run.scale(), wanted);
    REQUIRE(run.scale() == static_cast<float>(wanted));
  }
  return steps;
}

void check_preset(mp_scaler_preset_t preset, uint64_t sequences, int steps) {
  int64_t compared = 0;
  for (uint64_t seed = 1; seed <= sequences; ++seed) {
    const int interval = static_cast<int>(seed % 8 + 1),
              hysteresis = static_cast<int>(seed % 5 + 1);
    ScalerRun run(short_config(preset, interval, hysteresis));
    INFO("preset " << preset << ", interval " << interval << ", hysteresis " << hysteresis);
    compared += check_training(run, upstream::scaler_of(preset, interval, hysteresis), seed, steps);
  }
  CHECK(compared > static_cast<int64_t>(sequences) * steps * 3 / 4);
}

}  // namespace

TEST_CASE("scaler presets: random sequences equal upstream's", "[scaler][short]") {
  for (const mp_scaler_preset_t preset : kPresets) check_preset(preset, 20, 60);
}

TEST_CASE("scaler presets: thousands of random sequences equal upstream's",
          "[scaler][long][many_launches]") {
  // Each step takes, on a GPU, a launch and a wait; all sequences together exceeded the two minutes
  // available on an H200.
  const uint64_t sequences = on_host() ? 2000 : 200;
  for (const mp_scaler_preset_t preset : kPresets) check_preset(preset, sequences, 100);
}

TEST_CASE("scaler presets: default intervals equal upstream's", "[scaler]") {
  for (const mp_scaler_preset_t preset : kPresets) {
    const mp_scaler_config_t config = mp_scaler_config_preset(preset);
    ScalerRun run(config);
    const auto update = upstream::scaler_of(preset, config.growth_interval, config.hysteresis);
    for (int i = 0; i < 7200; ++i) {
      const bool overflow = i % 4501 < 3 || i % 7000 == 6999;
      const float scaled_amax = static_cast<float>(0.75 * run.scale());
      const double wanted = update(overflow, scaled_amax);
      if (run.update_scaled(overflow ? 1.0f : 0.0f, scaled_amax) == wanted) continue;
      CAPTURE(preset, i, wanted);
      REQUIRE(run.scale() == wanted);
    }
  }
}

TEST_CASE("scaler presets: DeepSpeed with consecutive_hysteresis equals upstream's", "[scaler]") {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const int interval = static_cast<int>(seed % 8 + 1),
              hysteresis = static_cast<int>(seed % 5 + 1);
    mp_scaler_config_t config = short_config(MP_SCALER_PRESET_DEEPSPEED, interval, hysteresis);
    config.flags |= MP_SCALER_FLAG_REFILL_EACH_STEP;
    ScalerRun run(config);
    check_training(run, upstream::deepspeed(interval, hysteresis, true), seed, 100);
  }
}

TEST_CASE("scaler lognormal: other constants and gradients of 0 follow the formulas",
          "[scaler][short]") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_LOGNORMAL);
    config.growth_interval = static_cast<int32_t>(seed % 9 + 1);
    config.backoff_factor = seed % 2 == 0 ? 0.5f : 0.25f;
    config.beta1 = seed % 3 == 0 ? 0.9f : 0.99f;
    config.beta2 = seed % 3 == 0 ? 0.95f : 0.999f;
    config.sigma_floor = seed % 4 == 0 ? 1.0f : 0.5f;
    ScalerRun run(config);
    const upstream::Update update = upstream::Lognormal(config);
    for (uint64_t part = 0; part < 5; ++part) {
      check_training(run, update, 100 * part + seed, 20);
      CHECK(run.update(0.0f, 0.0) == update(false, 0.0f));
    }
  }
}

// ---------------------------------------------------------------------------- known sequences

namespace {

mp_scaler_config_t logmax() {
  mp_scaler_config_t config = mp_scaler_config_preset(MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX);
  config.max_scale = 16777216.0f;
  return config;
}

}  // namespace

TEST_CASE("scaler presets: LogMax gives S = NaN after a step of zeros, like upstream",
          "[scaler][short]") {
  ScalerRun run(logmax());
  CHECK(run.update(0.0f, 1.0) == 65536.0f);
  for (const double amax : {0.0, 1.0, 2.0}) CHECK(std::isnan(run.update(0.0f, amax)));
  const mp_scaler_state_t dead = run.state();
  CHECK(mp_scaler_set_state_sync(run.get(), &dead, kStream) == MP_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("scaler presets: LogMax samples log2_max only at an overflow, like upstream",
          "[scaler][short]") {
  mp_scaler_config_t config = logmax();
  config.log2_max = 10.0f;
  ScalerRun run(config);
  CHECK(run.update(0.0f, 1.0) == 65536.0f);
  run.update(1.0f);
  // Decayed by beta1, without bias correction: 0.99 * 0 + 0.01 * 2^10.
  CHECK(run.state().log2_mean == 0.01f * 1024.0f);
}

TEST_CASE("scaler presets: torch does not grow S to infinity", "[scaler][short]") {
  mp_scaler_config_t config = mp_scaler_config_preset(MP_SCALER_PRESET_TORCH);
  config.init_scale = 1e38f;
  config.growth_factor = 10.0;
  config.growth_interval = 1;
  CHECK(scales_of(config, {1, 1}) == Scales{1e38f, 1e38f});
}

TEST_CASE("scaler presets: torch's factors are doubles", "[scaler][short]") {
  mp_scaler_config_t config = mp_scaler_config_preset(MP_SCALER_PRESET_TORCH);
  config.growth_factor = 1.7;
  config.backoff_factor = 0.3;
  config.growth_interval = 1;
  ScalerRun run(config);
  float wanted = 65536.0f;
  for (const float found_inf : {0.0f, 1.0f, 0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f}) {
    wanted = static_cast<float>(wanted * (found_inf != 0.0f ? 0.3 : 1.7));
    CHECK(run.update(found_inf) == wanted);
  }
}

TEST_CASE("scaler presets: S can decrease to 0 without a minimum and stays 0", "[scaler][short]") {
  ScalerRun run(mp_scaler_config_preset(MP_SCALER_PRESET_TORCH));
  for (int i = 1; i <= 165; ++i) REQUIRE(run.update(1.0f) == std::ldexp(65536.0f, -i));
  CHECK(run.update(1.0f) == 0.0f);
  CHECK(run.update(0.0f) == 0.0f);
  const mp_scaler_state_t sunk = run.state();
  set_state(run.get(), sunk);
}

// ---------------------------------------------------------------------------- checkpoints

TEST_CASE("scaler presets: a new scaler has the default state", "[scaler][short]") {
  for (const mp_scaler_preset_t preset : kPresets) {
    const mp_scaler_config_t config = short_config(preset, 4, 3);
    const mp_scaler_state_t by_default = mp_scaler_state_default(&config);
    CHECK(same_state(ScalerRun(config).state(), by_default));
    CHECK(by_default.scale == config.init_scale);
    CHECK(by_default.hysteresis_left == config.hysteresis);
  }
}

TEST_CASE("scaler presets: torch's state_dict can be imported and exported", "[scaler][short]") {
  for (int cut = 0; cut <= 30; ++cut) {
    ScalerRun first(short_config(MP_SCALER_PRESET_TORCH, 4, 1));
    Training training(8);
    for (int i = 0; i < cut; ++i) first.update(training.next().overflow ? 1.0f : 0.0f);
    const mp_scaler_state_t state = first.state();
    mp_torch_scaler_t saved;
    require_ok(mp_scaler_to_torch(&first.config(), &state, &saved));
    CHECK(saved.scale == first.scale());
    CHECK(saved.growth_factor == 2.0);
    CHECK(saved.backoff_factor == 0.5);
    CHECK(saved.growth_interval == 4);
    CHECK(saved.growth_tracker == state.growth_tracker);

    auto config = initialized<mp_scaler_config_t>();
    auto begin = initialized<mp_scaler_state_t>();
    require_ok(mp_scaler_from_torch(&saved, &config, &begin));
    ScalerRun second(config);
    set_state(second.get(), begin);
    for (int i = 0; i < 30; ++i) {
      const float found_inf = training.next().overflow ? 1.0f : 0.0f;
      REQUIRE(first.update(found_inf) == second.update(found_inf));
    }
  }
}

TEST_CASE("scaler presets: Megatron's state_dict can be imported and exported", "[scaler][short]") {
  for (int cut = 0; cut <= 30; ++cut) {
    const mp_scaler_config_t config = short_config(MP_SCALER_PRESET_MEGATRON, 4, 3);
    ScalerRun first(config), second(config);
    upstream::Megatron theirs{4, 3};
    Training training(9);
    for (int i = 0; i < cut; ++i) {
      const bool overflow = training.next().overflow;
      theirs(overflow, 0.0f);
      first.update(overflow ? 1.0f : 0.0f);
    }
    const mp_scaler_state_t state = first.state();
    mp_megatron_scaler_t saved;
    require_ok(mp_scaler_to_megatron(&state, &saved));
    CHECK(saved.scale == theirs.scale);
    CHECK(saved.growth_tracker == theirs.growth_tracker);
    CHECK(saved.hysteresis_tracker == std::max(theirs.hysteresis_tracker, 0));

    const mp_megatron_scaler_t imported = {theirs.scale, theirs.growth_tracker,
                                           theirs.hysteresis_tracker};
    auto begin = initialized<mp_scaler_state_t>();
    require_ok(mp_scaler_from_megatron(&imported, &begin));
    set_state(second.get(), begin);
    for (int i = 0; i < 30; ++i) {
      const bool overflow = training.next().overflow;
      REQUIRE(second.update(overflow ? 1.0f : 0.0f) == theirs(overflow, 0.0f));
    }
  }
}
