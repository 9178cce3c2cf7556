// Checks the driver: its presence, its version, the devices visible to it, and the environment
// variables of CUDA that affect the speed or the code that runs.
// Source: CUDA C++ Programming Guide, "CUDA Environment Variables".
#include <algorithm>
#include <cstdlib>
#include <string>

#include "doctor.h"
#include "support/text.h"

namespace mpinfo {
namespace {

std::string host_is_used() {
  return "The library uses the CPU; see " + page("no-gpu.md") + ".";
}

std::string counted_gpus(size_t count) {
  return std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
}

/// Formats 13000 as 13.0; the driver uses the toolkit's numbers.
std::string cuda_text(int version) {
  return mptools::text("CUDA %d.%d", version / 1000, version % 1000 / 10);
}

/// A driver runs code of toolkits of its major version and of earlier ones.
/// Source: CUDA Compatibility, "Minor Version Compatibility".
bool is_too_old(const Machine &machine) {
  const bool is_known = machine.build.has_value() && machine.driver.cuda > 0;
  return is_known && machine.driver.cuda / 1000 < std::atoi(machine.build->toolkit.c_str());
}

Findings without_libcuda(const Machine &machine) {
  const NvidiaDriver &driver = machine.driver;
  // The software device is a CUDA runtime that does not use a driver.
  if (!machine.gpus.empty())
    return {ok("libcuda.so.1 was not found; this CUDA runtime provides devices without it")};
  if (driver.module.empty()) return {note("No NVIDIA driver is installed", host_is_used())};
  // A container without GPUs sees the kernel module of its host, which is not necessarily an error.
  return {note("The NVIDIA driver " + driver.module +
                   " is loaded, but its library is not: " + driver.why_no_library,
               "The library uses the CPU. To use a GPU, install libcuda.so.1 of that version; in a "
               "container the NVIDIA Container Toolkit provides it (docker run --gpus all).")};
}

/// The driver failed before it could list devices.
Finding broken(const Machine &machine) {
  const NvidiaDriver &driver = machine.driver;
  if (driver.sees_no_gpu) return note("The NVIDIA driver detects no GPU", host_is_used());
  return problem("The NVIDIA driver does not work (" + driver.library + "): " + driver.error,
                 "Run nvidia-smi; reinstall the driver or restart the machine if it fails too. "
                 "LD_LIBRARY_PATH must not contain the stub libraries of the toolkit.");
}

struct Setting {
  const char *name;
  const char *value;  ///< value that is reported
  const char *what;
};

constexpr Setting kSettings[] = {
    {"CUDA_MODULE_LOADING", "EAGER",
     "loads all kernels of the library at the first call, including those that never run"},
    {"CUDA_FORCE_PTX_JIT", "1",
     "makes the driver compile PTX instead of loading machine code, which excludes the wgmma "
     "kernels on Hopper"},
    {"CUDA_CACHE_DISABLE", "1",
     "disables the cache of compiled PTX, so every process compiles it again"},
    {"CUDA_LAUNCH_BLOCKING", "1", "makes every launch synchronous"},
};

}  // namespace

Findings check_driver(Machine &machine) {
  const NvidiaDriver &driver = machine.driver;
  if (driver.library.empty()) return without_libcuda(machine);
  Findings findings;
  if (driver.cuda > 0)
    findings.push_back(ok("The NVIDIA driver " + driver.module +
                          (driver.module.empty() ? "" : " ") + "supports " +
                          cuda_text(driver.cuda) + " and older (" + driver.library + ")"));
  if (is_too_old(machine)) {
    findings.push_back(problem(
        "The driver supports " + cuda_text(driver.cuda) + ", but the library was built with CUDA " +
            machine.build->toolkit,
        "Install a newer driver, or build the library with an older toolkit (make NVCC=...)."));
  } else if (!driver.error.empty()) {
    findings.push_back(broken(machine));
  } else if (!driver.gpus.empty() && !machine.has_cuda_target()) {
    findings.push_back(problem("The machine has " + counted_gpus(driver.gpus.size()) +
                                   ", but this library was built without the CUDA target",
                               "Build it with nvcc (make NVCC=/usr/local/cuda/bin/nvcc)."));
  } else if (!driver.gpus.empty() && machine.gpus.empty()) {
    findings.push_back(problem("The driver lists " + counted_gpus(driver.gpus.size()) +
                                   ", but the library cannot use any: " + machine.why_no_gpu,
                               "Check their state with nvidia-smi."));
  }
  return findings;
}

Findings check_visible_devices(Machine &machine) {
  const char *const value = std::getenv("CUDA_VISIBLE_DEVICES");
  if (value == nullptr) return {};
  const std::string list = value;
  const std::string is_set = "CUDA_VISIBLE_DEVICES = " + (list.empty() ? "\"\"" : list);
  const size_t listed = static_cast<size_t>(std::count(list.begin(), list.end(), ',')) + 1;
  const size_t seen = std::max(machine.gpus.size(), machine.driver.gpus.size());
  if (seen > 0 && seen < listed)
    return {
        note(is_set + " lists more devices than the " + std::to_string(seen) + " that are visible",
             "CUDA ignores the list after the first unknown name; nvidia-smi -L lists the names.")};
  if (seen > 0) return {ok(is_set + " makes " + counted_gpus(seen) + " visible")};
  if (list.empty() || list[0] == '-')
    return {note(is_set + " hides all GPUs", "Unset it, or list the GPUs to use, e.g. 0,1.")};
  if (machine.driver.sees_no_gpu)
    return {problem(is_set + " lists no GPU of this machine",
                    "List GPUs that nvidia-smi -L prints, or unset it.")};
  return {note(is_set + " lists GPUs, but no working driver was found",
               "Unset it if you do not want to use a GPU.")};
}

Findings check_cuda_settings(Machine &machine) {
  Findings findings;
  if (!machine.has_cuda_target()) return findings;
  for (const Setting &setting : kSettings) {
    const char *const value = std::getenv(setting.name);
    if (value != nullptr && std::string(value) == setting.value)
      findings.push_back(note(std::string(setting.name) + " = " + value + " " + setting.what,
                              "Unset it unless you need it."));
  }
  return findings;
}

}  // namespace mpinfo
