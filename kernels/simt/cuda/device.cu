// CUDA devices and their memory.  The CUDA runtime is linked statically, so the library also loads
// without a driver; each call below then reports an error.
#include "kernels/simt/device.h"

#include <cstring>
#include <optional>

#include "kernels/simt/simt.h"
#include "kernels/simt/tensor_map.h"

namespace mp::cuda {

namespace {

struct Nothing {};
[[maybe_unused]] constexpr int kSm90aThreads = 64, kSm90Threads = 96, kOtherThreads = 32;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int kProbeThreads = kOtherThreads;
#else
constexpr int kProbeThreads = MP_SM90A_CODE ? kSm90aThreads : kSm90Threads;
#endif
/// Kernel whose launch bounds identify the PTX of the loaded code.  The wgmma kernels have empty
/// bodies in a build without sm_90a, or if the driver is configured to compile PTX.
MP_KERNEL(kProbeThreads, 1)
probe(MP_PARAM(Nothing)) {}

/// Returns the attributes of probe(), or nullopt if this build has no code for the device.
/// @throws TargetError if the device has failed before: such an error persists after it is read
std::optional<cudaFuncAttributes> probed(int ordinal) {
  const DeviceScope scope(ordinal);
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, probe);
  cudaGetLastError();
  check_cuda(cudaGetLastError(), "cudaFuncGetAttributes");
  if (error != cudaSuccess) return std::nullopt;
  return attributes;
}

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, which, ordinal), "cudaDeviceGetAttribute");
  return value;
}

/// Limits a device to the features of code for an older architecture.  Kernels that need more have
/// empty bodies in that code.  From sm_80 on, only has_wgmma and has_pdl differ.
void limit_to_code(Device &device, int code_arch) {
  if (code_arch >= 80 || code_arch >= device.arch) return;
  device.arch = code_arch;
  const int64_t most = (code_arch < 75 ? 96 : 64) * 1024;  // wmma::supported
  device.smem_per_block = min_of(device.smem_per_block, most);
}

}  // namespace

int device_count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();  // clears the error: a missing driver is a valid result
  return error == cudaSuccess ? count : 0;
}

std::string why_no_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaSuccess && count > 0) return "";
  const cudaError_t reason = error == cudaSuccess ? cudaErrorNoDevice : error;
  return std::string(cudaGetErrorName(reason)) + ", " + cudaGetErrorString(reason);
}

int current_device() {
  int ordinal = 0;
  check_cuda(cudaGetDevice(&ordinal), "cudaGetDevice");
  return ordinal;
}

bool has_code_for(int ordinal) {
  return probed(ordinal).has_value();
}

Device describe(int ordinal) {
  Device device{};
  device.target = kTargetKind;
  device.ordinal = ordinal;
  device.arch = 10 * attribute(cudaDevAttrComputeCapabilityMajor, ordinal) +
                attribute(cudaDevAttrComputeCapabilityMinor, ordinal);
  device.num_sms = attribute(cudaDevAttrMultiProcessorCount, ordinal);
  device.smem_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal);
  device.l2_bytes = attribute(cudaDevAttrL2CacheSize, ordinal);
  const std::optional<cudaFuncAttributes> code = probed(ordinal);
  device.has_wgmma = code && code->maxThreadsPerBlock == kSm90aThreads;
  device.has_pdl = code && code->maxThreadsPerBlock != kOtherThreads;
  device.has_overlapping_maps = device.has_wgmma && encodes_overlapping_maps(ordinal);
  cudaDeviceProp properties;
  check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  std::string(properties.name).copy(device.name, sizeof device.name - 1);
  if (code) limit_to_code(device, code->ptxVersion);
  return device;
}

void *allocate(const Device &device, size_t bytes) {
  const DeviceScope scope(device.ordinal);
  void *ptr = nullptr;
  const cudaError_t error = cudaMalloc(&ptr, bytes);
  if (error != cudaSuccess) cudaGetLastError();
  check_cuda(error, "cudaMalloc");
  return ptr;
}
void release(const Device &device, void *ptr) {
  const DeviceScope scope(device.ordinal);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // cudaFree does, but need not
  check_cuda(cudaFree(ptr), "cudaFree");
}
MappedMemory allocate_mapped(const Device &device, size_t bytes) {
  const DeviceScope scope(device.ordinal);
  MappedMemory memory{};
  const cudaError_t error = cudaHostAlloc(&memory.host, bytes, cudaHostAllocMapped);
  if (error != cudaSuccess) cudaGetLastError();
  check_cuda(error, "cudaHostAlloc");
  std::memset(memory.host, 0, bytes);
  const cudaError_t mapped = cudaHostGetDevicePointer(&memory.device, memory.host, 0);
  if (mapped != cudaSuccess) cudaFreeHost(memory.host);
  check_cuda(mapped, "cudaHostGetDevicePointer");
  return memory;
}
void release_mapped(const Device &device, const MappedMemory &memory) {
  const DeviceScope scope(device.ordinal);
  check_cuda(cudaFreeHost(memory.host), "cudaFreeHost");
}
void copy(const Device &device, void *dst, const void *src, size_t bytes, mp_stream_t stream) {
  const DeviceScope scope(device.ordinal);
  check_cuda(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}
void fill(const Device &device, void *dst, int byte, size_t bytes, mp_stream_t stream) {
  const DeviceScope scope(device.ordinal);
  check_cuda(cudaMemsetAsync(dst, byte, bytes, stream), "cudaMemsetAsync");
}
void synchronize(const Device &device, mp_stream_t stream) {
  const DeviceScope scope(device.ordinal);
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}
void release_idle() {}

}  // namespace mp::cuda
