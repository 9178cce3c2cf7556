// Results of a child process for its parent, which are readable even if the child was killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "fault.h"

namespace mptest::faults {

/// Data in memory shared by parent and child.
struct Progress {
  Fault fault;             ///< planned for the current run
  char function[64];       ///< last called function of the library
  int64_t faults;          ///< number of faults that occurred
  bool is_over;            ///< the run had no request with that index
  uint64_t results;        ///< hash of the results of the last run
  size_t size;             ///< length of findings
  char findings[1 << 14];  ///< truncated to this size

  void enter(const char *name);
  void add(const std::string &text);
};

/// Returns the data of this process and its children.
Progress &progress();

/// Runs `body` in a child process that has not used the library before, and waits for it.  A child
/// that is killed, or takes longer than `seconds`, is a finding.
/// @return the findings; empty = none
std::string in_child(int seconds, const std::function<void()> &body);

}  // namespace mptest::faults
