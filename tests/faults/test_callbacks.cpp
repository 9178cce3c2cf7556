// Faults of callbacks: the allocator of a context, a communicator.
#include "check.h"

using namespace mptest::faults;

TEST_CASE("faults: each failed allocation of an allocator is handled", "[callbacks]") {
  for (const bool persists : {false, true})
    check_all(
        scenarios({"tensors", "scaler", "steps", "sgd", "lamb", "novograd", "adagrad", "rmsprop",
                   "another optimizer", "all-reduce", "sharded steps", "graph",
                   "training of a graph", "recurrent graph", "training of a recurrent graph"}),
        {.source = Source::kAllocator, .persists = persists});
}

TEST_CASE("faults: each failed callback of a communicator is handled", "[callbacks]") {
  for (const bool persists : {false, true})
    check_all(scenarios({"all-reduce", "steps of ranks", "sharded steps", "checked steps",
                         "step that is given up"}),
              {.source = Source::kComm, .persists = persists});
}
