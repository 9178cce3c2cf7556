#include "dynamic_library.h"

#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "command.h"

namespace mpbench {
namespace {

namespace fs = std::filesystem;

constexpr const char *kPython = "python";

void add_lib_folders(std::vector<LibraryPlace> &places, const std::string &name,
                     const std::string &root) {
  for (const char *folder : {"/lib64/", "/lib/"}) places.push_back({name, root + folder});
}

/// The newest CUDA first: cu13 before cu12.
void add_packages(std::vector<LibraryPlace> &places, const std::string &folder) {
  std::vector<std::string> packages;
  std::error_code missing;
  for (const fs::directory_entry &package : fs::directory_iterator(folder, missing))
    packages.push_back(package.path() / "lib/");
  std::sort(packages.rbegin(), packages.rend());
  for (const std::string &package : packages) places.push_back({kPython, package});
}

}  // namespace

std::vector<LibraryPlace> system_places() {
  std::vector<LibraryPlace> places = {{"loader", ""}};
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char *const root = std::getenv(variable);
    if (root != nullptr && *root != '\0') add_lib_folders(places, variable, root);
  }
  add_lib_folders(places, "/usr/local/cuda", "/usr/local/cuda");
  return places;
}

std::vector<LibraryPlace> python_places() {
  std::istringstream lines(
      output_of("python3 -c 'import sys; print(sys.prefix, *sys.path, sep=\"\\n\")' 2>/dev/null"));
  std::string prefix, entry;
  if (!std::getline(lines, prefix)) return {};
  std::vector<LibraryPlace> places;
  while (std::getline(lines, entry)) {
    if (!entry.empty()) add_packages(places, entry + "/nvidia");
  }
  places.push_back({kPython, prefix + "/lib/"});
  return places;
}

std::string public_path(const std::string &path) {
  for (const char *root : {"/usr/", "/opt/", "/lib/", "/lib64/"})
    if (path.starts_with(root)) return path;
  const size_t package = path.rfind("/nvidia/");
  return package != std::string::npos ? path.substr(package + 1)
                                      : fs::path(path).filename().string();
}

DynamicLibrary::DynamicLibrary(std::initializer_list<const char *> names) {
  if (open(names, system_places())) return;
  if (open(names, python_places())) return;
  if (!reason_.empty()) throw std::runtime_error(reason_);
  throw std::runtime_error(std::string(*names.begin()) + (names.size() > 1 ? " (or older)" : "") +
                           " was not found by the loader, in CUDA_HOME, CUDA_PATH, "
                           "/usr/local/cuda or the packages of python3");
}

bool DynamicLibrary::open(std::initializer_list<const char *> names,
                          const std::vector<LibraryPlace> &places) {
  for (const LibraryPlace &place : places) {
    for (const char *name : names) {
      const std::string path = place.folder + name;
      handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      place_ = place.name;
      if (handle_ != nullptr) return true;
      if (!place.folder.empty() && fs::exists(path))
        reason_ = public_path(path) + " exists but cannot be loaded";
    }
  }
  return false;
}

std::string DynamicLibrary::file() const {
  const link_map *map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
  std::error_code failed;
  const fs::path path = fs::weakly_canonical(map->l_name, failed);
  return public_path(failed ? map->l_name : path.string());
}

}  // namespace mpbench
