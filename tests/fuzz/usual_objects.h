// Creates objects that most calls need, so that inputs of a fuzzer need not create them first.
#pragma once

#include "tests/fuzz/world.h"

namespace fuzz {

/// Creates a context, and some of a list, an optimizer, a scaler and a graph, without out-of-memory
/// errors.
void make_usual_objects(World &world);

}  // namespace fuzz
