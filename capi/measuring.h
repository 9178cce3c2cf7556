// Measuring of kernels by the calls of one thread, for code that makes public calls.
#pragma once

#include <cstdint>

namespace mp {

/// Lets the calls of this thread measure kernels while the object exists, as mp_tuning_measure
/// does for all threads.
class Measuring {
 public:
  /// @param max_kernels  0 = no effect
  explicit Measuring(int32_t max_kernels);
  ~Measuring();
  Measuring(const Measuring &) = delete;
  Measuring &operator=(const Measuring &) = delete;

 private:
  const int32_t before_;
};

}  // namespace mp
