// Checks the loaded library, its host target, optional libraries that are loaded at run time, and
// remaining warnings.
#include <dlfcn.h>

#include <string>

#include "doctor.h"
#include "facts.h"
#include "support/text.h"

namespace mpinfo {
namespace {

/// File that contains the bound symbol: a program may have its own address for a function.
std::string library_file() {
  Dl_info info;
  void *const symbol = dlsym(RTLD_DEFAULT, "mp_version");
  const bool is_found = symbol != nullptr && dladdr(symbol, &info) != 0;
  return is_found && info.dli_fname != nullptr ? real_path(info.dli_fname) : "";
}

Finding compare_versions() {
  const std::string loaded = loaded_version(), compiled = header_version();
  if (mp_version() == MP_VERSION)
    return ok("The headers that mpinfo was compiled with have the same version, " + compiled);
  return problem("mpinfo was compiled with the headers of " + compiled +
                     ", but the loaded library is " + loaded,
                 "Install both from one version, or put the folder of the right library first in "
                 "LD_LIBRARY_PATH.");
}

/// @param what    use of the library
/// @param is_missed  true if this machine would use it
Finding look_for(const std::string &name, const LoadedLibrary &library, const char *what,
                 bool is_missed, const char *remedy) {
  if (library.handle != nullptr) return ok(name + " is available (" + library.file + ")");
  const std::string missing = name + " was not found; " + what + ": " + library.why_not;
  return is_missed ? note(missing, remedy) : ok(missing);
}

}  // namespace

Findings check_library(Machine &) {
  const std::string file = library_file();
  return {ok(mp_build_info()),
          file.empty()
              ? note("The file of the library could not be determined", "Run ldd on mpinfo.")
              : ok("The library was loaded from " + file),
          compare_versions()};
}

Findings check_host(Machine &machine) {
  const Place &host = machine.host;
  if (host.context != nullptr)
    return {ok(mptools::text("The host target runs on %s with %d threads", host.info.name,
                             host.info.num_sms))};
  if (host.status == MP_ERROR_ARCH_MISMATCH)
    return {problem("The host target cannot be used: " + host.why_not,
                    "Build the library for older CPUs: make HOST_MARCH=x86-64.")};
  return {problem("The host target cannot be used: " + host.why_not,
                  "Free memory or raise the limits of the process, then try again.")};
}

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
