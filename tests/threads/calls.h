// Results of the calls of the catalogue, made in any thread at any time.
#pragma once

#include <string>
#include <vector>

#include "tests/support/calls/catalogue.h"

namespace mptest {

/// Returns all results of call `index`; an exception names the call.
Bytes run_call(const Catalogue &calls, size_t index, mp_context_t context);

/// Results of each call without concurrency.
std::vector<Bytes> results_alone(const Catalogue &calls, mp_context_t context);

/// Returns the first call with different results, or "".
std::string difference(const Catalogue &calls, const std::vector<Bytes> &results,
                       const std::vector<Bytes> &wanted);

}  // namespace mptest
