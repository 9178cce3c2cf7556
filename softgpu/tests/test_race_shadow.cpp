// Shadow memory of the race check.
#include <algorithm>
#include <utility>
#include <vector>

#include "softgpu/machine/race_shadow.h"
#include "tests/support/catch.h"

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

TEST_CASE("race: the time per access does not depend on the number of readers", "[race]") {
  constexpr uint32_t kReaders = 1000, kRounds = 4;
  uint32_t num_comparisons = 0;
  const auto is_unordered = [&](const RaceAccess &) {
    num_comparisons++;
    return false;
  };
  RaceShadow shadow(4);
  shadow.add(0, 4, access_by(0, true), [](const RaceAccess &) { return true; });
  for (uint32_t round = 1; round <= kRounds; round++) {
    for (uint32_t reader = 1; reader <= kReaders; reader++) {
      RaceAccess read = access_by(reader, false);
      read.time = round;
      shadow.find_race(0, 4, read, [&](const RaceAccess &) {
        num_comparisons++;
        return true;
      });
      shadow.add(0, 4, read, is_unordered);
    }
  }
  CHECK(num_comparisons < 8 * kRounds * kReaders);
  // A write is compared with the last read of each.
  uint32_t num_reads = 0;
  shadow.find_race(0, 4, access_by(0, true), [&](const RaceAccess &before) {
    num_reads += !before.writes;
    if (!before.writes) CHECK(before.time == kRounds);
    return true;
  });
  CHECK(num_reads == kReaders);
}

TEST_CASE("race: a cell contains one access of each kind per lane", "[race]") {
  // Lanes release separately, so that the time of the warp advances between their accesses.
  const auto is_unordered = [](const RaceAccess &) { return false; };
  RaceShadow shadow(4);
  const auto read = [&](uint32_t cluster, Lanes lanes, uint32_t time) {
    RaceAccess access = access_by(cluster, false);
    access.lanes = lanes;
    access.time = time;
    shadow.add(0, 4, access, is_unordered);
  };
  for (uint32_t cluster : {1u, 2u}) {
    read(cluster, 0b11, 1);
    for (uint32_t time = 2; time < 100; time++) {
      read(cluster, 0b01, time);
      read(cluster, 0b10, time);
    }
    read(cluster, 0b01, 100);
  }
  std::vector<std::pair<Lanes, uint32_t>> left;
  shadow.find_race(0, 4, access_by(0, true), [&](const RaceAccess &before) {
    left.emplace_back(before.lanes, before.time);
    return true;
  });
  std::ranges::sort(left);
  CHECK(left == std::vector<std::pair<Lanes, uint32_t>>{{1, 100}, {1, 100}, {2, 99}, {2, 99}});
}

}  // namespace
}  // namespace softgpu::test
