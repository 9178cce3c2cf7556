// Vector clocks of the race check.
#include "tests/support/catch.h"
#include "tools/softgpu/machine/race_order.h"

namespace softgpu::test {
namespace {

TEST_CASE("race: clocks for the next fence are not nested", "[race]") {
  // A lane repeatedly releases to a flag and reads the flag without acquiring it.
  RaceOrder order(1, 0, 0);
  for (int i = 0; i < 3; i++) order.acquire_at_fence(0, 0, order.release(0, 1));
  const SharedClock clock = order.release(0, 1);
  REQUIRE(clock->at_fence != nullptr);
  CHECK(clock->at_fence->at_fence == nullptr);
}

TEST_CASE("race: other blocks do not receive the effects of fences", "[race]") {
  RaceOrder order(1, 0, 0);
  order.fence(0, 1);
  order.fence_proxy(0, 1);
  order.acquire_at_fence(0, 0, order.release(0, 1));
  const RaceClock exported = order.release(0, 1)->exported_by(0);
  CHECK(exported.fenced == nullptr);
  CHECK(exported.at_fence == nullptr);
  CHECK(exported.proxy_fenced != nullptr);
}

}  // namespace
}  // namespace softgpu::test
