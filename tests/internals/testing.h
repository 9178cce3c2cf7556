// Helpers of tests of internals: launches on the host target.  These tests define kernels, so
// unlike all other tests they include kernels/simt/ and link the simulator instead of libmpcore.so.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/target_error.h"
#include "host/workers.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/simt.h"
#include "tests/support/catch.h"
#include "tests/support/tally.h"

namespace mptest {

namespace engine = mp::host::engine;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAsanBuild = true;
#else
constexpr bool kAsanBuild = false;
#endif

/// Launches `kernel`; returns the simulator's diagnostic, empty if there is none.
template <class Argument>
std::string outcome(void (*kernel)(const Argument &), const mp::host::LaunchShape &shape,
                    const std::type_identity_t<Argument> &argument) {
  mp::Device device{};
  device.num_sms = engine::max_workers();
  try {
    mp::host::launch("kernel", kernel, device, shape, nullptr, argument);
  } catch (const mp::TargetError &error) {
    return error.what();
  }
  return "";
}

/// Launches `kernel`; fails the test if the simulator reports an error.
template <class Argument>
void run(void (*kernel)(const Argument &), const mp::host::LaunchShape &shape,
         const std::type_identity_t<Argument> &argument) {
  const std::string diagnostic = outcome(kernel, shape, argument);
  if (!diagnostic.empty()) FAIL(diagnostic);
}

}  // namespace mptest
