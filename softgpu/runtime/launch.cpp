// Kernel launches and their limits.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "softgpu/machine/block.h"
#include "softgpu/machine/faults.h"
#include "softgpu/options.h"
#include "softgpu/runtime/device.h"
#include "softgpu/runtime/modules.h"
#include "softgpu/runtime/streams.h"

namespace softgpu::runtime {

namespace {

constexpr uint32_t kMaxCluster = 8, kMaxLargeCluster = 16;

/// Parameters of a launch; a graph launches with the same parameters repeatedly.
struct Launch : Grid {
  bool has_cluster = false, begins_early = false;
  std::vector<std::byte> arguments;
};

Dim3 dim3_of(const dim3 &d) {
  return {d.x, d.y, d.z};
}

/// Prints the reason and throws the error.
[[noreturn]] void reject(const Launch &launch, cudaError_t error, const std::string &why) {
  std::fprintf(stderr, "softgpu: launch of %s: %s\n", launch.program->pretty_name.c_str(),
               why.c_str());
  throw ApiError{error};
}

void read_attributes(Launch &launch, const cudaLaunchConfig_t &config) {
  require(config.attrs || config.numAttrs == 0, cudaErrorInvalidValue);
  for (unsigned i = 0; i < config.numAttrs; i++) {
    const cudaLaunchAttribute &attribute = config.attrs[i];
    switch (attribute.id) {
      case cudaLaunchAttributeIgnore:
        break;
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        launch.begins_early =
            attribute.val.programmaticStreamSerializationAllowed != 0 && options().arch >= 90;
        break;
      case cudaLaunchAttributeClusterDimension:
        launch.has_cluster = true;
        launch.cluster = {attribute.val.clusterDim.x, attribute.val.clusterDim.y,
                          attribute.val.clusterDim.z};
        break;
      default:
        reject(launch, cudaErrorNotSupported,
               format("launch attribute %d is not supported", static_cast<int>(attribute.id)));
    }
  }
}

void check_dimensions(const Launch &launch) {
  const auto fits = [](const Dim3 &d, const uint32_t(&most)[3]) {
    for (size_t i = 0; i < 3; i++)
      if (d[i] == 0 || d[i] > most[i]) return false;
    return true;
  };
  const Dim3 &b = launch.num_blocks, &t = launch.num_threads;
  const uint32_t max_threads = launch.program->max_threads;
  if (!fits(b, kMaxGridDim) || !fits(t, kMaxBlockDim) || volume(t) > kMaxThreadsPerBlock ||
      (max_threads != 0 && volume(t) > max_threads))
    reject(launch, cudaErrorInvalidConfiguration,
           format("%ux%ux%u blocks of %ux%ux%u threads, allowed %u", b[0], b[1], b[2], t[0], t[1],
                  t[2], max_threads ? max_threads : kMaxThreadsPerBlock));
  const Dim3 &required = launch.program->required_block;
  if (volume(required) != 0 && t != required)
    reject(launch, cudaErrorInvalidConfiguration,
           format("blocks of %ux%ux%u threads, required %ux%ux%u", t[0], t[1], t[2], required[0],
                  required[1], required[2]));
}

void check_smem(const Launch &launch, const Kernel &kernel) {
  const uint64_t total = uint64_t{launch.program->dynamic_smem_offset} + launch.dynamic_smem;
  if (launch.dynamic_smem > static_cast<uint64_t>(kernel.max_dynamic_smem) ||
      total > options().smem_per_block)
    reject(launch, cudaErrorInvalidValue,
           format("%u bytes of dynamic shared memory at offset %u, allowed %d", launch.dynamic_smem,
                  launch.program->dynamic_smem_offset, kernel.max_dynamic_smem.load()));
}

void check_cluster(Launch &launch, const Kernel &kernel) {
  const Program &program = *launch.program;
  const bool is_required = volume(program.required_cluster) != 0;
  if (is_required && !launch.has_cluster) launch.cluster = program.required_cluster;
  if (program.explicit_cluster && !is_required && !launch.has_cluster)
    reject(launch, cudaErrorInvalidClusterSize, "a cluster size is required");
  const Dim3 &c = launch.cluster;
  const uint64_t size = volume(c);
  const bool is_other = is_required && c != program.required_cluster;
  if (size == 1 && !is_other) return;
  if (options().arch < 90) reject(launch, cudaErrorInvalidValue, "clusters require sm_90");
  const bool divides = size != 0 && launch.num_blocks[0] % c[0] == 0 &&
                       launch.num_blocks[1] % c[1] == 0 && launch.num_blocks[2] % c[2] == 0;
  uint32_t most = kernel.allows_large_cluster ? kMaxLargeCluster : kMaxCluster;
  if (program.max_cluster != 0) most = std::min(most, program.max_cluster);
  if (!divides || size > most || is_other)
    reject(launch, cudaErrorInvalidClusterSize,
           format("clusters of %ux%ux%u in a grid of %ux%ux%u", c[0], c[1], c[2],
                  launch.num_blocks[0], launch.num_blocks[1], launch.num_blocks[2]));
}

std::vector<std::byte> copy_arguments(const Program &program, void **arguments) {
  std::vector<std::byte> copy(program.parameter_bytes);
  require(arguments || program.parameters.empty(), cudaErrorInvalidValue);
  for (size_t i = 0; i < program.parameters.size(); i++) {
    require(arguments[i], cudaErrorInvalidValue);
    std::memcpy(copy.data() + program.parameters[i].offset, arguments[i],
                program.parameters[i].size);
  }
  return copy;
}

void trace(const Launch &l) {
  std::fprintf(stderr, "softgpu: launch %s grid %ux%ux%u block %ux%ux%u cluster %ux%ux%u smem %u\n",
               l.program->pretty_name.c_str(), l.num_blocks[0], l.num_blocks[1], l.num_blocks[2],
               l.num_threads[0], l.num_threads[1], l.num_threads[2], l.cluster[0], l.cluster[1],
               l.cluster[2], l.dynamic_smem);
}

/// Creates the grid when the kernel begins; null if the launch is invalid.
std::unique_ptr<Grid> make_grid(const Launch &launch) {
  const cudaError_t injected = injected_error("launch", cudaErrorLaunchFailure);
  if (injected != cudaSuccess) {
    stop_device(launch.device, injected);
    return nullptr;
  }
  if (options().traces) trace(launch);
  auto grid = std::make_unique<Grid>(launch);
  grid->allocate_parameters(launch.arguments.size());
  std::copy(launch.arguments.begin(), launch.arguments.end(), grid->parameters);
  return grid;
}

void check_stream(cudaStream_t handle) {
  const std::lock_guard lock(streams_mutex());
  require(stream_of(handle).device == current_device(), cudaErrorInvalidResourceHandle);
}

void launch(const cudaLaunchConfig_t &config, const void *function, void **arguments) {
  const Kernel &kernel = kernel_of(function);
  auto launch = std::make_shared<Launch>();
  launch->program = kernel.program.get();
  launch->num_blocks = dim3_of(config.gridDim);
  launch->num_threads = dim3_of(config.blockDim);
  launch->device = current_device();
  require(config.dynamicSmemBytes <= INT32_MAX, cudaErrorInvalidValue);
  launch->dynamic_smem = static_cast<uint32_t>(config.dynamicSmemBytes);
  read_attributes(*launch, config);
  check_dimensions(*launch);
  check_smem(*launch, kernel);
  check_cluster(*launch, kernel);
  check_stream(config.stream);
  launch->arguments = copy_arguments(*launch->program, arguments);
  enqueue(config.stream, {.make_grid = [launch] { return make_grid(*launch); },
                          .begins_early = launch->begins_early});
}

cudaLaunchConfig_t config_of(const dim3 &grid, const dim3 &block, size_t smem,
                             cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  return config;
}

/// Launch configurations from <<< >>>, until the kernel's stub pops them.
thread_local std::vector<cudaLaunchConfig_t> pushed;

}  // namespace

}  // namespace softgpu::runtime

using namespace softgpu::runtime;

// Declared in crt/device_functions.h and crt/host_runtime.h of the CUDA toolkit, with underscores.
#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
  return call(cudaErrorLaunchOutOfResources, [&] {
    require(config, cudaErrorInvalidValue);
    launch(*config, function, arguments);
  });
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t smem, cudaStream_t stream) {
  return call(cudaErrorLaunchOutOfResources,
              [&] { launch(config_of(grid, block, smem, stream), function, arguments); });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t smem, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, smem, stream);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t smem, CUstream_st *stream) {
  pushed.push_back(config_of(grid, block, smem, stream));
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *smem, void *stream) {
  if (pushed.empty()) return end_call(cudaErrorMissingConfiguration);
  const cudaLaunchConfig_t config = pushed.back();
  pushed.pop_back();
  *grid = config.gridDim;
  *block = config.blockDim;
  *smem = config.dynamicSmemBytes;
  *static_cast<cudaStream_t *>(stream) = config.stream;
  return cudaSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
