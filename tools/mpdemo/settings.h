// Settings with which the demo trains a network.
#pragma once

#include <cstdint>
#include <vector>

#include "options.h"
#include "training.h"

namespace mpdemo {

/// Returns ordinary training, in which mixed precision should lose no accuracy, and for some
/// networks training with a small task weight, like auxiliary losses: without loss scaling most
/// fp16 gradients round to zero.
/// @param batches  per epoch
std::vector<Setting> make_settings(const Architecture &architecture, const Options &options,
                                   int64_t batches);

}  // namespace mpdemo
