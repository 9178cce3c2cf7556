// What a kernel may do before the one ahead of it in the stream has ended, beyond setting itself up.
//
// A kernel that says wait_and_launch_dependents() lets its successor start when all its own blocks have waited for
// its predecessor.  So when that successor starts, one kernel at most has not ended: the one right before it.  What that one does
// not write is settled, and can be read at once:
//
//     kernel 1    wait_and_launch_dependents();   writes Y, and not W
//     kernel 2    tma_load_before_wait(W);  wait_and_launch_dependents();  tma_load(Y)
//
// Where kernel 1 says wait_for_previous_kernel() instead, kernels ahead of it may still be running, and nothing is settled.
//
// Source: PTX ISA, griddepcontrol: launch_dependents counts when all blocks of the grid have issued it; wait returns when the
// grids it depends on have completed and their memory operations are visible.
#pragma once

#include <utility>

#include "kernels/simt/sm90_tma.h"

namespace mp::MP_TARGET {

#if MP_ON_CUDA

MP_DEVICE void wait_and_launch_dependents() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// tma_load of what is settled.
MP_DEVICE void tma_load_before_wait(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x,
                                    int y, int z) {
  tma_load(dst, map, bar, x, y, z);
}

#else

inline void wait_and_launch_dependents() {
  wait_for_previous_kernel();
}

inline void tma_load_before_wait(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x,
                                 int y, int z, source_location where = source_location::current()) {
  bool &may_use_gmem = engine::this_thread().may_use_gmem;
  const bool might = std::exchange(may_use_gmem, true);
  tma_load(dst, map, bar, x, y, z, where);
  may_use_gmem = might;
}

#endif

}  // namespace mp::MP_TARGET
