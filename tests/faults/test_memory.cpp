// Faults of host memory in a process that has made the same calls before.
#include "check.h"

using namespace mptest;
using namespace mptest::faults;

TEST_CASE("faults: each failed allocation is handled", "[memory]") {
  check_all(all_calls(), {.source = Source::kMemory});
}

TEST_CASE("faults: failures of an allocation and all later ones of the call are handled",
          "[memory]") {
  check_all(all_calls(), {.source = Source::kMemory, .persists = true});
}

TEST_CASE("faults: each failed allocation with workers is handled", "[memory]") {
  check_all(calls_named({"steps, adam", "product in a pipeline", "gemm_", "layers"}),
            {.source = Source::kMemory, .threads = 3});
}
