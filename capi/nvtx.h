// Every call as a range in a profiler's timeline: NVTX domain "mpcore", the name of the function, and
// as payload one line of text that says what the call works on, "m = 4096, n = 4096, ...".
//
// The text is made only while a tool listens; without one a call costs a load and a branch more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/message.h"

#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#define MP_HAS_NVTX 1
#else
#define MP_HAS_NVTX 0
#endif

namespace mp {

#if MP_HAS_NVTX

/// NULL where no tool was injected into this process.
nvtxDomainHandle_t profiler_domain();

class ProfilerRange {
 public:
  /// @param problem  () -> Message
  template <class Problem>
  ProfilerRange(const char *function, const Problem &problem) : domain_(profiler_domain()) {
    if (domain_ != nullptr) push(function, problem());
  }
  ~ProfilerRange() {
    if (domain_ != nullptr) nvtxDomainRangePop(domain_);
  }
  ProfilerRange(const ProfilerRange &) = delete;
  ProfilerRange &operator=(const ProfilerRange &) = delete;

 private:
  void push(const char *function, const Message &problem) const;

  const nvtxDomainHandle_t domain_;
};

#else

struct ProfilerRange {
  template <class Problem>
  ProfilerRange(const char *, const Problem &) {}
};

#endif

}  // namespace mp
