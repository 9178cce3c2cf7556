// Random numbers of strict mode.
#pragma once

#include <cstdint>

namespace mp::host::engine {

/// xorshift64*: equal seeds give equal schedules on all machines.
class Random {
 public:
  void seed(uint64_t value) { state_ = value * 0x9E3779B97F4A7C15u | 1; }
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>(state_ * 0x2545F4914F6CDD1Du >> 32);
  }

 private:
  uint64_t state_ = 1;
};

}  // namespace mp::host::engine
