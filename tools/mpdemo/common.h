// What mpdemo shares with the other programs: status checks, owners of handles and device memory,
// JSON, printf into a string.
#pragma once

#include "common/device.h"
#include "common/json.h"
#include "common/text.h"

namespace mpdemo {

using namespace mptools;

}  // namespace mpdemo
