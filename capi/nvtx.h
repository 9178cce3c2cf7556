// Every call as a range in a profiler's timeline: NVTX domain "mpcore", the name of the function, and
// as payload one line of text that says what the call works on, "m = 4096, n = 4096, ...".
//
// The text is made only while a tool listens; without one a call costs a load and a branch more.
#pragma once

#include "capi/message.h"

namespace mp {

class ProfilerRange {
 public:
  /// @param problem  () -> Message
  template <class Problem>
  ProfilerRange(const char *function, const Problem &problem) : is_open_(profiler_listens()) {
    if (is_open_) push(function, problem());
  }
  ~ProfilerRange() {
    if (is_open_) pop();
  }
  ProfilerRange(const ProfilerRange &) = delete;
  ProfilerRange &operator=(const ProfilerRange &) = delete;

 private:
  /// Whether a tool was injected into this process; never where NVTX's headers were missing.
  static bool profiler_listens();
  static void push(const char *function, const Message &problem);
  static void pop();

  const bool is_open_;
};

}  // namespace mp
