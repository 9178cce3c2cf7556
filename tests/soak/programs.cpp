#include "tests/soak/programs.h"

#include <cmath>

#include "tests/support/input_values.h"

namespace mptest {

namespace {

/// Short enough for S to grow between two overflows, and reach the next one soon.
constexpr int kInterval = 8;
constexpr int kHysteresis = 3;
constexpr float kStaticScale = 96.0f;  // has an inexact reciprocal

upstream::Update static_model() {
  return [](bool, float) { return double{kStaticScale}; };
}

template <mp_scaler_preset_t kPreset>
upstream::Update model_of() {
  return upstream::scaler_of(kPreset, kInterval, kHysteresis);
}

mp_scaler_config_t static_scaler() {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_STATIC);
  config.init_scale = kStaticScale;
  return config;
}

mp_scaler_config_t scaler_of(mp_scaler_preset_t preset) {
  mp_scaler_config_t config = mp_scaler_config_preset(preset);
  config.growth_interval = kInterval;
  if (config.hysteresis > 1) config.hysteresis = kHysteresis;
  return config;
}

template <mp_scaler_preset_t kPreset>
SoakProgram with(const char *scaler, const char *rule, mp_optimizer_kind_t kind, uint32_t flags,
                 float lr) {
  return {{scaler, rule, scaler_of(kPreset), kind, flags, mp_param_group_default(kind, lr)},
          model_of<kPreset>};
}

}  // namespace

std::vector<SoakProgram> soak_programs() {
  std::vector<SoakProgram> all;
  all.push_back(
      {{"static", "sgd", static_scaler(), MP_OPT_SGD, 0, mp_param_group_default(MP_OPT_SGD, 0.01f)},
       static_model});
  all.push_back(with<MP_SCALER_PRESET_TORCH>("torch", "adam", MP_OPT_ADAM, 0, 1e-3f));
  all.push_back(with<MP_SCALER_PRESET_MEGATRON>("megatron", "adamw", MP_OPT_ADAM,
                                                MP_OPT_FLAG_DECOUPLED_DECAY, 1e-3f));
  all.push_back(
      with<MP_SCALER_PRESET_APEX_HYSTERESIS>("apex", "larc", MP_OPT_SGD, MP_OPT_FLAG_LARC, 0.01f));
  all.push_back(
      with<MP_SCALER_PRESET_DEEPSPEED_FUSED>("deepspeed", "novograd", MP_OPT_NOVOGRAD, 0, 1e-3f));
  all.push_back(with<MP_SCALER_PRESET_KERAS>("keras", "rmsprop", MP_OPT_RMSPROP,
                                             MP_OPT_FLAG_STOCHASTIC_ROUNDING, 1e-3f));
  all.push_back(with<MP_SCALER_PRESET_LOGNORMAL>("lognormal", "lamb", MP_OPT_LAMB,
                                                 MP_OPT_FLAG_DECOUPLED_DECAY, 1e-3f));
  all.push_back(
      with<MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX>("logmax", "adagrad", MP_OPT_ADAGRAD, 0, 0.01f));
  for (SoakProgram &soak : all) soak.program.group.weight_decay = 0.01f;
  all[1].program.group.lr_schedule = MP_LR_COSINE;
  all[1].program.group.warmup_steps = 20;
  all[1].program.group.decay_steps = 2000;
  all[1].program.group.lr_end = 1e-4f;
  all[5].program.group.beta1 = 0.9f;
  return all;
}

/// One gradient is always between 4 and 8, so that S stays below 2^14 and only injected faults
/// overflow. Some steps have larger gradients, and some have an infinity or a NaN.
Fault fault_of(uint64_t seed, int64_t number) {
  constexpr int64_t kOneIn = 48;
  Random random(seed * 1000003 + static_cast<uint64_t>(number));
  // Bursts of three, for the hysteresis: random numbers of this step and the two before.
  for (int64_t back = 0; back < 3; ++back) {
    Random burst(seed * 7919 + static_cast<uint64_t>(number - back));
    const int64_t draw = burst.integer(0, kOneIn - 1);
    if (draw == 0 || (draw == 1 && back == 0))
      return {random.integer(0, 1) == 0 ? Fault::Kind::infinity : Fault::Kind::nan, 0,
              random.integer(0, 1) == 0};
  }
  const bool is_large = random.integer(0, 7) == 0;
  const int64_t log2 = is_large ? random.integer(4, 10) : random.integer(2, 3);
  return {Fault::Kind::hot, static_cast<int>(log2), random.integer(0, 1) == 0};
}

bool overflows(const Fault &fault, double scale) {
  // Half way between 65504 and the next larger number, which fp16 lacks: rounds to infinity.
  constexpr double kRoundsToInfinity = 65520;
  return fault.kind != Fault::Kind::hot || std::ldexp(scale, fault.log2) >= kRoundsToInfinity;
}

}  // namespace mptest
