// Misuse of the library that ThreadSanitizer must detect.
#include <atomic>

#include "gang.h"
#include "support/device.h"
#include "tests/support/testing.h"

using namespace mptest;

// Two threads use a scaler, which is not thread-safe.
TEST_CASE("child: share a scaler", "[.][injected]") {
  const mptools::Context context = mptools::make_context(MP_DEVICE_HOST);
  const mptools::Scaler scaler =
      mptools::make_scaler(context.get(), mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF));
  // Threads take turns, so that calls of both are next to each other however they are scheduled.
  // Relaxed accesses do not order the calls.
  constexpr int kCalls = 100;
  std::atomic<int> turn = 0;
  together(2, [&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      while (turn.load(std::memory_order_relaxed) % 2 != thread) std::this_thread::yield();
      mptools::check(mp_scaler_update(scaler.get(), nullptr, mptools::kStream));
      turn.fetch_add(1, std::memory_order_relaxed);
    }
  });
  CHECK(scaler != nullptr);
}
