// Libraries that are loaded at run time, and their files.
#pragma once

#include <string>

namespace mpinfo {

/// A library found by the loader.  It stays loaded: threads and handlers that it started may
/// outlive the last call.
struct LoadedLibrary {
  explicit LoadedLibrary(const char *name);

  void *handle;         ///< NULL = it cannot be loaded
  std::string file;     ///< path of the file
  std::string why_not;  ///< message of the loader
};

/// Resolves symbolic links, as far as possible.
std::string real_path(const char *path);

}  // namespace mpinfo
