// Random choices, for cases that combine options at random.
#pragma once

#include <cstddef>

#include "input_values.h"

namespace mptest {

/// Returns one of the values.
template <class T, size_t kCount>
T any(Random &random, const T (&values)[kCount]) {
  return values[static_cast<size_t>(random.integer(0, int64_t{kCount} - 1))];
}

/// Returns true once in `n` calls on average.
inline bool one_in(int64_t n, Random &random) {
  return random.integer(1, n) == 1;
}

}  // namespace mptest
