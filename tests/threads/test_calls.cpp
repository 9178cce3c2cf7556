// Calls of every part of the library by 16 threads at once: results are bit-identical to those of a
// single thread.
#include "calls.h"
#include "gang.h"
#include "tests/support/testing.h"

using namespace mptest;

TEST_CASE("threads: a new context shared by all threads gives the results of one thread",
          "[threads]") {
  const Catalog calls = all_calls();
  const std::vector<Bytes> wanted = results_alone(calls, context());
  const mptools::Context fresh = mptools::make_context(MP_DEVICE_HOST);
  for (const auto &results : results_of_threads(calls, [&](int) { return fresh.get(); }))
    CHECK(difference(calls, results, wanted) == "");
}

TEST_CASE("threads: a context per thread gives the results of one thread", "[threads]") {
  const Catalog calls = all_calls();
  const std::vector<Bytes> wanted = results_alone(calls, context());
  std::vector<mptools::Context> contexts;
  for (int i = 0; i < kThreads; ++i) contexts.push_back(mptools::make_context(MP_DEVICE_HOST));
  const auto own = [&](int thread) { return contexts[static_cast<size_t>(thread)].get(); };
  for (const auto &results : results_of_threads(calls, own))
    CHECK(difference(calls, results, wanted) == "");
}

TEST_CASE("threads: a new thread per call gives the results of one thread", "[threads]") {
  const Catalog calls = all_calls();
  const std::vector<Bytes> wanted = results_alone(calls, context());
  std::vector<Bytes> results(calls.size());
  for (size_t first = 0; first < calls.size(); first += kThreads) {
    const size_t count = std::min(calls.size() - first, size_t{kThreads});
    together(static_cast<int>(count), [&](int thread) {
      const size_t index = first + static_cast<size_t>(thread);
      results[index] = run_call(calls, index, context());
    });
  }
  CHECK(difference(calls, results, wanted) == "");
}
