// Runs calls of the catalogue with every fault of a kind, one per run, until a run reaches no
// fault.
#pragma once

#include <string>

#include "fault.h"
#include "tests/support/calls/catalogue.h"
#include "tests/support/catch.h"

namespace mptest::faults {

struct Campaign {
  Source source = Source::kNone;
  bool persists = false;
  /// Runs every fault in a process that has not used the library before; otherwise in one that has
  /// completed the calls, so that leaks can be counted.
  bool is_cold = false;
  int threads = 1;  ///< several make the order of requests vary
};

struct Found {
  std::string findings;  ///< empty = none
  int64_t faults = 0;    ///< number of faults that occurred
};
Found run_campaign(const Entry &calls, const Campaign &campaign);

/// Runs all rows and prints the number of faults; fails if a row has none.
void check_all(const Catalogue &catalogue, const Campaign &campaign);

}  // namespace mptest::faults
