// What a child process tells its parent, who reads it even when the child has been killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "fault.h"

namespace mptest::faults {

/// In memory that both see.
struct Progress {
  Fault fault;             ///< of the run in progress
  char function[64];       ///< the call of the library that was entered last
  int64_t faults;          ///< that have struck
  bool is_over;            ///< no request has that number any more
  uint64_t results;        ///< a hash of those of the run that came last
  size_t size;             ///< of findings
  char findings[1 << 14];  ///< cut off where it ends

  void enter(const char *name);
  void add(const std::string &text);
};

/// Of this process and its children.
Progress &progress();

/// Runs `body` in a child process of its own, in which nothing of the library has been used before, and
/// waits for it.  A child that is killed, or takes longer than `seconds`, is a finding.
/// @return what was found; empty where all is well
std::string in_child(int seconds, const std::function<void()> &body);

}  // namespace mptest::faults
