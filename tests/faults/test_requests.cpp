// Faults of memory, threads and callbacks: each request of the library fails once, or from then on.
#include "check.h"

using namespace mptest;
using namespace mptest::faults;

TEST_CASE("faults: failed allocations are handled", "[memory]") {
  check_all(all_calls(), {.source = Source::kMemory, .all_until = 200});
}

TEST_CASE("faults: each failed allocation is handled", "[memory][long]") {
  check_all(all_calls(), {.source = Source::kMemory});
}

TEST_CASE("faults: failures of an allocation and all later ones of the call are handled",
          "[memory][long]") {
  check_all(all_calls(), {.source = Source::kMemory, .persists = true});
}

TEST_CASE("faults: each failed allocation with workers is handled", "[memory]") {
  check_all(calls_named({"steps, adam", "product in a pipeline", "gemm_", "layers"}),
            {.source = Source::kMemory, .threads = 3});
}

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

// ------------------------------------------------- lazy initialization, in a new process

TEST_CASE("faults: failed allocations in a new process are handled", "[cold]") {
  check_all(calls_named({"gemm bf16 to fp32", "graph: training of the convolutional network"}),
            {.source = Source::kMemory, .is_cold = true, .all_until = 200});
}

TEST_CASE("faults: each failed allocation in a new process is handled", "[cold][long]") {
  check_all(calls_named({"gemm bf16 to fp32", "graph: training of the convolutional network"}),
            {.source = Source::kMemory, .is_cold = true});
}

TEST_CASE("faults: a new process without memory reports errors", "[cold]") {
  check_all(calls_named({"gemm bf16 to fp32"}),
            {.source = Source::kMemory, .persists = true, .is_cold = true, .all_until = 200});
}

TEST_CASE("faults: a new process without memory reports each error", "[cold][long]") {
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
