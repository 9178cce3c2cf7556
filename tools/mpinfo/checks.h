// Checks of mpinfo doctor, each for one subject.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "doctor.h"
#include "machine.h"

namespace mpinfo {

using Findings = std::vector<Finding>;

inline Finding ok(std::string what) {
  return {Verdict::ok, std::move(what), "", ""};
}
inline Finding note(std::string what, std::string remedy) {
  return {Verdict::note, std::move(what), std::move(remedy), ""};
}
inline Finding problem(std::string what, std::string remedy) {
  return {Verdict::problem, std::move(what), std::move(remedy), ""};
}

/// Returns the path of a page of the guide: in the installation of this program, or in the sources.
std::string page(const char *name);

/// Path and version of the loaded library.
Findings check_library(Machine &machine);
/// Host target on this CPU.
Findings check_host(Machine &machine);

/// NVIDIA driver: loaded, new enough, and usable by the library.
Findings check_driver(Machine &machine);
/// CUDA_VISIBLE_DEVICES, which can hide devices.
Findings check_visible_devices(Machine &machine);
/// Each CUDA device: a context, and code for its architecture.
Findings check_devices(Machine &machine);

/// Constants of kernel selection.
Findings check_tuning(Machine &machine);
/// A small mp_gemm of each type on each device, bit-exact.
Findings check_products(Machine &machine);

/// Variables that the library reads, and misspelled names.
Findings check_environment(Machine &machine);
/// Variables of CUDA that make calls slow.
Findings check_cuda_settings(Machine &machine);

/// Libraries that are loaded at run time.
Findings check_optional(Machine &machine);
/// Warnings of the library that no other check has reported.
Findings check_warnings(Machine &machine);

}  // namespace mpinfo
