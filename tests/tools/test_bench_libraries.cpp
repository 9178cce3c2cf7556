// Tests of bench/peers/dynamic_library.h: search order of libraries, and their paths in results.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bench/peers/dynamic_library.h"
#include "tests/support/testing.h"

namespace fs = std::filesystem;

namespace {

/// A temporary folder and environment variables, restored at the end of a test.
class Surroundings {
 public:
  Surroundings() : folder_(fs::temp_directory_path() / ("libraries_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Surroundings() {
    for (const auto &[name, value] : before_) {
      if (value.empty())
        unsetenv(name.c_str());
      else
        setenv(name.c_str(), value.c_str(), 1);
    }
    fs::remove_all(folder_);
  }
  void set(const std::string &name, const std::string &value) {
    const char *const old = getenv(name.c_str());
    before_.push_back({name, old != nullptr ? old : ""});
    setenv(name.c_str(), value.c_str(), 1);
  }
  const fs::path &folder() const { return folder_; }

 private:
  fs::path folder_;
  std::vector<std::pair<std::string, std::string>> before_;
};

/// Copies any library to a name that does not exist in the system's folders.
void put_library(const fs::path &folder, const char *name) {
  fs::create_directories(folder);
  const auto tests = fs::read_symlink("/proc/self/exe").parent_path();
  fs::copy_file(tests / "stub/libnvidia-ml.so.1", folder / name);
}

}  // namespace

TEST_CASE("bench: system folders are searched in the documented order", "[bench]") {
  Surroundings here;
  here.set("CUDA_HOME", "/home/somebody/cuda");
  here.set("CUDA_PATH", "");
  const std::vector<mpbench::LibraryPlace> places = mpbench::system_places();
  REQUIRE(places.size() == 5);
  CHECK(places[0].folder.empty());
  CHECK(places[1].folder == "/home/somebody/cuda/lib64/");
  CHECK(places[2].folder == "/home/somebody/cuda/lib/");
  CHECK(places[2].name == "CUDA_HOME");
  CHECK(places[3].folder == "/usr/local/cuda/lib64/");
}

TEST_CASE("bench: a library is found in CUDA_HOME", "[bench]") {
  Surroundings here;
  put_library(here.folder() / "lib64", "libmpbench_home.so.2");
  here.set("CUDA_HOME", here.folder());
  const mpbench::DynamicLibrary library({"libmpbench_home.so.3", "libmpbench_home.so.2"});
  CHECK(library.place() == "CUDA_HOME");
  CHECK(library.file() == "libmpbench_home.so.2");
  int (*init)() = nullptr;
  library.find("nvmlInit_v2", init);
  CHECK(init() == 0);
  CHECK_THROWS_AS(library.find("no_such_function", init), std::runtime_error);
}

TEST_CASE("bench: a library is found in NVIDIA's packages of python3", "[bench]") {
  Surroundings here;
  const fs::path site = here.folder() / "env/site-packages";
  for (const char *package : {"cu12", "cu13"})
    put_library(site / "nvidia" / package / "lib", "libmpbench_wheel.so.1");
  fs::create_directories(here.folder() / "bin");
  std::ofstream(here.folder() / "bin/python3")
      << "#!/bin/sh\nprintf '%s\\n' " << here.folder() / "env"
      << " '' " << site << '\n';
  fs::permissions(here.folder() / "bin/python3", fs::perms::owner_all);
  here.set("PATH", (here.folder() / "bin").string() + ":" + getenv("PATH"));

  const std::vector<mpbench::LibraryPlace> places = mpbench::python_places();
  REQUIRE(places.size() == 3);
  CHECK(places[0].folder == site / "nvidia/cu13/lib/");
  CHECK(places[1].folder == site / "nvidia/cu12/lib/");
  CHECK(places[2].folder == here.folder() / "env/lib/");

  const mpbench::DynamicLibrary library({"libmpbench_wheel.so.1"});
  CHECK(library.place() == "python");
  CHECK(library.file() == "nvidia/cu13/lib/libmpbench_wheel.so.1");
}

TEST_CASE("bench: the error for a missing library has its name", "[bench]") {
  CHECK_THROWS_WITH(
      mpbench::DynamicLibrary({"libmpbench_none.so.1"}),
      Catch::Matchers::StartsWith("libmpbench_none.so.1 was not found by the loader"));
  Surroundings here;
  fs::create_directories(here.folder() / "lib");
  std::ofstream(here.folder() / "lib/libmpbench_broken.so.1") << "no library";
  here.set("CUDA_HOME", here.folder());
  CHECK_THROWS_WITH(mpbench::DynamicLibrary({"libmpbench_broken.so.1"}),
                    "libmpbench_broken.so.1 exists but cannot be loaded");
}

TEST_CASE("bench: paths are shown without private folders", "[bench]") {
  CHECK(mpbench::public_path("/usr/lib/x86_64-linux-gnu/libcudnn.so.9") ==
        "/usr/lib/x86_64-linux-gnu/libcudnn.so.9");
  CHECK(mpbench::public_path("/home/jo/env/lib/site-packages/nvidia/cudnn/lib/libcudnn.so.9") ==
        "nvidia/cudnn/lib/libcudnn.so.9");
  CHECK(mpbench::public_path("/home/jo/libcudnn.so.9") == "libcudnn.so.9");
}
