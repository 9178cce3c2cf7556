// Kernels of tests that race for shared memory, or would without an instruction.
#pragma once

#include <string>

#include "tests/softgpu/harness.h"

namespace softgpu::test {

/// A launch with SOFTGPU_RACECHECK.
Outcome run_checked(const std::string &module, const Shape &shape);

/// Runs a body with SOFTGPU_RACECHECK.  It finds: `words` of shared memory, a word for each thread, and in %own, %next
/// and %first the addresses of the thread's, of the next thread's (of the block of 64) and of thread 0's; `bar`, an
/// mbarrier at %b; %w: its warp; %lane0, %one: predicates of lane 0 of each warp and of thread 0; %v, %x, %q and %state
/// for any use; %g: 16 bytes of global memory for each thread.
Outcome race(const std::string &body, uint32_t num_threads = 64, uint32_t cluster = 1);

/// Whether a race was found; what races may be wrong in other ways too.
bool is_race(const Outcome &);

// Statements of such bodies.
inline const std::string kWriteOwn = "st.shared.u32 [%own], %t;\n",
                         kReadOwn = "ld.shared.u32 %v, [%own];\n",
                         kReadNext = "ld.shared.u32 %v, [%next];\n", kBarrier = "bar.sync 0;\n";

}  // namespace softgpu::test
