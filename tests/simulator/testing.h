// Helpers of the simulator tests: modes and launches.  These tests define kernels, so unlike all
// other tests they include kernels/simt/ and link the simulator instead of libmpcore.so.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "base/target_error.h"
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

constexpr uint64_t kSeeds = 20;

/// Sets the simulator's mode for a scope.
class ModeScope {
 public:
  explicit ModeScope(const engine::Mode &mode) : before_(engine::mode()) { engine::set_mode(mode); }
  ModeScope(const ModeScope &) = delete;
  ModeScope &operator=(const ModeScope &) = delete;
  ~ModeScope() { engine::set_mode(before_); }

 private:
  const engine::Mode before_;
};

/// Calls test() in the plain mode, then in the strict mode with each seed.
template <class Test>
void in_every_mode(Test test) {
  {
    const ModeScope scope(engine::Mode::plain());
    INFO("plain mode");
    test();
  }
  for (uint64_t seed = 0; seed < kSeeds; seed++) {
    const ModeScope scope(engine::Mode::strict_with(seed));
    INFO("strict mode, seed " << seed);
    test();
  }
}

/// Launches `kernel`; returns the simulator's diagnostic, empty if there is none.
template <class Argument>
std::string outcome(void (*kernel)(const Argument &), const mp::host::LaunchShape &shape,
                    const std::type_identity_t<Argument> &argument,
                    int num_sms = engine::max_workers()) {
  mp::Device device{};
  device.num_sms = num_sms;
  try {
    mp::host::launch("kernel", kernel, device, shape, nullptr, argument);
  } catch (const mp::TargetError &error) {
    return error.what();
  }
  return "";
}

/// Launches `kernel`; fails the test if the simulator reports a violation.
template <class Argument>
void run(void (*kernel)(const Argument &), const mp::host::LaunchShape &shape,
         const std::type_identity_t<Argument> &argument, int num_sms = engine::max_workers()) {
  const std::string diagnostic = outcome(kernel, shape, argument, num_sms);
  if (!diagnostic.empty()) FAIL(diagnostic);
}

}  // namespace mptest
