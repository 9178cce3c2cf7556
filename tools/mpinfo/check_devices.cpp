// Checks each CUDA device: creation of a context, and code for its architecture.
#include <cstdlib>
#include <sstream>
#include <string>

#include "doctor.h"
#include "support/text.h"

namespace mpinfo {
namespace {

constexpr int kHopper = 90;

/// Machine code runs on later devices of its generation; code for an architecture with a letter
/// runs on that architecture only.
bool has_machine_code(const CudaBuild &build, int arch) {
  std::istringstream words(build.archs);
  for (std::string word; words >> word;) {
    char *suffix = nullptr;
    const int built = static_cast<int>(std::strtol(word.c_str(), &suffix, 10));
    if (*suffix != '\0' ? built == arch : built / 10 == arch / 10 && built <= arch) return true;
  }
  return false;
}

/// Returns a command like "make ARCHS="75 80 90a 120"".
std::string build_command(const std::optional<CudaBuild> &build, int arch) {
  return "make ARCHS=\"" + (build ? build->archs + " " : "") + std::to_string(arch) + "\"";
}

std::string memory_text(uint64_t bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return mptools::text("%.1f GiB", static_cast<double>(bytes) / kGiB);
}

/// Returns the driver's data of the same ordinal; none without a driver.
const DriverGpu *driver_gpu(const Machine &machine, size_t ordinal) {
  const std::vector<DriverGpu> &gpus = machine.driver.gpus;
  return ordinal < gpus.size() ? &gpus[ordinal] : nullptr;
}

/// @param gpu  NULL: unknown architecture
std::string remedy_without_code(const std::optional<CudaBuild> &build, const DriverGpu *gpu) {
  constexpr int kOldest = 75;
  if (gpu != nullptr && gpu->arch < kOldest)
    return "The library requires compute capability 7.5 or newer; use another device or the host "
           "target.";
  if (gpu != nullptr && build && has_machine_code(*build, gpu->arch))
    return "The library has code for this device, but the driver rejects it; install a driver that "
           "is at least as new as the toolkit.";
  const std::string command =
      gpu != nullptr ? build_command(build, gpu->arch) : "make ARCHS=\"...\"";
  return "Build the library for this device: " + command +
         ". (A driver can compile PTX only if it is at least as new as the toolkit.)";
}

Finding look_at(const Machine &machine, size_t ordinal) {
  const Place &place = machine.gpus[ordinal];
  const DriverGpu *const gpu = driver_gpu(machine, ordinal);
  if (place.context == nullptr)
    return problem(place.flag + " cannot be used: " + place.why_not,
                   place.status == MP_ERROR_ARCH_MISMATCH
                       ? remedy_without_code(machine.build, gpu)
                       : "Check its state with nvidia-smi: errors, free memory, and an exclusive "
                         "compute mode.");
  // The library reports an older architecture if it has only code for that.
  const int arch = gpu != nullptr ? gpu->arch : place.info.arch;
  std::string what = mptools::text("%s is %s, sm_%d, %d SMs", place.flag.c_str(), place.info.name,
                                   arch, place.info.num_sms);
  if (gpu != nullptr) what += ", " + memory_text(gpu->bytes);
  if (arch > kHopper) what += "; GEMM runs WMMA kernels, because those of wgmma require sm_90";
  if (!machine.build.has_value()) return ok(what);
  if (has_machine_code(*machine.build, arch))
    return ok(what + "; the library has machine code for it");
  return note(what +
                  "; the library has no machine code for it, so the driver compiles PTX and "
                  "first calls are slow",
              "Build the library for this device: " + build_command(machine.build, arch) + ".");
}

}  // namespace

Findings check_devices(Machine &machine) {
  Findings findings;
  for (size_t ordinal = 0; ordinal < machine.gpus.size(); ordinal++)
    findings.push_back(look_at(machine, ordinal));
  return findings;
}

}  // namespace mpinfo
