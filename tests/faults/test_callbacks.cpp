// Faults of callbacks: the allocator of a context, a communicator.
#include "check.h"

using namespace mptest;
using namespace mptest::faults;

TEST_CASE("faults: each failed allocation of an allocator is handled", "[callbacks]") {
  for (const bool persists : {false, true})
    check_all(calls_named({"tensor lists", "scaler", "steps", "optimizer", "ranks: all-reduce",
                           "ranks: sharded steps", "graph: c", "graph: t", "graph: r", "graph: g"}),
              {.source = Source::kAllocator, .persists = persists});
}

TEST_CASE("faults: each failed callback of a communicator is handled", "[callbacks]") {
  for (const bool persists : {false, true})
    check_all(calls_named({"ranks"}), {.source = Source::kComm, .persists = persists});
}
