// Properties of the library, of this machine and of one problem.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace mpinfo {

struct Device {
  std::string flag;                      ///< for --device
  std::optional<mp_device_info_t> info;  ///< none: the device is unusable
  std::string why_not;                   ///< reason
};

struct Variable {
  const char *name;
  const char *meaning;
  const char *value;  ///< NULL = not set
};

struct Kernel {
  std::string name;
  std::string why_not;  ///< empty: the kernel can run the problem
  double predicted_us;
  size_t workspace_bytes;
};

/// A GEMM, one pass of a convolution, or attention.
struct Problem {
  std::string title;
  std::string plan;             ///< mp_*_explain; empty: `kernels` are requested
  std::vector<Kernel> kernels;  ///< runnable kernels first, by predicted time
};

/// The CPU and all GPUs; without a GPU, one entry with the reason.
std::vector<Device> find_devices();

/// The environment variables that the library reads.
std::vector<Variable> environment();

/// @throws std::runtime_error with the library's error message
std::vector<Problem> explain(const Options &options, mp_context_t context);

/// Collects the library's messages of level MP_LOG_WARN from now on.
void collect_warnings(std::vector<std::string> *warnings);

}  // namespace mpinfo
