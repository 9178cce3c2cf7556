// Files that the runtime writes at process exit: counters, and lines that never ran.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

std::string file_text(const std::filesystem::path &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// File that is removed after the test.
struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("softgpu_test_" + std::to_string(getpid()));
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("case: three launches", "[.]") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  for (int i = 0; i < 3; i++) REQUIRE(kernels.increment(words) == cudaSuccess);
  require_words(words, kOld + 3);
}

TEST_CASE("runtime: SOFTGPU_COUNT writes the counters of kernels", "[runtime]") {
  const TemporaryFile file;
  REQUIRE(run_case("case: three launches", {{"SOFTGPU_COUNT", file.path}}).passed());
  const nlohmann::json counts = nlohmann::json::parse(file_text(file.path));
  CHECK(counts["counted"] == true);
  REQUIRE(counts["kernels"].size() == 1);
  const nlohmann::json &kernel = counts["kernels"][0];
  CHECK(kernel["name"] == "increment");
  CHECK(kernel["launches"] == 3);
  CHECK(kernel["blocks"] == 3 * kCount / 32);
  bool has_load = false;
  for (const nlohmann::json &i : kernel["counts"]) {
    if (i["opcode"] != "ld.global.u32") continue;
    has_load = true;
    CHECK(i["executed"] == 3 * kCount / 32);
    CHECK(i["bytes"] == 3 * kCount * 4);
    CHECK(i["sectors"] == 3 * kCount * 4 / 32);
  }
  CHECK(has_load);
}

TEST_CASE("runtime: SOFTGPU_COVER lists lines that never ran", "[runtime]") {
  const TemporaryFile file;
  REQUIRE(run_case("case: three launches", {{"SOFTGPU_COVER", file.path}}).passed());
  const std::string text = file_text(file.path);
  CHECK(text.starts_with("K\tincrement\t"));
  CHECK(text.find("\nL\t") == std::string::npos);
}
