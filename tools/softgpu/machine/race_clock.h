// Vector clocks, for SOFTGPU_RACECHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace softgpu {

/// How much is known of what others did: of each component the time until which all that it did has happened before.
class RaceClock {
 public:
  uint32_t operator[](size_t component) const {
    return component < times_.size() ? times_[component] : 0;
  }
  void learn(size_t component, uint32_t time);
  /// What either knows.
  void join(const RaceClock &other);
  /// What both know.
  void meet(const RaceClock &other);

 private:
  std::vector<uint32_t> times_;
};

/// Threads that came from the same barrier share one; null knows nothing.
using SharedClock = std::shared_ptr<const RaceClock>;

/// What either knows.
SharedClock join(const SharedClock &, const SharedClock &);
/// What both know.
SharedClock meet(const SharedClock &, const SharedClock &);

}  // namespace softgpu
