// The NVIDIA driver, asked by itself: mpcore says no more of it than why it has no device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpinfo {

struct DriverGpu {
  int arch;        ///< 90 is compute capability 9.0
  uint64_t bytes;  ///< of its memory
};

struct NvidiaDriver {
  std::string module;          ///< version of the module in the kernel; empty = it is not loaded
  std::string library;         ///< the file of libcuda.so.1; empty = it cannot be loaded
  std::string why_no_library;  ///< the loader's words
  int cuda = 0;                ///< the newest CUDA that it runs, 13000 is 13.0; 0 = it does not say
  std::string error;           ///< why it does not say the rest; empty = it does
  bool sees_no_gpu = false;    ///< that is the error: none is there, or none may be seen
  std::vector<DriverGpu> gpus;  ///< in the order of CUDA's ordinals
};

NvidiaDriver ask_nvidia_driver();

}  // namespace mpinfo
