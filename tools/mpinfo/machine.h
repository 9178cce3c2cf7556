// What several checks of the doctor look at, asked once.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mpcore.h"
#include "nvidia_driver.h"
#include "support/device.h"

namespace mpinfo {

/// What the library logs, instead of its lines on stderr.
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
  /// The first line that contains `words`; it is not there any more.
  std::optional<Line> take(const std::string &words);
  /// All warnings that nobody has taken.
  std::vector<std::string> take_warnings();

 private:
  std::mutex mutex_;
  std::vector<Line> lines_;
};

/// A device of the library: a context, or why there is none.
struct Place {
  std::string flag;  ///< for --device
  mptools::Context context;
  mp_device_info_t info;  ///< where there is a context
  mp_status_t status;
  std::string why_not;
};

/// What the cuda target was built with.
struct CudaBuild {
  std::string toolkit;  ///< "13.0"
  std::string archs;    ///< "75 80 90a"
};

struct Machine {
  Machine();

  /// With a context, the CPU first.
  std::vector<const Place *> usable() const;
  /// Without it the library says MP_ERROR_UNSUPPORTED of every CUDA device.
  bool has_cuda_target() const { return why_no_gpu_status != MP_ERROR_UNSUPPORTED; }

  Log log;  ///< before the contexts, whose creation may warn
  Place host;
  std::vector<Place> gpus;  ///< all that the CUDA runtime lists, usable or not
  mp_status_t why_no_gpu_status;
  std::string why_no_gpu;          ///< the library's sentence, where gpus is empty
  std::optional<CudaBuild> build;  ///< none: no cuda target, or it is not said in these words
  NvidiaDriver driver;
};

}  // namespace mpinfo
