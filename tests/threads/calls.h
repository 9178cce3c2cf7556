// Calls of every part of the library that may be made in any thread at any time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operands.h"

namespace mptest {

struct Call {
  std::string name;
  /// Returns all results of the call; throws on failure.
  std::function<Bytes(mp_context_t)> run;
};

/// GEMMs and convolutions, and queries of their kernels.
void add_products(std::vector<Call> &calls);
/// Layers, casts and reductions.
void add_layers(std::vector<Call> &calls);
/// Objects that are created, used and destroyed within the call.
void add_objects(std::vector<Call> &calls);

std::vector<Call> all_calls();

/// Runs call `index` of `calls`; an exception names the call.
Bytes run_call(const std::vector<Call> &calls, size_t index, mp_context_t context);

/// Results of each call without concurrency.
std::vector<Bytes> results_alone(const std::vector<Call> &calls, mp_context_t context);

/// Returns the first call with different results, or "".
std::string difference(const std::vector<Call> &calls, const std::vector<Bytes> &results,
                       const std::vector<Bytes> &wanted);

}  // namespace mptest
