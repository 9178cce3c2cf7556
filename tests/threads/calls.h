// Results of the calls of the catalog, made in any thread at any time.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gang.h"
#include "tests/support/calls/catalog.h"

namespace mptest {

/// Returns all results of call `index`; an exception names the call.
inline Bytes run_call(const Catalog &calls, size_t index, mp_context_t context) {
  const Entry &entry = calls.at(index);
  try {
    Caller caller(context);
    entry.run(caller);
    caller.release();
    return caller.results();
  } catch (const std::exception &error) {
    throw std::runtime_error(entry.name + ": " + error.what());
  }
}

/// Results of each call without concurrency.
inline std::vector<Bytes> results_alone(const Catalog &calls, mp_context_t context) {
  std::vector<Bytes> results;
  for (size_t i = 0; i < calls.size(); ++i) results.push_back(run_call(calls, i, context));
  return results;
}

/// Returns the results of each of kThreads threads, which begin with different calls.
inline std::vector<std::vector<Bytes>> results_of_threads(
    const Catalog &calls, const std::function<mp_context_t(int)> &context_of) {
  std::vector<std::vector<Bytes>> results(kThreads, std::vector<Bytes>(calls.size()));
  together(kThreads, [&](int thread) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t index = (i + static_cast<size_t>(thread) * 7) % calls.size();
      results[static_cast<size_t>(thread)][index] = run_call(calls, index, context_of(thread));
    }
  });
  return results;
}

/// Returns the first call with different results, or "".
inline std::string difference(const Catalog &calls, const std::vector<Bytes> &results,
                              const std::vector<Bytes> &wanted) {
  for (size_t i = 0; i < calls.size(); ++i)
    if (results.at(i) != wanted.at(i)) return calls[i].name;
  return "";
}

}  // namespace mptest
