// Faults of host memory in a process that has made the same calls before.
#include "check.h"

using namespace mptest::faults;

TEST_CASE("faults: each failed allocation is handled", "[memory]") {
  check_all(all_scenarios(), {.source = Source::kMemory});
}

TEST_CASE("faults: failures of an allocation and all later ones of the call are handled",
          "[memory]") {
  check_all(all_scenarios(), {.source = Source::kMemory, .persists = true});
}

TEST_CASE("faults: each failed allocation with workers is handled", "[memory]") {
  check_all(scenarios({"steps", "product in a pipeline", "groups of products", "layers"}),
            {.source = Source::kMemory, .threads = 3});
}

TEST_CASE("faults: each failed allocation of kernels in strict mode is handled", "[memory]") {
  check_all(scenarios({"product in a pipeline", "products", "steps", "convolutions"}),
            {.source = Source::kMemory, .is_strict = true});
}
