// Objects that most calls need, so that not every input of a fuzzer has to find out how they are made.
#pragma once

#include "tests/fuzz/world.h"

namespace fuzz {

/// A context, and some of a list, an optimizer, a scaler and a graph.  Until they are there no memory runs out.
void make_usual_objects(World &world);

}  // namespace fuzz
