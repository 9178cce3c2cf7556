// PTX modules with the kernels and variables of the program.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "softgpu/program/program.h"
#include "softgpu/ptx/syntax.h"
#include "softgpu/runtime/api.h"
#include "softgpu/runtime/device.h"

namespace softgpu::runtime {

/// Architecture for which PTX was compiled.  sm_90a code runs only on 90; other code also runs on
/// newer architectures.
struct Target {
  int arch = 0;
  bool is_specific = false;

  bool fits(int device_arch) const {
    return is_specific ? arch == device_arch : arch <= device_arch;
  }
  /// The highest target that fits is selected.
  auto operator<=>(const Target &) const = default;
};

/// A kernel on one device.
struct Kernel {
  std::unique_ptr<Program> program;
  Target target;
  std::atomic<int> max_dynamic_smem = 0;  ///< cudaFuncAttributeMaxDynamicSharedMemorySize
  /// cudaFuncAttributeNonPortableClusterSizeAllowed
  std::atomic<bool> allows_large_cluster = false;
};

struct GlobalVariable {
  uint64_t address, bytes;
};

/// A module, loaded for each device at first use.  Thread-safe.
class Module {
 public:
  /// Throws ptx::Error.
  Module(std::string file, std::shared_ptr<const std::string> text);

  Target target() const { return {syntax_.target, syntax_.is_arch_specific}; }
  bool has_entry(const std::string &name) const { return syntax_.entries.contains(name); }
  bool has_global(const std::string &name) const;
  std::vector<std::string> entries() const;
  /// Returns a kernel of the module.  Throws ApiError, and reports the reason, if the device cannot
  /// run it.
  Kernel &kernel(const std::string &name, int device);
  GlobalVariable global(const std::string &name, int device);
  /// Calls f for each loaded kernel.
  void for_each_kernel(const std::function<void(const Kernel &)> &f);

 private:
  struct OnDevice {
    std::map<std::string, GlobalVariable> globals;
    std::vector<std::unique_ptr<std::byte[]>> memory;
    std::map<std::string, std::unique_ptr<Kernel>> kernels;
  };
  OnDevice &on_device(int device);
  std::unique_ptr<Kernel> load(const std::string &name, int device);

  std::mutex mutex_;
  ptx::Module syntax_;
  std::map<int, std::unique_ptr<OnDevice>> devices_;
};

/// Adds a module for the lifetime of the process.  Returns null, and reports the reason, if its
/// text cannot be parsed.
Module *add_module(std::string file, std::shared_ptr<const std::string> text);
/// Calls f for each kernel that this process has loaded.
void for_each_kernel(const std::function<void(const Kernel &)> &f);

/// Returns the kernel of a host function or of a cudaKernel_t on the current device.  Throws
/// ApiError.
Kernel &kernel_of(const void *function);
/// Returns the device variable, on the current device, of a host symbol.  Throws ApiError.
GlobalVariable variable_of(const void *symbol);

}  // namespace softgpu::runtime
