// Shadow memory of the race check.
#include "tests/support/catch.h"
#include "tools/softgpu/machine/race_shadow.h"

namespace softgpu::test {
namespace {

RaceAccess access_by(uint32_t cluster, bool writes) {
  RaceAccess access;
  access.lanes = 1;
  access.time = 1;
  access.writes = writes;
  access.cluster = cluster;
  return access;
}

TEST_CASE("race: shadow memory does not move while it is searched", "[race]") {
  const auto is_unordered = [](const RaceAccess &) { return false; };
  RaceShadow shadow(64);
  shadow.add(2, 2, access_by(0, true), is_unordered);
  // The search continues in parts of words that have had no accesses.
  const RaceAccess read = access_by(1, false);
  const RaceAccess *found = shadow.find_race(0, 6, read, is_unordered);
  for (uint32_t begin = 8; begin < 64; begin += 4) shadow.find_race(begin, 2, read, is_unordered);
  REQUIRE(found != nullptr);
  CHECK(found == shadow.find_race(0, 6, read, is_unordered));
}

}  // namespace
}  // namespace softgpu::test
