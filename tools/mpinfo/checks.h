// The checks of the doctor.  Each looks at one thing.
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

/// Returns the path of a page of the guide: of the installation that this program is in, or in the
/// sources.
std::string page(const char *name);

/// Which library was loaded, and whether mpinfo was made for it.
Findings check_library(Machine &machine);
/// The host target on this CPU.
Findings check_host(Machine &machine);

/// The NVIDIA driver: there, new enough, and seen by a library that can use it.
Findings check_driver(Machine &machine);
/// CUDA_VISIBLE_DEVICES, which can hide devices.
Findings check_visible_devices(Machine &machine);
/// Each CUDA device: a context, and code for it.
Findings check_devices(Machine &machine);

/// By which constants kernels are chosen.
Findings check_tuning(Machine &machine);
/// A small mp_gemm of each type on each device, to the bit.
Findings check_products(Machine &machine);

/// The variables that the library reads, and names that are nearly theirs.
Findings check_environment(Machine &machine);
/// Variables of CUDA that make calls slow.
Findings check_cuda_settings(Machine &machine);

/// Libraries that are looked for at run time.
Findings check_optional(Machine &machine);
/// What the library warned of meanwhile, and no other check has said.
Findings check_warnings(Machine &machine);

}  // namespace mpinfo
