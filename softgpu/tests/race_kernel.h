// Test kernels with races on shared memory, some of which one instruction prevents.
#pragma once

#include <algorithm>
#include <string>

#include "softgpu/tests/harness.h"
#include "tests/support/catch.h"

namespace softgpu::test {

/// Launches with SOFTGPU_RACECHECK.
inline Outcome run_checked(const std::string &module, const Shape &shape) {
  const WithOptions with([](Options &o) { o.checks_races = true; });
  Buffer<uint32_t> memory(4 * 1024);
  return Kernel(module)(shape, memory);
}

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
inline Outcome race(const std::string &body, uint32_t num_threads = 64, uint32_t cluster = 1) {
  const Shape shape{
      .blocks = {cluster, 1, 1}, .threads = {num_threads, 1, 1}, .cluster = {cluster, 1, 1}};
  return run_checked(body_text(1, R"(
    .shared .align 128 .b32 words[2048];
    .shared .align 8 .b64 bar;
    .reg .b32 %own, %next, %first, %b, %v, %x, %w;
    .reg .b64 %g, %state;
    .reg .pred %lane0, %one, %q;
    mov.u32 %first, words;
    mov.u32 %b, bar;
    mad.lo.u32 %own, %t, 4, %first;
    add.u32 %x, %t, 1;
    and.b32 %x, %x, 63;
    mad.lo.u32 %next, %x, 4, %first;
    shr.u32 %w, %t, 5;
    and.b32 %x, %t, 31;
    setp.eq.u32 %lane0, %x, 0;
    setp.eq.u32 %one, %t, 0;
    mad.wide.u32 %g, %t, 16, %p0;
  )" + body + "ret;"),
                     shape);
}

/// Returns whether a race was reported; other violations may be reported as well.
inline bool is_race(const Outcome &outcome) {
  return outcome.fault.empty() &&
         std::any_of(outcome.violations.begin(), outcome.violations.end(),
                     [](const std::string &message) { return message.starts_with("race: "); });
}

/// Checks that there is a race without some instructions and none with them.
inline void check_needed(const std::string &before, const std::string &needed,
                         const std::string &after, uint32_t num_threads = 64,
                         uint32_t cluster = 1) {
  INFO(before << "    >>> " << needed << after);
  const Outcome with = race(before + needed + after, num_threads, cluster);
  const Outcome without = race(before + after, num_threads, cluster);
  CHECK(with.is_clean());
  INFO("with: " << with << "without: " << without);
  CHECK(is_race(without));
}

// Statements for such bodies.
inline const std::string kWriteOwn = "st.shared.u32 [%own], %t;\n",
                         kReadOwn = "ld.shared.u32 %v, [%own];\n",
                         kReadNext = "ld.shared.u32 %v, [%next];\n", kBarrier = "bar.sync 0;\n";

}  // namespace softgpu::test
