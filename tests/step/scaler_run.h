// A scaler that is fed by hand: overflows and gradients instead of a training.
#pragma once

#include "step_fixtures.h"

namespace mptest {

/// The amax reaches the policies that learn from it: lognormal and logmax.
class ScalerRun {
 public:
  explicit ScalerRun(const mp_scaler_config_t &config)
      : config_(config), scaler_(make_scaler(config)) {}

  const mp_scaler_config_t &config() const { return config_; }
  mp_scaler_t get() const { return scaler_.get(); }
  float scale() const { return read_float(mp_scaler_get_scale_address(get())); }
  float inv_scale() const { return read_float(mp_scaler_get_inv_scale_address(get())); }
  float found_inf() const { return read_float(mp_scaler_get_found_inf_address(get())); }
  mp_scaler_state_t state() const { return state_of(get()); }

  /// One update.
  /// @param found_inf  what the flag holds before it
  /// @param amax       largest gradient before scaling
  /// @return S after it
  float update(float found_inf, double amax = 1.0) {
    return update_scaled(found_inf, static_cast<float>(amax * scale()));
  }

  /// @param scaled_amax  as the library gets it
  float update_scaled(float found_inf, float scaled_amax) {
    write_float(mp_scaler_get_found_inf_address(get()), found_inf);
    amax_.set(scaled_amax);
    require_ok(mp_scaler_update(get(), learns_from_amax() ? amax_.data() : nullptr, kStream));
    return scale();
  }

  /// One update that gets the amax whatever the policy, and no flag.
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

}  // namespace mptest
