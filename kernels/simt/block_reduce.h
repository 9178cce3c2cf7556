// Reduction over a block, in a fixed order.  The device body is CUB's, which is slow to compile, so this
// is not part of reduce.h.
#pragma once

#include "kernels/simt/reduce.h"

#if MP_ON_CUDA
#include <cub/block/block_reduce.cuh>
#endif

namespace mp::MP_TARGET {

#if MP_ON_CUDA

/// To be called by all threads of the block; thread 0 gets the result.
template <int kThreads, class Op, class T>
MP_DEVICE T block_reduce(T value, Op op = {}) {
  using BlockReduce = cub::BlockReduce<T, kThreads>;
  __shared__ typename BlockReduce::TempStorage storage;
  block_sync();  // a previous call may still use the storage
  return BlockReduce(storage).Reduce(value, op);
}

#else

template <int kThreads, class Op, class T>
T block_reduce(T value, Op op = {}, source_location where = source_location::current()) {
  MP_SHARED(T, values, [kThreads]);
  values[thread_index()] = value;
  block_sync(where);
  if (thread_index() == 0)
    for (int i = 1; i < kThreads; i++) value = op(value, values[i]);
  block_sync(where);
  return value;
}

#endif

/// The same for every thread of the block.
template <int kThreads, class Op, class T>
MP_DEVICE T block_all_reduce(T value, Op op = {}) {
  constexpr int kWarps = kThreads / kWarpSize;
  MP_SHARED(T, of_warps, [kWarps]);
  value = warp_reduce<Op>(value);
  block_sync();  // a previous call may still use the storage
  if (lane_index() == 0) of_warps[warp_index()] = value;
  block_sync();
  value = of_warps[0];
  MP_UNROLL
  for (int w = 1; w < kWarps; w++) value = op(value, of_warps[w]);
  return value;
}

}  // namespace mp::MP_TARGET
