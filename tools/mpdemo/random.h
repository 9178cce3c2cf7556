// Random numbers that depend only on the seed: distributions and std::shuffle differ between
// implementations of the standard library.
#pragma once

#include <cstdint>
#include <random>

namespace mpdemo {

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}

  /// Uniform in [0, 1), all 53 bits of a double.
  double uniform01() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }

  /// Approximately normal with mean 0 and variance 1: the sum of 12 uniform numbers, minus 6.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform01();
    return sum;
  }

  /// Shuffles by Fisher and Yates; `swap_items(i, j)` exchanges two of `count` items.
  template <typename SwapItems>
  void shuffle(int64_t count, SwapItems swap_items) {
    for (int64_t i = count - 1; i > 0; --i)
      swap_items(i, static_cast<int64_t>(bits_() % static_cast<uint64_t>(i + 1)));
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace mpdemo
