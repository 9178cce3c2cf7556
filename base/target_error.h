// The failure that capi/ turns into a status and a message.
#pragma once

#include <stdexcept>
#include <string>

#include "mpcore/core.h"

namespace mp {

/// The environment failed (driver, memory) or, in the simulator, a kernel broke a rule of the
/// hardware.  What kernels include has no strings: they call throw_target_error() of device.h.
struct TargetError : std::runtime_error {
  TargetError(mp_status_t status, const std::string &what)
      : std::runtime_error(what), status(status) {}
  mp_status_t status;
};

}  // namespace mp
