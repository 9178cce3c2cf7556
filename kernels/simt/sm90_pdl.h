// Programmatic dependent launch: memory that a kernel may read before its predecessor has ended.
//
// A kernel that calls wait_and_launch_dependents() allows its successor in the stream to start once
// all its blocks have waited for the predecessor.  When the successor starts, at most one kernel is
// still running: the one directly before it.  Memory not written by it can be read before the wait:
//
//     kernel 1    wait_and_launch_dependents();   writes Y, but not W
//     kernel 2    tma_load_before_wait(W);  wait_and_launch_dependents();  tma_load(Y)
//
// If kernel 1 calls wait_for_previous_kernel() instead, earlier kernels may still be running, and
// kernel 2 must wait before all its loads.
//
// Source: PTX ISA, griddepcontrol: launch_dependents takes effect when all blocks of the grid have
// issued it; wait returns when the grids that it depends on have completed and their memory
// operations are visible.
#pragma once

#include "kernels/simt/sm90_tma.h"

namespace mp::MP_TARGET {

#if MP_ON_CUDA

MP_DEVICE void wait_and_launch_dependents() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#else

inline void wait_and_launch_dependents() {
  wait_for_previous_kernel();
}

#endif

/// tma_load of memory that the previous kernel does not write.
MP_DEVICE void tma_load_before_wait(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x,
                                    int y, int z) {
  tma_load(dst, map, bar, x, y, z);
}

}  // namespace mp::MP_TARGET
