// Environment variables: invalid values, and settings without effect.
#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

TEST_CASE("case: a kernel runs", "[.]") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  REQUIRE(kernels.set(words, kNew) == cudaSuccess);
  require_words(words, kNew);
}

TEST_CASE("runtime: an invalid setting ends the process", "[runtime]") {
  const Environment wrong = {
      {"SOFTGPU_SEED", "18446744073709551616"},
      {"SOFTGPU_SEED", "-1"},
      {"SOFTGPU_SEED", "1 "},
      {"SOFTGPU_SYNC", "2"},
      {"SOFTGPU_SYNC", "yes"},
      {"SOFTGPU_DELAY", "99999999999999"},
      {"SOFTGPU_MEMORY", "0"},
      {"SOFTGPU_MEMORY", "99999999999999999"},
      {"SOFTGPU_FAIL", "cudaMallok:1"},
      {"SOFTGPU_FAIL", "malloc:1"},
      {"SOFTGPU_FAIL", "cudaMalloc=1:2"},
  };
  for (const auto &[name, value] : wrong) {
    const CaseResult result = run_case("case: a kernel runs", {{name, value}});
    INFO(name << "=" << value << ": " << result);
    CHECK(result.exit_code == 2);
    CHECK(result.says(name + "=" + value + " is not "));
  }
}

TEST_CASE("runtime: a setting without effect is reported", "[runtime]") {
  const auto says = [](const std::string &name, const std::string &value) {
    const CaseResult result = run_case("case: a kernel runs", {{name, value}});
    INFO(result);
    CHECK(result.passed());
    return result.says(name + "=" + value + " never happened");
  };
  CHECK(says("SOFTGPU_FAIL", "launch:2"));
  CHECK(says("SOFTGPU_FAIL", "cudaHostRegister:1"));
  CHECK(says("SOFTGPU_EDIT", "drop frobnicate"));
  CHECK(says("SOFTGPU_EDIT", "drop st.global @7 in set"));
  const CaseResult edited =
      run_case("case: a kernel runs", {{"SOFTGPU_EDIT", "swap add.s64=>add.u64"}});
  CHECK(edited.passed());
  CHECK(!edited.says("never happened"));
  const CaseResult failed = run_case("case: a kernel runs", {{"SOFTGPU_FAIL", "cudaMalloc:1"}});
  CHECK(!failed.passed());
  CHECK(!failed.says("never happened"));
}
