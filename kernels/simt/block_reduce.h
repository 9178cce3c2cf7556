// Reduction over a block, in a fixed order.  The device body is CUB's; apart from reduce.h because
// CUB is slow to compile.
#pragma once

#include "kernels/simt/reduce.h"

#if MP_ON_CUDA
#include <cub/block/block_reduce.cuh>
#endif

namespace mp::MP_TARGET {

#if MP_ON_CUDA

/// Thread 0 gets the result; all threads of the block call, as often as they like.
template <int kThreads, class Op, class T>
MP_DEVICE T block_reduce(T value, Op op = {}) {
  using BlockReduce = cub::BlockReduce<T, kThreads>;
  __shared__ typename BlockReduce::TempStorage storage;
  block_sync();  // the previous call may still be reading
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

}  // namespace mp::MP_TARGET
