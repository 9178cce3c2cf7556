// Environment variables of CUDA that affect the library's speed, or the code that runs.
// Source: CUDA C++ Programming Guide, "CUDA Environment Variables".
#include <cstdlib>
#include <string>

#include "checks.h"

namespace mpinfo {
namespace {

struct Setting {
  const char *name;
  const char *value;  ///< value that is reported
  const char *what;
};

constexpr Setting kSettings[] = {
    {"CUDA_MODULE_LOADING", "EAGER",
     "loads all kernels of the library at the first call, including those that never run"},
    {"CUDA_FORCE_PTX_JIT", "1",
     "makes the driver compile PTX instead of loading machine code, which excludes the wgmma "
     "kernels on Hopper"},
    {"CUDA_CACHE_DISABLE", "1",
     "disables the cache of compiled PTX, so every process compiles it again"},
    {"CUDA_LAUNCH_BLOCKING", "1", "makes every launch synchronous"},
};

}  // namespace

Findings check_cuda_settings(Machine &machine) {
  Findings findings;
  if (!machine.has_cuda_target()) return findings;
  for (const Setting &setting : kSettings) {
    const char *const value = std::getenv(setting.name);
    if (value != nullptr && std::string(value) == setting.value)
      findings.push_back(note(std::string(setting.name) + " = " + value + " " + setting.what,
                              "Unset it unless you need it."));
  }
  return findings;
}

}  // namespace mpinfo
