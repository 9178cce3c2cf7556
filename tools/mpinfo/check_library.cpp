// Checks the loaded library and its host target.
#include <dlfcn.h>

#include <string>

#include "doctor.h"
#include "report.h"
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

}  // namespace mpinfo
