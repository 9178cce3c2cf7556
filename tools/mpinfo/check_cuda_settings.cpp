// Variables of CUDA that change how long the library takes, or which code of it runs.
// Source: CUDA C++ Programming Guide, "CUDA Environment Variables".
#include <cstdlib>
#include <string>

#include "checks.h"

namespace mpinfo {
namespace {

struct Setting {
  const char *name;
  const char *value;  ///< of which there is something to say
  const char *what;
};

constexpr Setting kSettings[] = {
    {"CUDA_MODULE_LOADING", "EAGER",
     "loads every kernel of the library at the first call, not those alone that run"},
    {"CUDA_FORCE_PTX_JIT", "1",
     "makes the driver compile PTX although there is machine code; kernels of Hopper do without "
     "wgmma then"},
    {"CUDA_CACHE_DISABLE", "1",
     "forgets what the driver has compiled of PTX, so that every process compiles it anew"},
    {"CUDA_LAUNCH_BLOCKING", "1", "makes every launch wait for its end"},
};

}  // namespace

Findings check_cuda_settings(Machine &machine) {
  Findings findings;
  if (!machine.has_cuda_target()) return findings;
  for (const Setting &setting : kSettings) {
    const char *const value = std::getenv(setting.name);
    if (value != nullptr && std::string(value) == setting.value)
      findings.push_back(note(std::string(setting.name) + " = " + value + " " + setting.what,
                              "Unset it where that is not meant."));
  }
  return findings;
}

}  // namespace mpinfo
