// cp.async: asynchronous copies from gmem to smem (sm_80 and newer).
//
// On sm_70 and sm_75, which lack cp.async, the thread copies synchronously: the same kernels run,
// with less overlap.  The simulator executes a copy immediately, too.
#pragma once

#include "kernels/simt/simt.h"

#if MP_UP_TO_SM75
#error UP_TO_SM75 in kernels/cuda.mk names this file, which uses features of sm_80
#endif

namespace mp::MP_TARGET {

#if MP_ON_CUDA

/// Copies `valid_bytes` (0..16) of 16 bytes and fills the rest with zeros; with 0 the source is not
/// read.  Both addresses must be 16-byte aligned.  The result is visible to this thread after
/// copy_async_wait, to others after a barrier that follows the wait.  PTX ISA, cp.async (zfill).
MP_DEVICE void copy_async_16(void *smem, const void *gmem, int valid_bytes) {
#if __CUDA_ARCH__ >= 800
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(smem));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(gmem),
               "r"(valid_bytes)
               : "memory");
#else
  uint4 value = make_uint4(0, 0, 0, 0);
  if (valid_bytes == 16) {
    value = *static_cast<const uint4 *>(gmem);
  } else {
    // All indices are compile-time constants: run-time indices would place `words` in local memory.
    uint32_t words[4] = {};
    MP_UNROLL
    for (int i = 0; i < 16; i++)
      if (i < valid_bytes) words[i / 4] |= static_cast<const uint8_t *>(gmem)[i] << (i % 4 * 8);
    value = make_uint4(words[0], words[1], words[2], words[3]);
  }
  *static_cast<uint4 *>(smem) = value;
#endif
}

/// Commits this thread's copies since the last commit as one group.
MP_DEVICE void copy_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until all but the newest `kPending` groups of this thread have completed.
template <int kPending>
MP_DEVICE void copy_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

#else

inline void copy_async_16(void *smem, const void *gmem, int valid_bytes,
                          source_location where = source_location::current()) {
  engine::copy_16(smem, gmem, valid_bytes, where);
}
inline void copy_async_commit() {}
template <int kPending>
void copy_async_wait() {}

#endif

}  // namespace mp::MP_TARGET
