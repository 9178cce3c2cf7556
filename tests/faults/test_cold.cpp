// Faults of memory and threads in a process that has just started, during lazy initialization.
#include "check.h"

using namespace mptest::faults;

TEST_CASE("faults: each failed allocation in a new process is handled", "[cold]") {
  check_all(scenarios({"products", "training of a graph"}),
            {.source = Source::kMemory, .is_cold = true});
}

TEST_CASE("faults: a new process without memory reports errors", "[cold]") {
  check_all(scenarios({"products"}),
            {.source = Source::kMemory, .persists = true, .is_cold = true});
}

TEST_CASE("faults: each failed allocation in a new process with workers is handled", "[cold]") {
  check_all(scenarios({"product in a pipeline", "steps"}),
            {.source = Source::kMemory, .is_cold = true, .threads = 3});
}

TEST_CASE("faults: the library works if threads cannot be created", "[cold]") {
  for (const bool persists : {false, true})
    check_all(scenarios({"products", "steps"}),
              {.source = Source::kThreads, .persists = persists, .is_cold = true, .threads = 8});
}
