// State of the machine that several checks of the doctor use, collected once: libraries that are
// loaded at run time, the NVIDIA driver, and the devices of mpcore.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mpcore.h"
#include "support/device.h"

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

/// State of the NVIDIA driver, queried directly: mpcore reports only why it has no device.
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

/// Captures the library's log instead of printing it to stderr.
class Log {
 public:
  Log();
  ~Log();
  Log(const Log &) = delete;
  Log &operator=(const Log &) = delete;

  struct Line {
    mp_log_level_t level;
    std::string message;
  };
  /// Removes and returns the first line that contains `words`.
  std::optional<Line> take(const std::string &words);
  /// Removes and returns all remaining warnings.
  std::vector<std::string> take_warnings();

 private:
  std::mutex mutex_;
  std::vector<Line> lines_;
};

/// A device of the library: a context, or the reason why there is none.
struct Place {
  std::string flag;  ///< for --device
  mptools::Context context;
  mp_device_info_t info;  ///< if there is a context
  mp_status_t status;
  std::string why_not;
};

/// Build configuration of the cuda target.
struct CudaBuild {
  std::string toolkit;  ///< "13.0"
  std::string archs;    ///< "75 80 90a"
};

struct Machine {
  Machine();

  /// Devices with a context, the CPU first.
  std::vector<const Place *> usable() const;
  /// False if the library returns MP_ERROR_UNSUPPORTED for every CUDA device.
  bool has_cuda_target() const { return why_no_gpu_status != MP_ERROR_UNSUPPORTED; }

  Log log;  ///< created first: creation of contexts may log warnings
  Place host;
  std::vector<Place> gpus;  ///< listed by the CUDA runtime, usable or not
  mp_status_t why_no_gpu_status;
  std::string why_no_gpu;          ///< error message of the library, if gpus is empty
  std::optional<CudaBuild> build;  ///< none: no cuda target, or unknown format
  NvidiaDriver driver;
};

}  // namespace mpinfo
