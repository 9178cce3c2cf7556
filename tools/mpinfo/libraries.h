// Libraries that are loaded at run time, and the state of the NVIDIA driver, queried directly:
// mpcore reports only why it has no device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

struct DriverGpu {
  int arch;        ///< 90 is compute capability 9.0
  uint64_t bytes;  ///< memory size
};

struct NvidiaDriver {
  NvidiaDriver();

  std::string module;           ///< version of the kernel module; empty = not loaded
  std::string library;          ///< file of libcuda.so.1; empty = not loadable
  std::string why_no_library;   ///< message of the loader
  int cuda = 0;                 ///< newest supported CUDA, 13000 is 13.0; 0 = unknown
  std::string error;            ///< reason for missing data; empty = none missing
  bool sees_no_gpu = false;     ///< the error: no GPU exists, or none is visible
  std::vector<DriverGpu> gpus;  ///< in the order of CUDA's ordinals
};

}  // namespace mpinfo
