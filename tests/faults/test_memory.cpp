// Memory of the host that is refused to a program that has made the same calls before.
#include "check.h"

using namespace mptest::faults;

TEST_CASE("faults: any allocation", "[memory]") {
  check_all(all_scenarios(), {.source = Source::kMemory});
}

TEST_CASE("faults: any allocation and all after it, until the call has returned", "[memory]") {
  check_all(all_scenarios(), {.source = Source::kMemory, .persists = true});
}

TEST_CASE("faults: any allocation, with workers", "[memory]") {
  check_all(scenarios({"steps", "product in a pipeline", "groups of products", "layers"}),
            {.source = Source::kMemory, .threads = 3});
}

TEST_CASE("faults: any allocation of kernels in the strict mode", "[memory]") {
  check_all(scenarios({"product in a pipeline", "products", "steps", "convolutions"}),
            {.source = Source::kMemory, .is_strict = true});
}
