#include "softgpu/runtime/modules.h"

#include <algorithm>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/options.h"

namespace softgpu::runtime {

namespace {

/// Modules of the process.  Never removed, because the exit report lists their kernels.
struct Modules {
  std::mutex mutex;
  std::vector<std::unique_ptr<Module>> all;
};
Modules &modules() {
  static Modules *const the_modules = new Modules;
  return *the_modules;
}

}  // namespace

Module::Module(std::string file, std::shared_ptr<const std::string> text)
    : syntax_(ptx::parse_module(std::move(file), std::move(text))) {}

bool Module::has_global(const std::string &name) const {
  return std::ranges::find(syntax_.globals, name, &ptx::Variable::name) != syntax_.globals.end();
}

std::vector<std::string> Module::entries() const {
  std::vector<std::string> names;
  for (const auto &[name, entry] : syntax_.entries) names.push_back(name);
  return names;
}

/// Allocates and initializes the variables of the module.  Requires that the mutex is held.
Module::OnDevice &Module::on_device(int device) {
  std::unique_ptr<OnDevice> &loaded = devices_[device];
  if (loaded) return *loaded;
  loaded = std::make_unique<OnDevice>();
  for (const ptx::Variable &variable : syntax_.globals) {
    const uint64_t alignment = std::max<uint64_t>(variable.alignment, 1);
    auto memory = std::make_unique<std::byte[]>(variable.size + alignment);
    const uint64_t address =
        (reinterpret_cast<uint64_t>(memory.get()) + alignment - 1) / alignment * alignment;
    std::copy_n(variable.initial.data(), std::min(variable.initial.size(), variable.size),
                reinterpret_cast<std::byte *>(address));
    add_allocation(
        {address, variable.size, MemoryKind::kVariable, device, "the variable " + variable.name});
    loaded->globals[variable.name] = {address, variable.size};
    loaded->memory.push_back(std::move(memory));
  }
  return *loaded;
}

std::unique_ptr<Kernel> Module::load(const std::string &name, int device) {
  const auto address = [](void *context, const std::string &global) {
    const auto &globals = static_cast<OnDevice *>(context)->globals;
    const auto found = globals.find(global);
    if (found == globals.end()) throw ptx::Error("unknown variable " + global + " in the module");
    return found->second.address;
  };
  auto kernel = std::make_unique<Kernel>();
  kernel->target = target();
  kernel->program =
      compile(syntax_, syntax_.entries.find(name)->second, address, &on_device(device));
  kernel->max_dynamic_smem =
      std::max(0, kSmemWithoutOptIn - static_cast<int>(kernel->program->static_smem));
  return kernel;
}

Kernel &Module::kernel(const std::string &name, int device) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Kernel> &kernel = on_device(device).kernels[name];
  if (kernel) return *kernel;
  try {
    kernel = load(name, device);
  } catch (const ptx::Error &error) {  // unsupported PTX: a test that needs it must not pass
    violation(error.what());
    throw ApiError{cudaErrorInvalidKernelImage};
  }
  return *kernel;
}

GlobalVariable Module::global(const std::string &name, int device) {
  const std::lock_guard lock(mutex_);
  const auto &globals = on_device(device).globals;
  const auto found = globals.find(name);
  require(found != globals.end(), cudaErrorInvalidSymbol);
  return found->second;
}

void Module::for_each_kernel(const std::function<void(const Kernel &)> &f) {
  const std::lock_guard lock(mutex_);
  for (const auto &[device, loaded] : devices_)
    for (const auto &[name, kernel] : loaded->kernels)
      if (kernel) f(*kernel);
}

Module *add_module(std::string file, std::shared_ptr<const std::string> text) {
  std::unique_ptr<Module> module;
  try {
    module = std::make_unique<Module>(std::move(file), std::move(text));
  } catch (const ptx::Error &error) {
    violation(error.what());
    return nullptr;
  }
  const std::lock_guard lock(modules().mutex);
  return modules().all.emplace_back(std::move(module)).get();
}

void for_each_kernel(const std::function<void(const Kernel &)> &f) {
  const std::lock_guard lock(modules().mutex);
  for (const auto &module : modules().all) module->for_each_kernel(f);
}

// ---- attributes and occupancy of kernels

namespace {

int max_threads_of(const Program &program) {
  return program.max_threads != 0 ? static_cast<int>(program.max_threads) : kMaxThreadsPerBlock;
}

void set_attribute(Kernel &kernel, cudaFuncAttribute attribute, int value) {
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
      const int64_t total = int64_t{value} + kernel.program->static_smem;
      require(value >= 0 && total <= static_cast<int64_t>(options().smem_per_block),
              cudaErrorInvalidValue);
      kernel.max_dynamic_smem = value;
      return;
    }
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      require(options().arch >= 90, cudaErrorInvalidValue);
      kernel.allows_large_cluster = value != 0;
      return;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      require(value >= -1 && value <= 100, cudaErrorInvalidValue);
      return;
    default:
      throw ApiError{cudaErrorInvalidValue};
  }
}

/// Returns the number of blocks that fit on an SM; 0 if the configuration cannot be launched.
int blocks_per_sm(const Kernel &kernel, int threads, size_t dynamic_smem) {
  const Program &program = *kernel.program;
  const uint64_t smem = uint64_t{program.dynamic_smem_offset} + dynamic_smem;
  if (threads < 1 || threads > max_threads_of(program) || smem > options().smem_per_block) return 0;
  return softgpu::blocks_per_sm(program, threads, smem);
}

}  // namespace

}  // namespace softgpu::runtime

using namespace softgpu;
using namespace softgpu::runtime;

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
  return call(cudaErrorInvalidDeviceFunction, [&] {
    require(attributes, cudaErrorInvalidValue);
    const Kernel &kernel = kernel_of(function);
    const Program &program = *kernel.program;
    *attributes = {};
    attributes->sharedSizeBytes = program.static_smem;
    attributes->localSizeBytes = program.local_bytes;
    attributes->maxThreadsPerBlock = max_threads_of(program);
    attributes->numRegs = register_bound(program);
    attributes->ptxVersion = kernel.target.arch;
    attributes->binaryVersion = options().arch;
    attributes->maxDynamicSharedSizeBytes = kernel.max_dynamic_smem;
    attributes->requiredClusterWidth = static_cast<int>(program.required_cluster[0]);
    attributes->requiredClusterHeight = static_cast<int>(program.required_cluster[1]);
    attributes->requiredClusterDepth = static_cast<int>(program.required_cluster[2]);
    attributes->clusterDimMustBeSet = program.explicit_cluster;
    attributes->nonPortableClusterSizeAllowed = kernel.allows_large_cluster;
  });
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
  return call(cudaErrorInvalidValue, [&] { set_attribute(kernel_of(function), attribute, value); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t dynamic_smem) {
  return get(blocks, [&] { return blocks_per_sm(kernel_of(function), threads, dynamic_smem); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *function,
                                                                   int threads, size_t dynamic_smem,
                                                                   unsigned) {
  return get(blocks, [&] { return blocks_per_sm(kernel_of(function), threads, dynamic_smem); });
}

}  // extern "C"
