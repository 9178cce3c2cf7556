// Exception that capi/ converts to a status and a message.
#pragma once

#include <stdexcept>
#include <string>

#include "mpcore/core.h"

namespace mp {

/// Failure of the environment (driver, memory) or, in the simulator, a kernel's violation of the
/// programming model.  Headers that kernels include avoid strings and call throw_target_error()
/// from device_info.h.
struct TargetError : std::runtime_error {
  TargetError(mp_status_t status, const std::string &what)
      : std::runtime_error(what), status(status) {}
  mp_status_t status;
};

}  // namespace mp
