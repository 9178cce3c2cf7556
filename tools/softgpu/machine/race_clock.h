// Vector clocks, for SOFTGPU_RACECHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace softgpu {

/// Vector clock: for each component, the time up to which its accesses have happened before.
class RaceClock {
 public:
  uint32_t operator[](size_t component) const {
    return component < times_.size() ? times_[component] : 0;
  }
  void learn(size_t component, uint32_t time);
  /// Sets each component to the maximum.
  void join(const RaceClock &other);
  /// Sets each component to the minimum.
  void meet(const RaceClock &other);

 private:
  std::vector<uint32_t> times_;
};

/// Immutable clock that threads share after a barrier; null is the empty clock.
using SharedClock = std::shared_ptr<const RaceClock>;

/// Returns the component-wise maximum.
SharedClock join(const SharedClock &, const SharedClock &);
/// Returns the component-wise minimum.
SharedClock meet(const SharedClock &, const SharedClock &);

}  // namespace softgpu
