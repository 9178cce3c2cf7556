// Whether mpcore and a peer have computed the same.
#pragma once

#include <vector>

#include "machine.h"
#include "timing.h"

namespace mpbench {

/// The first elements of `out`, of `count`, after `work` has filled it; the rest is not looked at.
std::vector<float> first_results(const Machine &machine, const Work &work, void *out, int64_t count,
                                 mp_dtype_t dtype);

/// Whether they are equal within the roundings that two correct implementations may differ by.
bool agree(const std::vector<float> &own, const std::vector<float> &peer);

}  // namespace mpbench
