// Shared parts of mpdemo and other programs: status checks, owners of handles and device memory,
// printf into a string.
#pragma once

#include "support/device.h"
#include "support/text.h"

namespace mpdemo {

using namespace mptools;

}  // namespace mpdemo
