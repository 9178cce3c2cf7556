// How the networks of the demo are trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "training.h"

namespace mpdemo {

/// What the user has chosen for the mixed runs.
struct MixedPrecision {
  std::vector<mp_dtype_t> dtypes = {MP_FP16};
  std::string loss_scale;                    ///< a word of mp_scaler_config_from_name, or empty
  std::optional<mp_scaler_config_t> scaler;  ///< what it means; none: the demo's own choice
};

/// Ordinary training: mixed precision should cost nothing.
Setting standard_setting(double epochs, const MixedPrecision &mixed);

/// The same training under a small task weight, as auxiliary losses have it: without loss scaling
/// most fp16 gradients round to zero.
/// @param optimizer  for the title: each has its own way to make up for the weight.
Setting small_weight_setting(double epochs, const MixedPrecision &mixed,
                             mp_optimizer_kind_t optimizer);

}  // namespace mpdemo
