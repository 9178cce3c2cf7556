// Checks optional libraries that are loaded at run time, and remaining warnings of the library.
#include <dlfcn.h>

#include <string>

#include "checks.h"
#include "loaded_library.h"
#include "support/text.h"

namespace mpinfo {
namespace {

/// Empty if the library does not report it.
std::string nccl_version(const LoadedLibrary &nccl) {
  using GetVersion = int (*)(int *);
  const auto get = reinterpret_cast<GetVersion>(dlsym(nccl.handle, "ncclGetVersion"));
  int version = 0;
  if (get == nullptr || get(&version) != 0) return "";
  const int unit = version < 10000 ? 1000 : 10000;  // 2804 is 2.8.4, 20900 is 2.9.0
  return mptools::text(" %d.%d.%d", version / unit, version % unit / 100, version % 100);
}

Finding look_for_nccl(size_t num_gpus) {
  const LoadedLibrary nccl("libnccl.so.2");
  if (nccl.handle != nullptr)
    return ok("NCCL" + nccl_version(nccl) + " is available (" + nccl.file + ")");
  const std::string what =
      "NCCL was not found; mp_comm_init_nccl requires it for training on several GPUs: " +
      nccl.why_not;
  if (num_gpus < 2) return ok(what);
  return note(what, "To use several GPUs, install libnccl2 or add its folder to LD_LIBRARY_PATH.");
}

Finding look_for_nvml(size_t num_gpus) {
  const LoadedLibrary nvml("libnvidia-ml.so.1");
  if (nvml.handle != nullptr) return ok("NVML is available (" + nvml.file + ")");
  const std::string what =
      "NVML was not found; mpbench reads the clocks and the power of a GPU from it: " +
      nvml.why_not;
  if (num_gpus < 1) return ok(what);
  return note(
      what,
      "NVML is part of the driver (libnvidia-ml.so.1); without it mpbench omits these columns.");
}

}  // namespace

Findings check_optional(Machine &machine) {
  const size_t num_gpus = machine.gpus.size();
  return {look_for_nccl(num_gpus), look_for_nvml(num_gpus)};
}

Findings check_warnings(Machine &machine) {
  Findings findings;
  for (const std::string &warning : machine.log.take_warnings())
    findings.push_back(note("The library warns: " + warning,
                            page("log.md") + " lists a remedy for each warning."));
  return findings;
}

}  // namespace mpinfo
