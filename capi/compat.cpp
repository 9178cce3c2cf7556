// mpcore/compat.h: presets, configuration names and saved states of other systems.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "capi/defaults.h"
#include "capi/objects.h"

using namespace mp;

namespace {

/// Backoff and logmax of other systems; a limit of 0 means none.
struct Preset {
  mp_scaler_preset_t preset;
  float init_scale, min_scale, max_scale;
  int32_t growth_interval, hysteresis;
  uint32_t flags;
};

constexpr Preset kPresets[] = {
    {MP_SCALER_PRESET_TORCH, 0x1p16f, 0, 0, 2000, 1, 0},
    {MP_SCALER_PRESET_APEX_AMP, 0x1p16f, 0, 0x1p24f, 2000, 1, 0},
    {MP_SCALER_PRESET_APEX_HYSTERESIS, 0x1p16f, 0, 0, 2000, 2, MP_SCALER_FLAG_REFILL_EACH_STEP},
    {MP_SCALER_PRESET_MEGATRON, 0x1p32f, 1, 0, 1000, 2, 0},
    {MP_SCALER_PRESET_DEEPSPEED, 0x1p16f, 1, 0, 1000, 2, 0},
    {MP_SCALER_PRESET_DEEPSPEED_FUSED, 0x1p16f, 1, 0, 1000, 1, MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED},
    {MP_SCALER_PRESET_KERAS, 0x1p15f, 1, 0, 2000, 1, 0},
    {MP_SCALER_PRESET_KERAS_3, 0x1p15f, 0, 0, 2000, 1, 0},
    {MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF, 0x1p14f, 1, 0x1p14f, 2000, 1, 0},
    {MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX, 1, 1, 0x1p14f, 2000, 1, 0},
};

mp_scaler_config_t scaler_preset(const mp_scaler_preset_t &preset) {
  require_enum(preset, "preset");
  if (preset == MP_SCALER_PRESET_LOGNORMAL)
    return default_scaler_config(MP_SCALER_POLICY_LOGNORMAL);
  const Preset &row = *std::ranges::find(kPresets, preset, &Preset::preset);
  mp_scaler_config_t c = default_scaler_config(MP_SCALER_POLICY_BACKOFF);
  MP_COPY_FIELDS(c, row, init_scale, min_scale, max_scale, growth_interval, hysteresis, flags);
  c.max_consecutive_skips = 0;
  if (preset == MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX) {
    c.policy = MP_SCALER_POLICY_LOGMAX;
    c.log2_max = 16.0f;
    c.overflow_std_dev = 3.09f;
  }
  return c;
}

// ---------------------------------------------------------------------------- names

struct Word {
  std::string_view text;
  mp_scaler_config_t (*config)();
};

constexpr Word kWords[] = {
    {"Backoff", [] { return scaler_preset(MP_SCALER_PRESET_OPENSEQ2SEQ_BACKOFF); }},
    {"LogMax", [] { return scaler_preset(MP_SCALER_PRESET_OPENSEQ2SEQ_LOGMAX); }},
    {"lognormal", [] { return scaler_preset(MP_SCALER_PRESET_LOGNORMAL); }},
    {"dynamic", [] { return scaler_preset(MP_SCALER_PRESET_APEX_AMP); }},
    {"none", [] { return default_scaler_config(MP_SCALER_POLICY_STATIC); }},
};

/// Parses a number.  Values outside the range of float are NaN, which callers reject.
std::optional<float> parse_number(std::string_view text) {
  float number = 0.0f;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::invalid_argument || stop != end) return std::nullopt;
  return error == std::errc() ? number : std::numeric_limits<float>::quiet_NaN();
}

mp_scaler_config_t static_config(float scale) {
  mp_scaler_config_t c = default_scaler_config(MP_SCALER_POLICY_STATIC);
  c.init_scale = scale;
  c.min_scale = std::min(c.min_scale, scale);
  c.max_scale = std::max(c.max_scale, scale);
  return c;
}

mp_scaler_config_t named_config(std::string_view name) {
  for (const Word &word : kWords)
    if (equals_ignore_case(name, word.text)) return word.config();
  // Truncates long input, so that the list of names fits in the message.
  const std::string_view start = truncated(name);
  if (const std::optional<float> number = parse_number(name)) {
    MP_REQUIRE(is_scale(*number), MP_ERROR_INVALID_ARGUMENT, "name = \"", start,
               "\": a loss scale must be positive and finite, with a finite reciprocal");
    return static_config(*number);
  }
  std::string known;
  for (const Word &word : kWords) known += std::string(word.text) + ", ";
  fail(MP_ERROR_NOT_FOUND, "name = \"", start, "\" is unknown; use ", known,
       "or a number such as 128 for a static loss scale");
}

// ---------------------------------------------------------------------------- saved states

/// Converts to float.  Values outside its range are NaN, which callers reject.
float narrow(double number) {
  const bool fits = std::abs(number) <= double{std::numeric_limits<float>::max()};
  return fits ? static_cast<float>(number) : std::numeric_limits<float>::quiet_NaN();
}

mp_scaler_config_t config_of(const mp_torch_scaler_t &torch) {
  mp_scaler_config_t c = scaler_preset(MP_SCALER_PRESET_TORCH);
  c.init_scale = narrow(torch.scale);
  MP_COPY_FIELDS(c, torch, growth_factor, backoff_factor, growth_interval);
  MP_REQUIRE(is_scale(c.init_scale), MP_ERROR_INVALID_ARGUMENT, "saved->scale = ", torch.scale,
             " must be positive and finite, with a finite reciprocal");
  check_growth(c, "saved->");
  return c;
}

}  // namespace

mp_status_t mp_scaler_config_init_preset(mp_scaler_config_t *config, size_t struct_size,
                                         mp_scaler_preset_t preset) {
  return init(__func__, config, "config", struct_size, [&] { return scaler_preset(preset); });
}

mp_status_t mp_scaler_config_from_name(const char *name, mp_scaler_config_t *config,
                                       size_t struct_size) {
  return init(__func__, config, "config", struct_size, [&] {
    require_pointer(name, "name");
    return named_config(name);
  });
}

mp_status_t mp_scaler_from_torch(const mp_torch_scaler_t *saved, mp_scaler_config_t *config,
                                 mp_scaler_state_t *state) {
  return call(__func__, [&] {
    const mp_torch_scaler_t &torch = require_pointer(saved, "saved");
    const mp_scaler_config_t c = config_of(torch);
    require_growth_tracker(torch.growth_tracker, "saved->", 0, c.growth_interval);
    mp_scaler_state_t s = default_scaler_state(c);
    s.growth_tracker = torch.growth_tracker;
    require_struct(state, "state");
    write_struct(config, "config", c);
    write_struct(state, "state", s);
  });
}

mp_status_t mp_scaler_to_torch(const mp_scaler_config_t *config, const mp_scaler_state_t *state,
                               mp_torch_scaler_t *saved) {
  return call(__func__, [&] {
    const mp_scaler_config_t c = read_struct(config, "config");
    const mp_scaler_state_t s = read_struct(state, "state");
    require_pointer(saved, "saved") = {.scale = static_cast<double>(s.scale),
                                       .growth_factor = c.growth_factor,
                                       .backoff_factor = c.backoff_factor,
                                       .growth_interval = c.growth_interval,
                                       .growth_tracker = s.growth_tracker};
  });
}

mp_status_t mp_scaler_from_megatron(const mp_megatron_scaler_t *saved, mp_scaler_state_t *state) {
  return call(__func__, [&] {
    const mp_megatron_scaler_t &megatron = require_pointer(saved, "saved");
    require_scale(megatron.scale, "saved->scale");
    require_not_negative(megatron.growth_tracker, "saved->growth_tracker");
    mp_scaler_state_t s = default_scaler_state(scaler_preset(MP_SCALER_PRESET_MEGATRON));
    MP_COPY_FIELDS(s, megatron, scale, growth_tracker);
    s.hysteresis_left = std::max(megatron.hysteresis_tracker, 0);
    write_struct(state, "state", s);
  });
}

mp_status_t mp_scaler_to_megatron(const mp_scaler_state_t *state, mp_megatron_scaler_t *saved) {
  return call(__func__, [&] {
    const mp_scaler_state_t s = read_struct(state, "state");
    require_pointer(saved, "saved") = {.scale = s.scale,
                                       .growth_tracker = s.growth_tracker,
                                       .hysteresis_tracker = s.hysteresis_left};
  });
}
