// NVTX range of every call: domain "mpcore", name of the function, and a line of text with the
// problem sizes as payload, "m = 4096, n = 4096, ...".
//
// The text is formatted only under a profiler; otherwise the overhead is a load and a branch.
#pragma once

#include "capi/message.h"

namespace mp {

class ProfilerRange {
 public:
  /// Opens the range.
  /// @param problem  () -> Message: text of the payload
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
  /// True if a profiler is attached and the build has NVTX's headers.
  static bool profiler_listens();
  static void push(const char *function, const Message &problem);
  static void pop();

  const bool is_open_;
};

}  // namespace mp
