// State of the machine that several checks of the doctor use, collected once.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libraries.h"
#include "mpcore.h"
#include "support/device.h"

namespace mpinfo {

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
