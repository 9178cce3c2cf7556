// Tests of bench/peers/dynamic_library.h: search order of libraries, and their paths in results.
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "bench/peers/dynamic_library.h"
#include "tests/support/surroundings.h"
#include "tests/support/testing.h"

namespace fs = std::filesystem;
using namespace mptest;

namespace {

/// Copies any library to a name that does not exist in the system's folders.
void put_library(const fs::path &folder, const char *name) {
  fs::create_directories(folder);
  const auto tests = fs::read_symlink("/proc/self/exe").parent_path();
  fs::copy_file(tests / "stub/libnvidia-ml.so.1", folder / name);
}

}  // namespace

TEST_CASE("bench: system folders are searched in the documented order", "[bench]") {
  const Environment cuda({{"CUDA_HOME", "/home/somebody/cuda"}, {"CUDA_PATH", ""}});
  const std::vector<mpbench::LibraryPlace> places = mpbench::system_places();
  REQUIRE(places.size() == 5);
  CHECK(places[0].folder.empty());
  CHECK(places[1].folder == "/home/somebody/cuda/lib64/");
  CHECK(places[2].folder == "/home/somebody/cuda/lib/");
  CHECK(places[2].name == "CUDA_HOME");
  CHECK(places[3].folder == "/usr/local/cuda/lib64/");
}

TEST_CASE("bench: a library is found in CUDA_HOME", "[bench]") {
  const Folder folder;
  put_library(folder / "lib64", "libmpbench_home.so.2");
  const Environment cuda({{"CUDA_HOME", folder.path()}});
  const mpbench::DynamicLibrary library({"libmpbench_home.so.3", "libmpbench_home.so.2"});
  CHECK(library.place() == "CUDA_HOME");
  CHECK(library.file() == "libmpbench_home.so.2");
  int (*init)() = nullptr;
  library.find("nvmlInit_v2", init);
  CHECK(init() == 0);
  CHECK_THROWS_AS(library.find("no_such_function", init), std::runtime_error);
}

TEST_CASE("bench: a library is found in NVIDIA's packages of python3", "[bench]") {
  const Folder folder;
  const fs::path site = folder / "env/site-packages";
  for (const char *package : {"cu12", "cu13"})
    put_library(site / "nvidia" / package / "lib", "libmpbench_wheel.so.1");
  fs::create_directories(folder / "bin");
  std::ofstream(folder / "bin/python3") << "#!/bin/sh\nprintf '%s\\n' " << folder / "env"
                                        << " '' " << site << '\n';
  fs::permissions(folder / "bin/python3", fs::perms::owner_all);
  const Environment path({{"PATH", (folder / "bin") + ":" + getenv("PATH")}});

  const std::vector<mpbench::LibraryPlace> places = mpbench::python_places();
  REQUIRE(places.size() == 3);
  CHECK(places[0].folder == site / "nvidia/cu13/lib/");
  CHECK(places[1].folder == site / "nvidia/cu12/lib/");
  CHECK(places[2].folder == folder / "env/lib/");

  const mpbench::DynamicLibrary library({"libmpbench_wheel.so.1"});
  CHECK(library.place() == "python");
  CHECK(library.file() == "nvidia/cu13/lib/libmpbench_wheel.so.1");
}

TEST_CASE("bench: the error for a missing library has its name", "[bench]") {
  CHECK_THROWS_WITH(
      mpbench::DynamicLibrary({"libmpbench_none.so.1"}),
      Catch::Matchers::StartsWith("libmpbench_none.so.1 was not found by the loader"));
  const Folder folder;
  fs::create_directories(folder / "lib");
  std::ofstream(folder / "lib/libmpbench_broken.so.1") << "no library";
  const Environment cuda({{"CUDA_HOME", folder.path()}});
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
