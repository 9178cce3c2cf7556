#include "loaded_library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>

namespace mpinfo {

LoadedLibrary::LoadedLibrary(const char *name) : handle(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (handle == nullptr) {
    const char *const words = dlerror();
    why_not = words != nullptr ? words : std::string(name) + " cannot be loaded";
    return;
  }
  const link_map *map = nullptr;
  file = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? real_path(map->l_name) : name;
}

std::string real_path(const char *path) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

}  // namespace mpinfo
