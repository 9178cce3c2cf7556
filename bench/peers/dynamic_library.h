// Shared libraries that are looked for at run time and never linked.  They stay loaded until the
// process ends: what they started (threads, handlers) may outlive the last call.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace mpbench {

class DynamicLibrary {
 public:
  /// Opens the first of `names` that exists, where the loader looks or where CUDA is installed.
  /// @throws std::runtime_error
  explicit DynamicLibrary(std::initializer_list<const char *> names) {
    for (const char *folder : {"", "/usr/local/cuda/lib64/"}) {
      for (const char *name : names) {
        handle_ = dlopen((folder + std::string(name)).c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ != nullptr) return;
      }
    }
    throw std::runtime_error(std::string(*names.begin()) + " (or older) is not installed");
  }

  /// @throws std::runtime_error if the library does not have it.
  template <typename Function>
  void find(const char *name, Function *&function) const {
    function = reinterpret_cast<Function *>(dlsym(handle_, name));
    if (function == nullptr) throw std::runtime_error(std::string(name) + " is missing");
  }

 private:
  void *handle_ = nullptr;
};

}  // namespace mpbench
