// Calls of every part of the library by 16 threads at once: results are bit-identical to those of a
// single thread.
#include "calls.h"
#include "gang.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Returns the differences of each thread; each calls everything in another order.
std::vector<std::string> differences(const Catalogue &calls, const std::vector<Bytes> &wanted,
                                     const std::function<mp_context_t(int)> &context_of) {
  std::vector<std::string> found(kThreads);
  together(kThreads, [&](int thread) {
    std::vector<Bytes> results(calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t index = (i + static_cast<size_t>(thread) * 7) % calls.size();
      results[index] = run_call(calls, index, context_of(thread));
    }
    found[static_cast<size_t>(thread)] = difference(calls, results, wanted);
  });
  return found;
}

const std::vector<std::string> kNone(kThreads);

}  // namespace

TEST_CASE("threads: a new context shared by all threads gives the results of one thread",
          "[threads]") {
  const Catalogue calls = all_calls();
  const std::vector<Bytes> wanted = results_alone(calls, context());
  const mptools::Context fresh = mptools::make_context(MP_DEVICE_HOST);
  CHECK(differences(calls, wanted, [&](int) { return fresh.get(); }) == kNone);
}

TEST_CASE("threads: a context per thread gives the results of one thread", "[threads]") {
  const Catalogue calls = all_calls();
  const std::vector<Bytes> wanted = results_alone(calls, context());
  std::vector<mptools::Context> contexts;
  for (int i = 0; i < kThreads; ++i) contexts.push_back(mptools::make_context(MP_DEVICE_HOST));
  const auto own = [&](int thread) { return contexts[static_cast<size_t>(thread)].get(); };
  CHECK(differences(calls, wanted, own) == kNone);
}

TEST_CASE("threads: a new thread per call gives the results of one thread", "[threads]") {
  const Catalogue calls = all_calls();
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
