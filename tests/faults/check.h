// Runs calls of the catalog with the faults of a kind, one per run, until a run reaches no fault.
#pragma once

#include <cstdint>
#include <string>

#include "fault.h"
#include "tests/support/calls/catalog.h"
#include "tests/support/catch.h"

namespace mptest::faults {

struct Campaign {
  Source source = Source::kNone;
  bool persists = false;
  /// Runs every fault in a process that has not used the library before; otherwise in one that has
  /// completed the calls, so that leaks can be counted.
  bool is_cold = false;
  int threads = 1;  ///< several make the order of requests vary
  /// Last of the requests that all fail.  Of later ones, which repeat those of other nodes of a
  /// graph, every tenth fails.
  int64_t all_until = INT64_MAX;

  int64_t request_after(int64_t at) const { return at + (at < all_until ? 1 : 10); }
};

struct Found {
  std::string findings;  ///< empty = none
  int64_t faults = 0;    ///< number of faults that occurred
};
Found run_campaign(const Entry &calls, const Campaign &campaign);

/// Runs all rows and prints the number of faults; fails if a row has none.
void check_all(const Catalog &catalog, const Campaign &campaign);

}  // namespace mptest::faults
