// Memory and threads that are refused to a program that has just begun: to what is made once.
#include "check.h"

using namespace mptest::faults;

TEST_CASE("faults: any allocation of a program that has just begun", "[cold]") {
  check_all(scenarios({"products", "training of a graph"}),
            {.source = Source::kMemory, .is_cold = true});
}

TEST_CASE("faults: no memory at all for a program that has just begun", "[cold]") {
  check_all(scenarios({"products"}),
            {.source = Source::kMemory, .persists = true, .is_cold = true});
}

TEST_CASE("faults: any allocation of a program that has just begun, with workers", "[cold]") {
  check_all(scenarios({"product in a pipeline", "steps"}),
            {.source = Source::kMemory, .is_cold = true, .threads = 3});
}

TEST_CASE("faults: threads that cannot be made are done without", "[cold]") {
  for (const bool persists : {false, true})
    check_all(scenarios({"products", "steps"}),
              {.source = Source::kThreads, .persists = persists, .is_cold = true, .threads = 8});
}
