// Reductions over a warp and a block, and detection of the last block of a grid.  The order of a
// reduction is fixed, so equal inputs give equal bits.
//
// The host body of warp_reduce is one collective instead of five butterfly shuffles.
#pragma once

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

struct Sum {
  template <class T>
  MP_HD T operator()(T a, T b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  MP_HD T operator()(T a, T b) const {
    return max_of(a, b);
  }
};
struct Min {
  template <class T>
  MP_HD T operator()(T a, T b) const {
    return min_of(a, b);
  }
};

/// Maximum of each 16-bit half of a word, unsigned.
MP_DEVICE uint32_t max_of_pairs(uint32_t a, uint32_t b) {
#if MP_ON_CUDA
  return __vmaxu2(a, b);
#else
  return max_of(a >> 16, b >> 16) << 16 | max_of(a & 0xffffu, b & 0xffffu);
#endif
}

#if MP_ON_CUDA

/// Reduces over the warp; every lane gets the result.
template <class Op, class T>
MP_DEVICE T warp_reduce(T value, Op op = {}) {
  MP_UNROLL
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2)
    value = op(value, shuffle_xor(value, distance));
  return value;
}

#else

template <class Op, class T>
T warp_reduce(T value, Op = {}, source_location where = source_location::current()) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  engine::Thread &thread = engine::this_thread();
  const int lane = thread.lane;
  engine::Warp &warp = *thread.warp;
  std::memcpy(&warp.value[lane], &value, sizeof value);
  const auto combine = [](engine::Warp &w) {
    T result, next;
    std::memcpy(&result, &w.value[0], sizeof result);
    for (int i = 1; i < kWarpSize; i++) {
      std::memcpy(&next, &w.value[i], sizeof next);
      result = Op{}(result, next);
    }
    for (uint64_t &out : w.result) std::memcpy(&out, &result, sizeof result);
  };
  engine::warp_collective(thread, "warp_reduce", combine, where);
  std::memcpy(&value, &warp.result[lane], sizeof value);
  return value;
}

#endif

/// Inclusive scan: lane l gets the reduction of lanes 0 to l.
template <class Op, class T>
MP_DEVICE T warp_scan(T value, Op op = {}) {
  MP_UNROLL
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const T below = shuffle(value, max_of(lane_index() - distance, 0));
    if (lane_index() >= distance) value = op(below, value);
  }
  return value;
}

/// Reduces over the block; every thread gets the result.  All threads must call it.
template <int kThreads, class Op, class T>
MP_DEVICE T block_reduce(T value, Op op = {}) {
  constexpr int kWarps = kThreads / kWarpSize;
  MP_SHARED(T, of_warps, [kWarps]);
  value = warp_reduce<Op>(value);
  block_sync();  // a previous call may still use of_warps
  if (lane_index() == 0) of_warps[warp_index()] = value;
  block_sync();
  value = of_warps[0];
  MP_UNROLL
  for (int w = 1; w < kWarps; w++) value = op(value, of_warps[w]);
  return value;
}

/// Returns true in all threads of the last block of the grid that calls it.  That block sees all
/// gmem writes of other blocks before their calls.  `blocks_done` is 0 before and after the launch.
MP_DEVICE bool arrive_last(uint32_t *blocks_done) {
  MP_SHARED(uint32_t, arrived, [1]);
  block_sync();
  if (thread_index() == 0) {
    device_fence();
    arrived[0] = atomic_wrap_inc(blocks_done, static_cast<uint32_t>(grid_size() - 1));
    device_fence();
  }
  block_sync();
  return arrived[0] == static_cast<uint32_t>(grid_size() - 1);
}

}  // namespace mp::MP_TARGET
