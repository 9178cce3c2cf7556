#include "tools/softgpu/machine/race_clock.h"

#include <algorithm>

namespace softgpu {

void RaceClock::learn(size_t component, uint32_t time) {
  if (component >= times_.size()) times_.resize(component + 1);
  times_[component] = std::max(times_[component], time);
}

void RaceClock::join(const RaceClock &other) {
  if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
  uint32_t *to = times_.data();
  const uint32_t *from = other.times_.data();
  for (size_t i = 0; i < other.times_.size(); i++) to[i] = to[i] < from[i] ? from[i] : to[i];
}

void RaceClock::meet(const RaceClock &other) {
  times_.resize(std::min(times_.size(), other.times_.size()));
  for (size_t i = 0; i < times_.size(); i++) times_[i] = std::min(times_[i], other.times_[i]);
}

SharedClock join(const SharedClock &x, const SharedClock &y) {
  if (x == y || !y) return x;
  if (!x) return y;
  auto both = std::make_shared<RaceClock>(*x);
  both->join(*y);
  return both;
}

SharedClock meet(const SharedClock &x, const SharedClock &y) {
  if (x == y) return x;
  if (!x || !y) return nullptr;
  auto both = std::make_shared<RaceClock>(*x);
  both->meet(*y);
  return both;
}

}  // namespace softgpu
