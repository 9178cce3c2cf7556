// Loops over the lanes of a warp.
#pragma once

#include <bit>

#include "softgpu/program/instruction.h"

namespace softgpu {

/// Calls f(lane) for each lane of the set, in order.
template <class F>
inline void for_each_lane(Lanes lanes, F &&f) {
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

/// Sets to[lane] = f(lane) for the lanes of the set.  All 32 values are computed, so that the
/// compiler can vectorize the loop; f must be safe to call for the other lanes.
template <class T, class F>
inline void set_lanes(T *__restrict to, Lanes lanes, F &&f) {
  if (lanes == kAllLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kWarpSize; lane++) to[lane] = f(lane);
    return;
  }
  T values[kWarpSize];
#pragma GCC ivdep
  for (int lane = 0; lane < kWarpSize; lane++) values[lane] = f(lane);
#pragma GCC ivdep
  for (int lane = 0; lane < kWarpSize; lane++)
    to[lane] = lanes >> lane & 1 ? values[lane] : to[lane];
}

/// Returns the lanes for which f(lane) is true.
template <class F>
inline Lanes lanes_where(F &&f) {
  Lanes lanes = 0;
#pragma GCC ivdep
  for (int lane = 0; lane < kWarpSize; lane++)
    lanes |= static_cast<Lanes>(static_cast<bool>(f(lane))) << lane;
  return lanes;
}

/// Calls f(value, same) for each distinct values[lane] of the lanes, with the lanes that have it.
template <class Values, class F>
inline void for_each_value(const Values &values, Lanes lanes, F &&f) {
  while (lanes != 0) {
    const auto value = values[static_cast<size_t>(std::countr_zero(lanes))];
    Lanes same = 0;
    for_each_lane(lanes, [&](int lane) {
      same |= static_cast<Lanes>(values[static_cast<size_t>(lane)] == value) << lane;
    });
    f(value, same);
    lanes &= ~same;
  }
}

inline int first_lane(Lanes lanes) {
  return std::countr_zero(lanes);
}
inline int num_lanes(Lanes lanes) {
  return std::popcount(lanes);
}

}  // namespace softgpu
