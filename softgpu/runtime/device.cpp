#include "softgpu/runtime/device.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "softgpu/options.h"
#include "softgpu/runtime/streams.h"

namespace softgpu::runtime {

namespace {

constexpr int kFirstBus = 0x17;

/// Returns the values for cudaDeviceGetAttribute, except the PCI bus.
const std::map<cudaDeviceAttr, int> &attributes() {
  const Architecture &limits = architecture();
  static const std::map<cudaDeviceAttr, int> values = {
      {cudaDevAttrComputeCapabilityMajor, options().arch / 10},
      {cudaDevAttrComputeCapabilityMinor, options().arch % 10},
      {cudaDevAttrMultiProcessorCount, options().num_sms},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMaxThreadsPerBlock, kMaxThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, static_cast<int>(kMaxBlockDim[0])},
      {cudaDevAttrMaxBlockDimY, static_cast<int>(kMaxBlockDim[1])},
      {cudaDevAttrMaxBlockDimZ, static_cast<int>(kMaxBlockDim[2])},
      {cudaDevAttrMaxGridDimX, static_cast<int>(kMaxGridDim[0])},
      {cudaDevAttrMaxGridDimY, static_cast<int>(kMaxGridDim[1])},
      {cudaDevAttrMaxGridDimZ, static_cast<int>(kMaxGridDim[2])},
      {cudaDevAttrMaxThreadsPerMultiProcessor, limits.threads_per_sm},
      {cudaDevAttrMaxBlocksPerMultiprocessor, limits.blocks_per_sm},
      {cudaDevAttrMaxRegistersPerBlock, kRegistersPerSm},
      {cudaDevAttrMaxRegistersPerMultiprocessor, kRegistersPerSm},
      {cudaDevAttrMaxSharedMemoryPerBlock, kSmemWithoutOptIn},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(options().smem_per_block)},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, limits.smem_per_sm},
      {cudaDevAttrReservedSharedMemoryPerBlock, limits.reserved_smem},
      {cudaDevAttrTotalConstantMemory, 65536},
      {cudaDevAttrL2CacheSize, limits.l2_bytes},
      {cudaDevAttrClockRate, limits.clock_khz},
      {cudaDevAttrMemoryClockRate, limits.memory_clock_khz},
      {cudaDevAttrGlobalMemoryBusWidth, limits.memory_bus_bits},
      {cudaDevAttrClusterLaunch, options().arch >= 90},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrMemoryPoolsSupported, 1},
      {cudaDevAttrAsyncEngineCount, 3},
      {cudaDevAttrComputeMode, cudaComputeModeDefault},
      {cudaDevAttrCooperativeLaunch, 0},
      {cudaDevAttrManagedMemory, 0},
      {cudaDevAttrConcurrentManagedAccess, 0},
      {cudaDevAttrPageableMemoryAccess, 0},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrEccEnabled, 1},
      {cudaDevAttrKernelExecTimeout, 0},
      {cudaDevAttrPciDomainId, 0},
      {cudaDevAttrPciDeviceId, 0},
  };
  return values;
}

int attribute_of(cudaDeviceAttr attribute, int device) {
  check_device(device);
  if (attribute == cudaDevAttrPciBusId) return kFirstBus + device;
  const auto found = attributes().find(attribute);
  if (found != attributes().end()) return found->second;
  std::fprintf(stderr, "softgpu: cudaDeviceGetAttribute: attribute %d is not supported\n",
               static_cast<int>(attribute));
  throw ApiError{cudaErrorInvalidValue};
}

cudaDeviceProp properties_of(int device) {
  check_device(device);
  const Architecture &limits = architecture();
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "softgpu %s (sm_%d)", limits.name, limits.arch);
  std::fill_n(p.uuid.bytes, sizeof p.uuid.bytes, static_cast<char>(device + 1));
  p.major = options().arch / 10;
  p.minor = options().arch % 10;
  p.totalGlobalMem = settings().memory_bytes;
  p.sharedMemPerBlock = kSmemWithoutOptIn;
  p.sharedMemPerBlockOptin = options().smem_per_block;
  p.sharedMemPerMultiprocessor = static_cast<size_t>(limits.smem_per_sm);
  p.reservedSharedMemPerBlock = static_cast<size_t>(limits.reserved_smem);
  p.regsPerBlock = p.regsPerMultiprocessor = kRegistersPerSm;
  p.warpSize = 32;
  p.maxThreadsPerBlock = kMaxThreadsPerBlock;
  p.maxThreadsPerMultiProcessor = limits.threads_per_sm;
  p.maxBlocksPerMultiProcessor = limits.blocks_per_sm;
  for (size_t i = 0; i < 3; i++) {
    p.maxThreadsDim[i] = static_cast<int>(kMaxBlockDim[i]);
    p.maxGridSize[i] = static_cast<int>(kMaxGridDim[i]);
  }
  p.multiProcessorCount = options().num_sms;
  p.l2CacheSize = limits.l2_bytes;
  p.memoryBusWidth = limits.memory_bus_bits;
  p.totalConstMem = 65536;
  p.pciBusID = kFirstBus + device;
  p.unifiedAddressing = p.canMapHostMemory = p.concurrentKernels = 1;
  p.canUseHostPointerForRegisteredMem = p.streamPrioritiesSupported = 1;
  p.memoryPoolsSupported = p.ECCEnabled = 1;
  p.asyncEngineCount = 3;
  p.clusterLaunch = options().arch >= 90;
  return p;
}

template <class Body>
cudaError_t ask(Body &&body, const char *name = __builtin_FUNCTION()) {
  return call(cudaErrorInvalidValue, body, Needs::kProcess, name);
}
template <class Value, class Get>
cudaError_t ask(Value *to, Get &&value, const char *name = __builtin_FUNCTION()) {
  return get(to, value, cudaErrorInvalidValue, Needs::kProcess, name);
}

std::atomic<uint64_t> &peers_of(int device) {
  return reachable_peers[static_cast<size_t>(device)];
}

void reset_device(int device) {
  require_no_capture();
  scheduler().wait_for_device(device);
  release_device_memory(device);
  peers_of(device) = 0;
  clear_sticky_error(device);
}

}  // namespace

}  // namespace softgpu::runtime

using namespace softgpu;
using namespace softgpu::runtime;

extern "C" {

cudaError_t cudaGetDeviceCount(int *count) {
  if (count) *count = 0;
  return call(
      cudaErrorNoDevice,
      [&] {
        require(count, cudaErrorInvalidValue);
        *count = options().num_devices;
        require(*count > 0, cudaErrorNoDevice);
      },
      Needs::kProcess);
}

cudaError_t cudaGetDevice(int *device) {
  return ask(device, current_device);
}

cudaError_t cudaSetDevice(int device) {
  return ask([&] { set_current_device(device); });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return ask([&] { check_device(device); });
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return ask([] {});
}

cudaError_t cudaDeviceReset() {
  return ask([] { reset_device(current_device()); });
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  return ask(value, [&] { return attribute_of(attribute, device); });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
  return ask(properties, [&] { return properties_of(device); });
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
  return ask([&] {
    constexpr int kSize = sizeof "0000:17:00.0";
    require(text && size >= kSize, cudaErrorInvalidValue);
    check_device(device);
    std::snprintf(text, static_cast<size_t>(size), "0000:%02x:00.0", kFirstBus + device);
  });
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  return ask(can, [&] {
    check_device(device);
    check_device(peer);
    return device != peer;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call(cudaErrorPeerAccessUnsupported, [&] {
    require(flags == 0, cudaErrorInvalidValue);
    check_device(peer);
    require(peer != current_device(), cudaErrorInvalidDevice);
    const uint64_t bit = uint64_t{1} << peer;
    require((peers_of(current_device()).fetch_or(bit) & bit) == 0,
            cudaErrorPeerAccessAlreadyEnabled);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call(cudaErrorPeerAccessNotEnabled, [&] {
    check_device(peer);
    const uint64_t bit = uint64_t{1} << peer;
    require((peers_of(current_device()).fetch_and(~bit) & bit) != 0, cudaErrorPeerAccessNotEnabled);
  });
}

cudaError_t cudaDriverGetVersion(int *version) {
  return ask(version, [] { return CUDART_VERSION; });
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  return ask(version, [] { return CUDART_VERSION; });
}

}  // extern "C"
