// Shared libraries that are looked for at run time and never linked.  They stay loaded until the
// process ends: what they started (threads, handlers) may outlive the last call.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

namespace mpbench {

struct LibraryPlace {
  std::string name;    ///< as results call it
  std::string folder;  ///< with a slash at its end; empty = where the loader looks
};

/// In this order: the loader's own, CUDA_HOME, CUDA_PATH, /usr/local/cuda.
std::vector<LibraryPlace> system_places();

/// Of the python3 on PATH, which is asked: NVIDIA's packages (nvidia/*/lib) and the environment's lib.
std::vector<LibraryPlace> python_places();

/// What names nobody's folders: the whole path below /usr, /opt and /lib; of a Python package from
/// nvidia/ on; else the file alone.
std::string public_path(const std::string &path);

class DynamicLibrary {
 public:
  /// Opens the first of `names` that there is, in system_places() and then in python_places().
  /// What a library needs itself, such as the parts of cuDNN 9, it finds beside it: NVIDIA's have
  /// $ORIGIN and the neighbouring packages in their RUNPATH.
  /// @throws std::runtime_error
  explicit DynamicLibrary(std::initializer_list<const char *> names);

  /// @throws std::runtime_error if the library does not have it.
  template <typename Function>
  void find(const char *name, Function *&function) const {
    function = find_if_there<Function>(name);
    if (function == nullptr) throw std::runtime_error(std::string(name) + " is missing");
  }

  /// NULL if the library does not have it.
  template <typename Function>
  Function *find_if_there(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(handle_, name));
  }

  /// The place where it was found.
  const std::string &place() const { return place_; }
  /// public_path() of it.
  std::string file() const;

 private:
  bool open(std::initializer_list<const char *> names, const std::vector<LibraryPlace> &places);

  void *handle_ = nullptr;
  std::string place_;
  std::string reason_;  ///< why one that is there could not be opened
};

}  // namespace mpbench
