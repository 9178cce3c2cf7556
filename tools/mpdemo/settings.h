// How the networks of the demo are trained.
#pragma once

#include <cstdint>

#include "training.h"

namespace mpdemo {

/// Ordinary training: mixed precision should cost nothing.
Setting standard_setting(double epochs);

/// The same training under a small task weight, as auxiliary losses have it: without loss scaling
/// most fp16 gradients round to zero.
Setting small_weight_setting(double epochs);

}  // namespace mpdemo
