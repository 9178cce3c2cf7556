// mp_last_error: each thread has its own sentence.
#include <string>

#include "gang.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Fails with a sentence that only this thread and round have.
std::string fail(int64_t number) {
  mp_gemm_desc_t desc = mp_gemm_desc_default(4, 4, 100000, MP_FP16, MP_FP16);
  desc.lda = number;
  size_t bytes = 0;
  if (mp_gemm_workspace_size(context(), &desc, &bytes) == MP_SUCCESS) return "it has succeeded";
  return mp_last_error();
}

std::string sentence(int64_t number) {
  return "mp_gemm_workspace_size: lda = " + std::to_string(number) +
         " is smaller than k = 100000 (op_a = N)";
}

}  // namespace

TEST_CASE("threads: each has the sentence of its own failure", "[threads]") {
  constexpr int64_t kRounds = 200;
  REQUIRE(fail(7) == sentence(7));
  std::vector<std::string> wrong(kThreads);
  together(kThreads, [&](int thread) {
    for (int64_t round = 0; round < kRounds; ++round) {
      const int64_t number = thread * kRounds + round + 1;
      const std::string said = fail(number);
      std::this_thread::yield();
      if (said != sentence(number)) wrong[static_cast<size_t>(thread)] = said;
      if (mp_last_error() != sentence(number)) wrong[static_cast<size_t>(thread)] = mp_last_error();
    }
  });
  CHECK(wrong == std::vector<std::string>(kThreads));
  CHECK(fail(8) == sentence(8));
}

TEST_CASE("threads: a new one has no sentence", "[threads]") {
  REQUIRE(fail(9) == sentence(9));
  std::vector<std::string> said(kThreads, "not called");
  together(kThreads, [&](int thread) { said[static_cast<size_t>(thread)] = mp_last_error(); });
  CHECK(said == std::vector<std::string>(kThreads));
  CHECK(mp_last_error() == sentence(9));
}
