// The memory behind tensor maps and choices of kernels.
#include "base/cache.h"

#include <stdexcept>

#include "tests/support/catch.h"

namespace {

/// `place`: where in the cache; keys of one place differ in `name`.
struct Key {
  uint64_t place;
  int name;

  bool operator==(const Key &) const = default;
  uint64_t hash() const { return place << 56; }
};

}  // namespace

TEST_CASE("cache: a key is computed once, until another takes its place") {
  mp::Cache<Key, int> cache;
  int made = 0;
  const auto find = [&](const Key &key) {
    return cache.find(key, [&] {
      made++;
      return 10 * key.name;
    });
  };
  CHECK(find({3, 1}) == 10);
  CHECK(find({3, 1}) == 10);
  CHECK(find({4, 2}) == 20);
  CHECK(find({3, 1}) == 10);
  CHECK(made == 2);
  CHECK(find({3, 5}) == 50);  // the same place
  CHECK(find({3, 1}) == 10);
  CHECK(find({4, 2}) == 20);
  CHECK(made == 4);
  CHECK(cache.misses() == 4);
}

TEST_CASE("cache: the first key of a place may look like an empty one") {
  mp::Cache<Key, int> cache;
  CHECK(cache.find({0, 0}, [] { return 7; }) == 7);
}

TEST_CASE("cache: what could not be computed is not remembered") {
  mp::Cache<Key, int> cache;
  CHECK(cache.find({1, 1}, [] { return 1; }) == 1);
  CHECK_THROWS(cache.find({1, 2}, []() -> int { throw std::runtime_error("no"); }));
  CHECK(cache.find({1, 2}, [] { return 2; }) == 2);
}
