// Faults of memory and threads in a process that has just started, during lazy initialization.
#include "check.h"

using namespace mptest;
using namespace mptest::faults;

TEST_CASE("faults: each failed allocation in a new process is handled", "[cold]") {
  check_all(calls_named({"gemm bf16 to fp32", "graph: training of the convolutional network"}),
            {.source = Source::kMemory, .is_cold = true});
}

TEST_CASE("faults: a new process without memory reports errors", "[cold]") {
  check_all(calls_named({"gemm bf16 to fp32"}),
            {.source = Source::kMemory, .persists = true, .is_cold = true});
}

TEST_CASE("faults: each failed allocation in a new process with workers is handled", "[cold]") {
  check_all(calls_named({"product in a pipeline", "steps, adam"}),
            {.source = Source::kMemory, .is_cold = true, .threads = 3});
}

TEST_CASE("faults: the library works if threads cannot be created", "[cold]") {
  for (const bool persists : {false, true})
    check_all(calls_named({"gemm bf16 to fp32", "steps, adam"}),
              {.source = Source::kThreads, .persists = persists, .is_cold = true, .threads = 8});
}
