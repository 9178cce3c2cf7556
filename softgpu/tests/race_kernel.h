// Test kernels with races on shared memory, some of which one instruction prevents.
#pragma once

#include <string>

#include "softgpu/tests/harness.h"

namespace softgpu::test {

/// Launches with SOFTGPU_RACECHECK.
Outcome run_checked(const std::string &module, const Shape &shape);

/// Runs a body with SOFTGPU_RACECHECK.  The body can use:
///
///     words              shared memory, one word per thread
///     %own, %next, %first  addresses of the words of this thread, of the next thread
///                        (of the block of 64), and of thread 0
///     bar, %b            an mbarrier and its address
///     %w                 warp
///     %lane0, %one       predicates of lane 0 of each warp, and of thread 0
///     %v, %x, %q, %state  for any purpose
///     %g                 address of 16 bytes of global memory per thread
Outcome race(const std::string &body, uint32_t num_threads = 64, uint32_t cluster = 1);

/// Returns whether a race was reported; other violations may be reported as well.
bool is_race(const Outcome &);

// Statements for such bodies.
inline const std::string kWriteOwn = "st.shared.u32 [%own], %t;\n",
                         kReadOwn = "ld.shared.u32 %v, [%own];\n",
                         kReadNext = "ld.shared.u32 %v, [%next];\n", kBarrier = "bar.sync 0;\n";

}  // namespace softgpu::test
