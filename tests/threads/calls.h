// Calls of every part of the library, each of which is right in any thread at any time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operands.h"

namespace mptest {

struct Call {
  std::string name;
  /// Everything that the call says; throws where it fails.
  std::function<Bytes(mp_context_t)> run;
};

/// Products and convolutions, and what the library says of their kernels.
void add_products(std::vector<Call> &calls);
/// Layers, casts and reductions.
void add_layers(std::vector<Call> &calls);
/// Objects that are made, used and destroyed within the call.
void add_objects(std::vector<Call> &calls);

std::vector<Call> all_calls();

/// Call `index` of `calls`, whose own failure names it.
Bytes run_call(const std::vector<Call> &calls, size_t index, mp_context_t context);

/// What each call says when nothing else runs.
std::vector<Bytes> results_alone(const std::vector<Call> &calls, mp_context_t context);

/// "" where all calls say the same, else the first that does not.
std::string difference(const std::vector<Call> &calls, const std::vector<Bytes> &results,
                       const std::vector<Bytes> &wanted);

}  // namespace mptest
