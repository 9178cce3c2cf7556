// Tests of processes whose first or last calls are made by many threads; see gang.h.
#include "gang.h"
#include "tests/support/run_again.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Runs a child.  It fails, is ended by a signal or has a race if its exit code is not 0, which
/// output_of_test checks.
std::string check_child(const std::string &name, const std::string &environment = "") {
  const std::string output = output_of_test(std::string(kChild) + name, environment);
  CAPTURE(name, environment, output);
  CHECK(times(output, "1 passed, 0 failed\n") == 1);
  return output;
}

}  // namespace

TEST_CASE("threads: concurrent first calls of a process succeed", "[threads][children]") {
  check_child("call everything");
  constexpr int kRounds = 3;  // each is a chance to hit a race
  for (int round = 0; round < kRounds; ++round)
    for (const char *const name :
         {"make contexts", "multiply", "fail", "query names", "set callbacks", "query policies"})
      check_child(name);
}

TEST_CASE("threads: the environment is read once, by the first thread", "[threads][children]") {
  check_child("read tuning", "MP_GEMM_TUNING=/dev/null");  // an empty file is not a table
  check_child("multiply", "MP_HOST_THREADS=1");
  check_child("multiply", "MP_HOST_THREADS=5");
  check_child("query policies", "MP_AUTOCAST_LEVEL=normal");
}

TEST_CASE("threads: calls succeed while a process or a thread ends", "[threads][children]") {
  for (const char *const name :
       {"use in a static destructor", "use in a destructor of the main thread",
        "use in destructors of threads", "end while the callback is set"})
    check_child(name);
  constexpr int kRounds = 10;  // threads are at other points each time
  for (int round = 0; round < kRounds; ++round) check_child("exit while threads multiply");
}

TEST_CASE("threads: a thread cancelled in a call ends after the call", "[threads][children]") {
  if (kUnderThreadSanitizer) return skip("ThreadSanitizer has its own pthread_cancel");
  check_child("cancel threads that multiply", "MP_HOST_THREADS=2");
}

TEST_CASE("threads: destroying the last context ends the workers", "[threads][children]") {
  if (!kUnderThreadSanitizer) check_child("count threads", "MP_HOST_THREADS=4");
  check_child("create and destroy contexts", "MP_HOST_THREADS=3");
}

TEST_CASE("threads: ThreadSanitizer reports a scaler used by two threads",
          "[threads][children][injected]") {
  if (!kUnderThreadSanitizer) return skip("only ThreadSanitizer detects it");
  const std::string output = check_child("share a scaler", "TSAN_OPTIONS=exitcode=0");
  CAPTURE(output);
  CHECK(times(output, "WARNING: ThreadSanitizer: data race") > 0);
  CHECK(times(output, "mp_scaler_update") > 0);
}
