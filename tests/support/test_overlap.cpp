// Tests of capi/overlap.h against a list of every byte.
#include <set>

#include "capi/check.h"
#include "capi/overlap.h"
#include "catch.h"
#include "input_values.h"

using namespace mptest;

namespace {

constexpr uintptr_t kBase = 1 << 20;  // an address without memory; it is not accessed

std::set<uintptr_t> bytes_of(const mp::Region &r) {
  std::set<uintptr_t> bytes;
  const auto first = reinterpret_cast<uintptr_t>(r.data);
  for (int64_t item = 0; item < r.items.count; item++)
    for (int64_t row = 0; row < r.rows.count; row++)
      for (int64_t i = 0; i < r.run; i++)
        bytes.insert(first + static_cast<uintptr_t>(item * r.items.pitch + row * r.rows.pitch + i));
  return bytes;
}

bool share_a_byte(const mp::Region &a, const mp::Region &b) {
  const std::set<uintptr_t> of_a = bytes_of(a), of_b = bytes_of(b);
  return std::ranges::any_of(of_a, [&](uintptr_t byte) { return of_b.contains(byte); });
}

bool is_refused(const mp::Region &a, const mp::Region &b) {
  try {
    mp::require_apart(a, b);
    return false;
  } catch (const mp::CallError &) {
    return true;
  }
}

mp::Region random_region(Random &random, const char *name, int64_t pitch, int64_t item_pitch) {
  const auto at = kBase + static_cast<uintptr_t>(random.integer(0, 90));
  return {reinterpret_cast<const void *>(at),
          name,
          random.integer(0, 7),
          {random.integer(0, 4), pitch},
          {random.integer(0, 3), item_pitch}};
}

}  // namespace

TEST_CASE("overlap: regions with equal strides are rejected if and only if they share a byte") {
  Random random(41);
  int64_t refused = 0;
  for (int i = 0; i < 20000; i++) {
    // Dense items, items with gaps in sequence, items adjacent in a row.
    const int64_t pitch = random.integer(7, 12);
    const int64_t item_pitch = 4 * pitch + (i % 2 == 0 ? random.integer(0, 9) : 0);
    const bool interleaved = i % 4 == 3;
    const int64_t row = interleaved ? 40 : pitch, item = interleaved ? pitch : item_pitch;
    const mp::Region a = random_region(random, "a", row, item);
    const mp::Region b = random_region(random, "b", row, item);
    CAPTURE(i, row, item, a.data, b.data, a.run, b.run, a.rows.count, b.rows.count, a.items.count,
            b.items.count);
    CHECK(is_refused(a, b) == share_a_byte(a, b));
    refused += is_refused(a, b);
  }
  CHECK(refused > 1000);
  CHECK(refused < 19000);
}

TEST_CASE("overlap: regions that share a byte are rejected for all strides") {
  Random random(42);
  for (int i = 0; i < 20000; i++) {
    const mp::Region a = random_region(random, "a", random.integer(0, 20), random.integer(0, 40));
    const mp::Region b = random_region(random, "b", random.integer(0, 20), random.integer(0, 40));
    CAPTURE(i, a.data, b.data, a.run, b.run, a.rows.pitch, b.rows.pitch, a.items.pitch,
            b.items.pitch);
    if (share_a_byte(a, b)) CHECK(is_refused(a, b));
  }
}
