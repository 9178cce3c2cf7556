// Shared libraries opened at run time.  They stay loaded until the process ends: threads and
// handlers that they started may outlive the last call.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

// Pointer to a function that a header of the library declares.  Each use finds it once.
#define MPBENCH_FUNCTION(library, function)                                      \
  ([&] {                                                                         \
    static decltype(&::function) const pointer =                                 \
        (library).find<std::remove_pointer_t<decltype(&::function)>>(#function); \
    return pointer;                                                              \
  }())

// Defines a struct of pointers to functions without a header.  `list` is a macro of entries
// X(result, member, symbol, parameters...).
#define MPBENCH_TABLE(name, list)                                    \
  struct name {                                                      \
    list(MPBENCH_MEMBER);                                            \
    void load(const DynamicLibrary &library) { list(MPBENCH_FIND); } \
  };
#define MPBENCH_MEMBER(result, member, symbol, ...) result (*member)(__VA_ARGS__);
#define MPBENCH_FIND(result, member, symbol, ...) library.find(#symbol, member);

namespace mpbench {

struct LibraryPlace {
  std::string name;    ///< name in results
  std::string folder;  ///< has a trailing slash; empty = the loader's search path
};

/// Search order: the loader's path, CUDA_HOME, CUDA_PATH, /usr/local/cuda.
std::vector<LibraryPlace> system_places();

/// Folders of the python3 on PATH: NVIDIA's packages (nvidia/*/lib) and the environment's lib.
std::vector<LibraryPlace> python_places();

/// Path without private folders: the full path below /usr, /opt and /lib, the part from nvidia/ on
/// for a Python package, otherwise the file name.
std::string public_path(const std::string &path);

class DynamicLibrary {
 public:
  /// Opens the first of `names` found in system_places(), then in python_places().  The
  /// dependencies of a library, such as the parts of cuDNN 9, are found in the same folder:
  /// NVIDIA's libraries have $ORIGIN and the neighboring packages in their RUNPATH.
  /// @throws std::runtime_error
  explicit DynamicLibrary(std::initializer_list<const char *> names);

  /// @throws std::runtime_error if the library lacks the function.
  template <typename Function>
  Function *find(const char *name) const {
    Function *const function = find_if_there<Function>(name);
    if (function == nullptr) throw std::runtime_error(std::string(name) + " is missing");
    return function;
  }
  template <typename Function>
  void find(const char *name, Function *&function) const {
    function = find<Function>(name);
  }

  /// NULL if the library lacks the function.
  template <typename Function>
  Function *find_if_there(const char *name) const {
    return reinterpret_cast<Function *>(dlsym(handle_, name));
  }

  /// Place where the library was found.
  const std::string &place() const { return place_; }
  /// Returns public_path() of the library.
  std::string file() const;

 private:
  bool open(std::initializer_list<const char *> names, const std::vector<LibraryPlace> &places);

  void *handle_ = nullptr;
  std::string place_;
  std::string reason_;  ///< error of a library that exists but cannot be opened
};

}  // namespace mpbench
