// Runs a scenario with every fault of a kind, one per run, until a run reaches no fault.
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
  /// Runs every fault in a process that has not used the library before; otherwise in one that has
  /// completed the scenario, so that leaks can be counted.
  bool is_cold = false;
  int threads = 1;  ///< several make the order of requests vary
  bool is_strict = false;
};

struct Found {
  std::string findings;  ///< empty = none
  int64_t faults = 0;    ///< number of faults that occurred
};
Found run_campaign(const Scenario &scenario, const Campaign &campaign);

std::vector<Scenario> scenarios(std::initializer_list<std::string_view> names);

/// Runs all scenarios and prints the number of faults; fails if there were none.
void check_all(const std::vector<Scenario> &scenarios, const Campaign &campaign);

}  // namespace mptest::faults
