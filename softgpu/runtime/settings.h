// Runtime settings from environment variables; options.h has the settings of the device.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace softgpu::runtime {

/// SOFTGPU_FAIL=function:n[=error],...: the n-th call of a function fails.
struct Injection {
  std::string text;      ///< complete specification
  std::string function;  ///< "launch": the n-th kernel fails during execution
  uint64_t number;
  int error;  ///< -1: the natural error of the function
};

struct Settings {
  bool is_synchronous = false;  ///< SOFTGPU_SYNC=1
  std::chrono::microseconds delay{
      10'000};  ///< SOFTGPU_DELAY: work that no call waits for begins after this time
  std::vector<std::string> ptx_folders;  ///< SOFTGPU_PTX=DIR[:DIR]
  std::vector<Injection> injections;     ///< SOFTGPU_FAIL
  std::string count_file, cover_file;    ///< SOFTGPU_COUNT, SOFTGPU_COVER; %p is the process ID
  uint64_t memory_bytes = uint64_t{16} << 30;  ///< SOFTGPU_MEMORY: bytes per device
};

/// Returns the settings.  The first call reads the environment; an invalid value ends the process
/// with an error message.
const Settings &settings();

}  // namespace softgpu::runtime
