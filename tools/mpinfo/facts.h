// What the library says of itself, of this machine and of one problem.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace mpinfo {

struct Device {
  std::string flag;                      ///< for --device
  std::optional<mp_device_info_t> info;  ///< none: it cannot be used
  std::string why_not;                   ///< and why, where it cannot
};

struct Variable {
  const char *name;
  const char *meaning;
  const char *value;  ///< NULL = not set
};

struct Kernel {
  std::string name;
  std::string why_not;  ///< empty: it can run the problem
  double predicted_us;
  size_t workspace_bytes;
};

/// A GEMM, or one pass of a convolution.
struct Problem {
  std::string title;
  std::vector<Kernel> kernels;  ///< those that can run it first, by predicted time
};

/// The CPU and all GPUs; where there is no GPU, one entry says why.
std::vector<Device> find_devices();

/// The environment variables that the library reads.
std::vector<Variable> environment();

/// @throws std::runtime_error with the library's sentence
std::vector<Problem> explain(const Options &options, mp_context_t context);

/// What the library logs at MP_LOG_WARN from here on.
void collect_warnings(std::vector<std::string> *warnings);

}  // namespace mpinfo
