// Vector clocks of the race check.
#include <memory>

#include "softgpu/machine/block.h"
#include "softgpu/machine/global_races.h"
#include "softgpu/machine/race_order.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

TEST_CASE("race: clocks for the next fence are not nested", "[race]") {
  // A lane repeatedly releases to a flag and reads the flag without acquiring it.
  RaceOrder order(1, 0, nullptr);
  for (int i = 0; i < 3; i++) order.acquire_at_fence(0, 0, order.release(0, 1));
  const SharedClock clock = order.release(0, 1);
  REQUIRE(clock->at_fence != nullptr);
  CHECK(clock->at_fence->at_fence == nullptr);
}

TEST_CASE("race: other blocks do not receive the effects of fences", "[race]") {
  RaceOrder order(1, 0, nullptr);
  order.fence(0, 1);
  order.fence_proxy(0, 1);
  order.acquire_at_fence(0, 0, order.release(0, 1));
  const RaceClock exported = order.release(0, 1)->exported_by(0);
  CHECK(exported.fenced == nullptr);
  CHECK(exported.at_fence == nullptr);
  CHECK(exported.proxy_fenced != nullptr);
}

TEST_CASE("race: a wait for a grid includes the grids that it has waited for", "[race]") {
  // Each grid has one cluster.
  for (const bool second_waits : {false, true}) {
    GlobalRaces races;
    for (uint32_t grid = 0; grid < 4; grid++) {
      CHECK(races.add_grid(std::make_shared<Grid>()) == grid);
      const bool waits = grid != 1 || second_waits;
      races.allow_dependents(grid, false);
      if (waits) races.wait_for_previous(grid);
    }
    CHECK(!contains(races.wait_for_previous(0), 0));
    CHECK(contains(races.wait_for_previous(2), 0) == second_waits);
    CHECK(contains(races.wait_for_previous(2), 1));
    CHECK(!contains(races.wait_for_previous(2), 2));
    CHECK(contains(races.wait_for_previous(3), 0) == second_waits);
    CHECK(contains(races.wait_for_previous(3), 1));
    CHECK(contains(races.wait_for_previous(3), 2));
    for (uint32_t grid = 0; grid < 4; grid++) CHECK(races.ended_before(grid) == nullptr);
  }
}

TEST_CASE("race: a grid begins after those that the previous one has waited for", "[race]") {
  GlobalRaces races;
  const auto begin = [&](bool waits) {
    const uint32_t grid = races.add_grid(std::make_shared<Grid>());
    if (waits) races.wait_for_previous(grid);
    races.allow_dependents(grid, waits);
  };
  begin(true);   // 0
  begin(true);   // 1, whose wait is for 0
  begin(false);  // 2, which does not wait for 1
  begin(true);   // 3, whose wait is for 2
  begin(true);   // 4
  CHECK(contains(races.ended_before(2), 0));
  CHECK(!contains(races.ended_before(2), 1));
  CHECK(contains(races.ended_before(3), 0));
  CHECK(!contains(races.ended_before(3), 1));
  CHECK(contains(races.ended_before(4), 0));
  CHECK(!contains(races.ended_before(4), 1));
  CHECK(contains(races.ended_before(4), 2));
  CHECK(!contains(races.ended_before(4), 3));
}

}  // namespace
}  // namespace softgpu::test
