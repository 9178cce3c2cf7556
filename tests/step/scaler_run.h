// A scaler updated with given overflows and gradients instead of by training.
#pragma once

#include "step_fixtures.h"

namespace mptest {

/// Passes amax only to the policies that learn from it: lognormal and logmax.
class ScalerRun {
 public:
  explicit ScalerRun(const mp_scaler_config_t &config)
      : config_(config), scaler_(make_scaler(config)) {}

  const mp_scaler_config_t &config() const { return config_; }
  const UniqueScaler &scaler() const { return scaler_; }
  mp_scaler_t get() const { return scaler_.get(); }
  float scale() const { return read_float(mp_scaler_get_scale_address(get())); }
  float inv_scale() const { return read_float(mp_scaler_get_inv_scale_address(get())); }
  float found_inf() const { return read_float(mp_scaler_get_found_inf_address(get())); }
  mp_scaler_state_t state() const { return state_of(get()); }

  /// Makes one update.
  /// @param found_inf  the flag before the update
  /// @param amax       largest gradient before scaling
  /// @return S after the update
  float update(float found_inf, double amax = 1.0) {
    return update_scaled(found_inf, static_cast<float>(amax * scale()));
  }

  /// @param scaled_amax  as passed to the library
  float update_scaled(float found_inf, float scaled_amax) {
    write_float(mp_scaler_get_found_inf_address(get()), found_inf);
    amax_.set(scaled_amax);
    require_ok(mp_scaler_update(get(), learns_from_amax() ? amax_.data() : nullptr, kStream));
    return scale();
  }

  /// Makes an update that passes amax for every policy and leaves the flag unchanged.
  float update_by_amax(float scaled_amax) {
    amax_.set(scaled_amax);
    require_ok(mp_scaler_update(get(), amax_.data(), kStream));
    return scale();
  }

 private:
  bool learns_from_amax() const {
    return config_.policy == MP_SCALER_POLICY_LOGNORMAL ||
           config_.policy == MP_SCALER_POLICY_LOGMAX;
  }

  mp_scaler_config_t config_;
  UniqueScaler scaler_;
  DeviceFloat amax_{0.0f};
};

using Scales = std::vector<float>;

/// Returns S after each step with these amaxes; a step with infinity or NaN overflows.
inline Scales scales_of(const mp_scaler_config_t &config, const std::vector<double> &amaxes) {
  ScalerRun run(config);
  Scales scales;
  for (const double amax : amaxes)
    scales.push_back(run.update(std::isfinite(amax) ? 0.0f : 1.0f, amax));
  return scales;
}

/// The sequence on which the policies of several systems were compared.
inline const std::vector<double> kSequenceA = {.5,  .25,  2, HUGE_VAL, 1, std::nan(""),
                                               .75, .125, 4, .03125,   8, .5};

}  // namespace mptest
