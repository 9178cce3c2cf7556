// Checks optional libraries that are loaded at run time, and remaining warnings of the library.
#include <string>

#include "doctor.h"

namespace mpinfo {
namespace {

/// @param what    use of the library
/// @param is_missed  true if this machine would use it
Finding look_for(const std::string &name, const LoadedLibrary &library, const char *what,
                 bool is_missed, const char *remedy) {
  if (library.handle != nullptr) return ok(name + " is available (" + library.file + ")");
  const std::string missing = name + " was not found; " + what + ": " + library.why_not;
  return is_missed ? note(missing, remedy) : ok(missing);
}

}  // namespace

Findings check_optional(Machine &machine) {
  const LoadedLibrary nccl("libnccl.so.2"), nvml("libnvidia-ml.so.1");
  const size_t num_gpus = machine.gpus.size();
  return {look_for("NCCL", nccl, "mp_comm_init_nccl requires it for training on several GPUs",
                   num_gpus > 1,
                   "To use several GPUs, install libnccl2 or add its folder to LD_LIBRARY_PATH."),
          look_for("NVML", nvml, "mpbench reads the clocks and the power of a GPU from it",
                   num_gpus > 0,
                   "NVML is part of the driver (libnvidia-ml.so.1); without it mpbench omits these "
                   "columns.")};
}

Findings check_warnings(Machine &machine) {
  Findings findings;
  for (const std::string &warning : machine.log.take_warnings())
    findings.push_back(note("The library warns: " + warning,
                            page("log.md") + " lists a remedy for each warning."));
  return findings;
}

}  // namespace mpinfo
