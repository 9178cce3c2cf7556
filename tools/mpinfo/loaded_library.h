// Shared libraries that are looked for at run time, and where a file really is.
#pragma once

#include <string>

namespace mpinfo {

/// A library that the loader looks for by a name.  It stays loaded: what it started may outlive the last
/// call.
struct LoadedLibrary {
  explicit LoadedLibrary(const char *name);

  void *handle;         ///< NULL = it cannot be loaded
  std::string file;     ///< where it is
  std::string why_not;  ///< the loader's words
};

/// Without symbolic links, as far as they can be followed.
std::string real_path(const char *path);

}  // namespace mpinfo
