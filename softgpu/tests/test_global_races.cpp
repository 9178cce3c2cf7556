// Accesses to global memory that the race check keeps.
#include <memory>

#include "softgpu/machine/block.h"
#include "softgpu/machine/global_races.h"
#include "tests/support/catch.h"

namespace softgpu::test {
namespace {

TEST_CASE("race: accesses of the last grid that has ended are kept", "[race]") {
  constexpr uint64_t kAddress = 1 << 20, kDistance = 1 << 16;
  GlobalRaces races;
  const auto is_unordered = [](const RaceAccess &) { return false; };
  RaceAccess access;
  access.lanes = 1;
  access.time = 1;
  access.writes = true;
  const auto has_access = [&](uint64_t address) {
    return races.find_race(address, 4, access, is_unordered) != nullptr;
  };
  const auto write = [&](uint64_t address) { races.add(address, 4, access, is_unordered); };

  // Each grid writes to a page, and all write to the first page.
  for (uint64_t grid = 0; grid < 3; grid++) {
    access.cluster = races.add_grid(std::make_shared<Grid>());
    for (const uint64_t address : {kAddress, kAddress + (1 + grid) * kDistance}) write(address);
  }
  const auto check = [&](bool first, bool second) {
    CHECK(has_access(kAddress));
    CHECK(has_access(kAddress + kDistance) == first);
    CHECK(has_access(kAddress + 2 * kDistance) == second);
    CHECK(has_access(kAddress + 3 * kDistance));
  };
  races.note_ended(0);
  check(true, true);
  races.note_ended(1);
  check(true, true);
  races.note_ended(2);
  check(false, true);
  races.note_ended(3);
  check(false, false);
}

}  // namespace
}  // namespace softgpu::test
