// Settings with which the demo trains its networks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training.h"

namespace mpdemo {

/// Options of the user for the mixed runs.
struct MixedPrecision {
  std::vector<mp_dtype_t> dtypes = {MP_FP16};
  std::string loss_scale;                    ///< keyword of mp_scaler_config_from_name, or empty
  std::optional<mp_scaler_config_t> scaler;  ///< parsed; none: the demo's default
};

/// Ordinary training: mixed precision should lose no accuracy.
Setting standard_setting(double epochs, const MixedPrecision &mixed);

/// Training with a small task weight, like auxiliary losses: without loss scaling most fp16
/// gradients round to zero.
/// @param optimizer  for the title: each compensates for the weight differently.
Setting small_weight_setting(double epochs, const MixedPrecision &mixed,
                             mp_optimizer_kind_t optimizer);

}  // namespace mpdemo
