// Checks the loaded library and its host target.
#include <dlfcn.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

/// CPU features required by an x86-64-v3 build; other builds require fewer.
std::string vector_units() {
#if defined(__x86_64__)
  // Clang 16 does not support the name "f16c".
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  const struct {
    const char *name;
    bool is_present;
  } units[] = {{"AVX2", __builtin_cpu_supports("avx2") != 0},
               {"FMA", __builtin_cpu_supports("fma") != 0},
               {"F16C", has_f16c},
               {"BMI2", __builtin_cpu_supports("bmi2") != 0}};
  std::string there, missing;
  for (const auto &unit : units) {
    std::string &list = unit.is_present ? there : missing;
    list += (list.empty() ? "" : ", ") + std::string(unit.name);
  }
  const std::string joint = there.empty() || missing.empty() ? "" : " and ";
  return "; the CPU " + (there.empty() ? "" : "has " + there) + joint +
         (missing.empty() ? "" : "lacks " + missing);
#else
  return "";
#endif
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
    return {ok(mptools::text("The host target runs on %s with %d threads%s", host.info.name,
                             host.info.num_sms, vector_units().c_str()))};
  if (host.status == MP_ERROR_ARCH_MISMATCH)
    return {problem("The host target cannot be used: " + host.why_not + vector_units(),
                    "Build the library for older CPUs: make HOST_MARCH=x86-64.")};
  return {problem("The host target cannot be used: " + host.why_not,
                  "Free memory or raise the limits of the process, then try again.")};
}

}  // namespace mpinfo
