// Text that a trained network writes, one character after the other.
#pragma once

#include <cstdint>
#include <string>

#include "network.h"
#include "random.h"

namespace mpdemo {

/// @param network  observed, and of one sequence of one step.
/// @return as many characters, from the start of a verse.  Networks that foresee alike write alike, for as long as
/// none of the draws falls between what they foresee.
std::string write_text(mp_context_t context, Network &network, int64_t characters, Random random);

}  // namespace mpdemo
