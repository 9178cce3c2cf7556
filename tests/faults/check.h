// Every fault of a kind, one after the other, until a scenario has gone through without any.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios.h"
#include "tests/support/catch.h"

namespace mptest::faults {

struct Campaign {
  Source source = Source::kNone;
  bool persists = false;
  /// Every fault in a process in which nothing of the library has been used; else in one where the
  /// scenario has gone through before, so that what it leaves behind can be counted.
  bool is_cold = false;
  int threads = 1;  ///< with several, which of them asks first is not always the same
  bool is_strict = false;
};

struct Found {
  std::string findings;  ///< empty where all is well
  int64_t faults = 0;    ///< that have struck
};
Found run_campaign(const Scenario &scenario, const Campaign &campaign);

std::vector<Scenario> scenarios(std::initializer_list<std::string_view> names);

/// Prints how many faults there were; there must have been some.
void check_all(const std::vector<Scenario> &scenarios, const Campaign &campaign);

}  // namespace mptest::faults
