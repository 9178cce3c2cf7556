// mpinfo doctor: checks the library's installation on this machine and suggests remedies.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine.h"

namespace mpinfo {

/// Line of the report.
struct Finding {
  const char *verdict;   ///< "ok"; "note": works, but not at its best; "problem"
  std::string what;      ///< no period at the end
  std::string remedy{};  ///< a sentence; empty if there is no problem
};
using Findings = std::vector<Finding>;

inline Finding ok(std::string what) {
  return {"ok", std::move(what)};
}
inline Finding note(std::string what, std::string remedy) {
  return {"note", std::move(what), std::move(remedy)};
}
inline Finding problem(std::string what, std::string remedy) {
  return {"problem", std::move(what), std::move(remedy)};
}

constexpr const char *kPleaseReport = "Please report it with the complete output of mpinfo doctor.";

/// Returns the path of a page of the guide: in the installation of this program, or in the sources.
std::string page(const char *name);

/// A check of one subject.
using Check = Findings(Machine &machine);
Check check_library;          ///< path and version of the loaded library
Check check_host;             ///< host target on this CPU
Check check_driver;           ///< NVIDIA driver: loaded, new enough, and usable by the library
Check check_visible_devices;  ///< CUDA_VISIBLE_DEVICES, which can hide devices
Check check_devices;          ///< each CUDA device: a context, and code for its architecture
Check check_tuning;           ///< constants of kernel selection
Check check_products;         ///< a small mp_gemm of each type on each device, bit-exact
Check check_environment;      ///< variables that the library reads, and misspelled names
Check check_cuda_settings;    ///< variables of CUDA that make calls slow
Check check_optional;         ///< libraries that are loaded at run time
Check check_warnings;         ///< warnings of the library that no other check has reported

/// Runs all checks in order and prints the findings.  A failed check is a finding and does not stop
/// the others.
/// @return the exit code: 1 if there is a problem
int run_doctor(bool json);

}  // namespace mpinfo
