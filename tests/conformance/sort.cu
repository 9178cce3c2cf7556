// Pairs sorted by key, with many equal keys, so that an unstable order is detected.
#include "kernels/simt/sort.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "cases.h"

namespace mp::MP_TARGET {

namespace {

struct Pairs {
  std::vector<uint32_t> keys, values;
};

/// Returns pairs with keys of `bits` bits; the values are their initial positions.
Pairs random_pairs(size_t count, int bits) {
  std::mt19937 random(1);
  Pairs pairs;
  // Half of the keys have one of three values, the others are random.
  for (size_t i = 0; i < count; i++)
    pairs.keys.push_back((random() % 2 == 0 ? random() % 3 * 0x11111111 : random()) >> (32 - bits));
  pairs.values.resize(count);
  std::iota(pairs.values.begin(), pairs.values.end(), 0u);
  return pairs;
}

Pairs sorted(const Device &device, const Pairs &pairs, int bits) {
  const size_t count = pairs.keys.size(), bytes = sort_scratch_bytes(static_cast<int64_t>(count));
  const Memory<uint32_t> keys(device, pairs.keys), other_keys(device, count);
  const Memory<uint32_t> values(device, pairs.values), other_values(device, count);
  const Memory<uint8_t> scratch(device, bytes);
  const int now =
      sort_pairs(device, {{keys.data(), other_keys.data()}, {values.data(), other_values.data()}},
                 static_cast<int64_t>(count), bits, {scratch.data(), bytes}, nullptr);
  synchronize(device, nullptr);
  return {(now == 0 ? keys : other_keys).download(), (now == 0 ? values : other_values).download()};
}

Pairs sorted_by_definition(const Pairs &pairs) {
  Pairs sorted = pairs;
  std::ranges::stable_sort(sorted.values, {}, [&](uint32_t place) { return pairs.keys[place]; });
  std::ranges::stable_sort(sorted.keys);
  return sorted;
}

}  // namespace

/// Injected bug: the highest bit is ignored.
Output conform_sorts(const Device &device, Mistake mistake) {
  Output output;
  for (const int bits : {2, 8, 9, 17, 32}) {
    for (const size_t count : {1, 100, 5000, 30000}) {
      const Pairs pairs = random_pairs(count, bits);
      const Pairs got = sorted(device, pairs, mistake == Mistake::made ? bits - 1 : bits);
      const Pairs defined = sorted_by_definition(pairs);
      const std::string name =
          "keys of " + std::to_string(bits) + " bits, " + std::to_string(count);
      output.push_back(make_part(name, 1, got.keys, defined.keys));
      output.push_back(make_part("values of " + name, 1, got.values, defined.values));
    }
  }
  return output;
}

}  // namespace mp::MP_TARGET
