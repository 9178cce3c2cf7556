// Declares the driver functions in use, so that mpinfo builds without NVIDIA's headers and does not
// link the driver.
// Source of names and values: CUDA Driver API, "Initialization", "Version Management", "Device
// Management".
#include "machine.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>

#include "support/text.h"

namespace mpinfo {
namespace {

using Result = int;                      // CUresult; 0 is success
using Gpu = int;                         // CUdevice
constexpr Result kNoDevice = 100;        // CUDA_ERROR_NO_DEVICE
constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR

struct Functions {
  Result (*get_error_name)(Result, const char **);
  Result (*driver_get_version)(int *);
  Result (*init)(unsigned flags);
  Result (*device_get_count)(int *);
  Result (*device_get)(Gpu *, int ordinal);
  Result (*device_get_attribute)(int *, int attribute, Gpu);
  Result (*device_total_mem)(size_t *, Gpu);
};

/// Internal error; what() is a clause.
struct DriverError : std::runtime_error {
  DriverError(const std::string &what, Result why) : std::runtime_error(what), result(why) {}
  Result result;  ///< 0: no call has failed
};

template <class Function>
void find(void *library, const char *name, Function *&function) {
  function = reinterpret_cast<Function *>(dlsym(library, name));
  if (function == nullptr) throw DriverError(std::string(name) + " is missing", 0);
}

Functions find_functions(void *library) {
  Functions found{};
  find(library, "cuGetErrorName", found.get_error_name);
  find(library, "cuDriverGetVersion", found.driver_get_version);
  find(library, "cuInit", found.init);
  find(library, "cuDeviceGetCount", found.device_get_count);
  find(library, "cuDeviceGet", found.device_get);
  find(library, "cuDeviceGetAttribute", found.device_get_attribute);
  find(library, "cuDeviceTotalMem_v2", found.device_total_mem);
  return found;
}

void check(const Functions &cuda, const char *call, Result result) {
  if (result == 0) return;
  const char *name = nullptr;
  cuda.get_error_name(result, &name);
  throw DriverError(
      mptools::text("%s failed: %s (%d)", call, name != nullptr ? name : "unknown error", result),
      result);
}

DriverGpu describe(const Functions &cuda, int ordinal) {
  Gpu gpu = 0;
  int major = 0, minor = 0;
  size_t bytes = 0;
  check(cuda, "cuDeviceGet", cuda.device_get(&gpu, ordinal));
  check(cuda, "cuDeviceGetAttribute", cuda.device_get_attribute(&major, kMajor, gpu));
  check(cuda, "cuDeviceGetAttribute", cuda.device_get_attribute(&minor, kMinor, gpu));
  check(cuda, "cuDeviceTotalMem", cuda.device_total_mem(&bytes, gpu));
  return {10 * major + minor, bytes};
}

void ask(const Functions &cuda, NvidiaDriver &driver) {
  check(cuda, "cuDriverGetVersion", cuda.driver_get_version(&driver.cuda));
  check(cuda, "cuInit", cuda.init(0));
  int count = 0;
  check(cuda, "cuDeviceGetCount", cuda.device_get_count(&count));
  for (int ordinal = 0; ordinal < count; ordinal++) driver.gpus.push_back(describe(cuda, ordinal));
}

/// Parses a line like "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ...".
std::string module_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::smatch number;
  return std::regex_search(line, number, std::regex(R"(\b\d+(\.\d+)+\b)")) ? number.str() : "";
}

}  // namespace

LoadedLibrary::LoadedLibrary(const char *name) : handle(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (handle == nullptr) {
    const char *const words = dlerror();
    why_not = words != nullptr ? words : std::string(name) + " cannot be loaded";
    return;
  }
  const link_map *map = nullptr;
  file = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? real_path(map->l_name) : name;
}

std::string real_path(const char *path) {
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(path, failed);
  return failed ? path : real.string();
}

NvidiaDriver::NvidiaDriver() : module(module_version()) {
  const LoadedLibrary loaded("libcuda.so.1");
  library = loaded.file;
  why_no_library = loaded.why_not;
  if (loaded.handle == nullptr) return;
  try {
    ask(find_functions(loaded.handle), *this);
  } catch (const DriverError &failure) {
    error = failure.what();
    sees_no_gpu = failure.result == kNoDevice;
  }
}

}  // namespace mpinfo
