// Registration of kernels and variables: the calls that nvcc generates in every object file, and
// libraries that the program loads itself.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <unordered_map>
#include <utility>

#include "softgpu/options.h"
#include "softgpu/runtime/modules.h"
#include "softgpu/runtime/ptx_files.h"

namespace softgpu::runtime {

namespace {

using FatBinary = std::vector<FatImage>;

/// Name of a kernel or variable in the module of a fat binary, a PTX file or a library.
struct Named {
  std::string name;
  FatBinary *binary = nullptr;
  Module *module = nullptr;  ///< set when the name is resolved
};

struct Library {
  Module *module;
  std::vector<std::unique_ptr<Named>> kernels;
};

struct Registry {
  std::recursive_mutex mutex;
  PtxFiles files;
  /// Keys: addresses of host functions, and of Named objects (cudaKernel_t handles).
  std::unordered_map<const void *, Named *> kernels;
  std::unordered_map<const void *, Named *> variables;
  std::unordered_map<cudaLibrary_t, std::unique_ptr<Library>> libraries;
  /// Fat binaries of the program.  Never removed: the program may end while work is running.
  std::deque<FatBinary> binaries;
  std::vector<std::unique_ptr<Named>> names;
};
Registry &registry() {
  static Registry *const the_registry = new Registry;
  return *the_registry;
}

/// Returns the architectures that fit the device and SOFTGPU_CODE, in descending order.
std::vector<Target> fitting_targets(const FatBinary &binary) {
  std::vector<Target> targets = registry().files.targets();
  for (const FatImage &image : binary) targets.push_back(image.target);
  std::erase_if(targets, [](const Target &t) {
    return !t.fits(options().arch) || t.arch > settings().newest_code;
  });
  std::ranges::sort(targets, std::greater());
  targets.erase(std::ranges::unique(targets).begin(), targets.end());
  return targets;
}

/// Returns the module that defines a name for this device, or null.
/// @param has    returns whether a module has the name
/// @param files  lookup in the PTX files
Module *find_module(FatBinary &binary, const std::string &name,
                    bool (Module::*has)(const std::string &) const,
                    Module *(PtxFiles::*files)(const Target &, const std::string &)) {
  for (const Target &target : fitting_targets(binary)) {
    // Prefer the file if the same PTX is in both places: messages can then refer to its lines.
    if (Module *const module = (registry().files.*files)(target, name)) return module;
    for (FatImage &image : binary) {
      if (image.target != target) continue;
      Module *const module = image.module();
      if (module && (module->*has)(name)) return module;
    }
  }
  return nullptr;
}

void tell_missing(const std::string &kernel) {
  static bool is_told = false;
  if (std::exchange(is_told, true)) return;
  std::fprintf(stderr,
               "softgpu: no PTX of %s fits sm_%d, neither in the program nor in the folders of "
               "SOFTGPU_PTX\n",
               kernel.c_str(), options().arch);
}

/// Requires that the mutex is held.
Named &named_kernel(const void *function) {
  const auto found = registry().kernels.find(function);
  require(found != registry().kernels.end(), cudaErrorInvalidDeviceFunction);
  return *found->second;
}

Named *add_name(Named name) {
  return registry().names.emplace_back(std::make_unique<Named>(std::move(name))).get();
}

Library &library_of(cudaLibrary_t handle) {
  const auto found = registry().libraries.find(handle);
  require(found != registry().libraries.end(), cudaErrorInvalidResourceHandle);
  return *found->second;
}

cudaLibrary_t load_library(std::string text) {
  Module *const module =
      add_module("a library", std::make_shared<const std::string>(std::move(text)));
  require(module, cudaErrorInvalidPtx);
  const std::lock_guard lock(registry().mutex);
  auto library = std::make_unique<Library>(Library{module, {}});
  const auto handle = reinterpret_cast<cudaLibrary_t>(library.get());
  registry().libraries.emplace(handle, std::move(library));
  return handle;
}

void unload_library(cudaLibrary_t handle) {
  const std::lock_guard lock(registry().mutex);
  for (const auto &kernel : library_of(handle).kernels) registry().kernels.erase(kernel.get());
  registry().libraries.erase(handle);
}

cudaKernel_t library_kernel(cudaLibrary_t handle, const char *name) {
  const std::lock_guard lock(registry().mutex);
  Library &library = library_of(handle);
  require(library.module->has_entry(name), cudaErrorSymbolNotFound);
  require(library.module->target().fits(options().arch), cudaErrorNoKernelImageForDevice);
  const auto found =
      std::ranges::find_if(library.kernels, [&](const auto &k) { return k->name == name; });
  if (found != library.kernels.end()) return reinterpret_cast<cudaKernel_t>(found->get());
  Named *const named = library.kernels.emplace_back(new Named{name, nullptr, library.module}).get();
  registry().kernels[named] = named;
  return reinterpret_cast<cudaKernel_t>(named);
}

GlobalVariable library_global(cudaLibrary_t handle, const char *name) {
  const std::lock_guard lock(registry().mutex);
  Module &module = *library_of(handle).module;
  require(module.has_global(name), cudaErrorSymbolNotFound);
  return module.global(name, current_device());
}

}  // namespace

Kernel &kernel_of(const void *function) {
  const std::lock_guard lock(registry().mutex);
  Named &named = named_kernel(function);
  if (!named.module)
    named.module =
        find_module(*named.binary, named.name, &Module::has_entry, &PtxFiles::find_entry);
  if (!named.module) {
    tell_missing(named.name);
    throw ApiError{cudaErrorNoKernelImageForDevice};
  }
  return named.module->kernel(named.name, current_device());
}

GlobalVariable variable_of(const void *symbol) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().variables.find(symbol);
  require(found != registry().variables.end(), cudaErrorInvalidSymbol);
  Named &named = *found->second;
  if (!named.module)
    named.module =
        find_module(*named.binary, named.name, &Module::has_global, &PtxFiles::find_global);
  require(named.module != nullptr, cudaErrorNoKernelImageForDevice);
  return named.module->global(named.name, current_device());
}

}  // namespace softgpu::runtime

using namespace softgpu::runtime;

// Declared in crt/host_runtime.h of the CUDA toolkit.
#pragma GCC visibility push(default)
extern "C" {

void **__cudaRegisterFatBinary(void *wrapper) {
  struct Wrapper {
    int magic, version;
    const void *data;
    void *more;
  };
  const std::lock_guard lock(registry().mutex);
  return reinterpret_cast<void **>(
      &registry().binaries.emplace_back(images_of(static_cast<const Wrapper *>(wrapper)->data)));
}

void __cudaRegisterFatBinaryEnd(void **) {}

void __cudaUnregisterFatBinary(void **) {}

char __cudaInitModule(void **) {
  return 1;
}

void __cudaRegisterFunction(void **binary, const char *function, char *, const char *name, int,
                            uint3 *, uint3 *, dim3 *, dim3 *, int *) {
  const std::lock_guard lock(registry().mutex);
  Named *const named = add_name({name, reinterpret_cast<FatBinary *>(binary)});
  registry().kernels[function] = named;
  registry().kernels[named] = named;
}

void __cudaRegisterVar(void **binary, char *variable, char *, const char *name, int, size_t, int,
                       int) {
  const std::lock_guard lock(registry().mutex);
  registry().variables[variable] = add_name({name, reinterpret_cast<FatBinary *>(binary)});
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  const auto value = [&] {
    const std::lock_guard lock(registry().mutex);
    return reinterpret_cast<cudaKernel_t>(&named_kernel(function));
  };
  return get(kernel, value, cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  return cudaGetKernel(kernel, function);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
  const auto value = [&] { return reinterpret_cast<void *>(variable_of(symbol).address); };
  return get(address, value, cudaErrorInvalidSymbol);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
  return get(
      bytes, [&] { return variable_of(symbol).bytes; }, cudaErrorInvalidSymbol);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **,
                                unsigned, cudaLibraryOption *, void **, unsigned) {
  return call(cudaErrorInvalidPtx, [&] {
    require(library && code, cudaErrorInvalidValue);
    *library = load_library(static_cast<const char *>(code));
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return call(cudaErrorInvalidResourceHandle, [&] { unload_library(library); });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
  return call(cudaErrorSymbolNotFound, [&] {
    require(kernel && name, cudaErrorInvalidValue);
    *kernel = library_kernel(library, name);
  });
}

cudaError_t cudaLibraryGetGlobal(void **address, size_t *bytes, cudaLibrary_t library,
                                 const char *name) {
  return call(cudaErrorSymbolNotFound, [&] {
    require(name, cudaErrorInvalidValue);
    const GlobalVariable variable = library_global(library, name);
    if (address) *address = reinterpret_cast<void *>(variable.address);
    if (bytes) *bytes = variable.bytes;
  });
}

}  // extern "C"
#pragma GCC visibility pop
