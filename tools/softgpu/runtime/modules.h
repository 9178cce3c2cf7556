// Modules of PTX, and the kernels and variables of the program that they hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/softgpu/program/program.h"
#include "tools/softgpu/ptx/syntax.h"
#include "tools/softgpu/runtime/api.h"
#include "tools/softgpu/runtime/device.h"

namespace softgpu::runtime {

/// The architecture that PTX was made for: code for sm_90a runs on 90 alone, other code on its own
/// and on newer ones.
struct Target {
  int arch = 0;
  bool is_specific = false;

  bool fits(int device_arch) const {
    return is_specific ? arch == device_arch : arch <= device_arch;
  }
  /// Of several that fit the highest is taken.
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

/// A module, loaded for each device when it is asked for something.  Threads may share it.
class Module {
 public:
  /// Throws ptx::Error.
  Module(std::string file, std::shared_ptr<const std::string> text);

  Target target() const { return {syntax_.target, syntax_.is_arch_specific}; }
  bool has_entry(const std::string &name) const { return syntax_.entries.contains(name); }
  bool has_global(const std::string &name) const;
  std::vector<std::string> entries() const;
  /// A kernel that the module has.  Throws ApiError if this device cannot run it, which is
  /// reported.
  Kernel &kernel(const std::string &name, int device);
  GlobalVariable global(const std::string &name, int device);
  /// Calls f for each kernel that was loaded.
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

/// Adds a module that the process keeps; null if its text cannot be read, which is reported.
Module *add_module(std::string file, std::shared_ptr<const std::string> text);
/// Calls f for each kernel that was loaded in this process.
void for_each_kernel(const std::function<void(const Kernel &)> &f);

/// The kernel of a function of the host, or of a cudaKernel_t, on the current device.  Throws
/// ApiError.
Kernel &kernel_of(const void *function);
/// The same on a device.
Kernel &kernel_of(const void *function, int device);
/// The name of a kernel.
const std::string &kernel_name(const void *function);
/// The variable on the current device for which a variable of the host stands.  Throws ApiError.
GlobalVariable variable_of(const void *symbol);

}  // namespace softgpu::runtime
