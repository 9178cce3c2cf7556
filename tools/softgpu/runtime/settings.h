// What the environment says about the runtime; options.h has what it says about the device.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace softgpu::runtime {

/// SOFTGPU_FAIL=function:n[=error],...: the n-th call of a function fails.
struct Injection {
  std::string text;      ///< all of it
  std::string function;  ///< "launch": the n-th kernel fails while it runs
  uint64_t number;
  int error;  ///< -1: the natural one
};

struct Settings {
  bool is_synchronous = false;  ///< SOFTGPU_SYNC=1
  std::chrono::microseconds delay{
      10'000};                           ///< SOFTGPU_DELAY: work that nobody asks for begins then
  std::vector<std::string> ptx_folders;  ///< SOFTGPU_PTX=DIR[:DIR]
  std::vector<Injection> injections;     ///< SOFTGPU_FAIL
  std::string count_file, cover_file;    ///< SOFTGPU_COUNT, SOFTGPU_COVER; %p is the process
  uint64_t memory_bytes = uint64_t{16} << 30;  ///< SOFTGPU_MEMORY: of a device, in bytes
};

/// Read at the first call; a value that cannot be read ends the process with a sentence.
const Settings &settings();

}  // namespace softgpu::runtime
