// Device API of all kernels: indices, barriers, shuffles, atomics, shared memory, launch.
//
// Every function has one signature and two bodies: CUDA built-ins on the device, calls of the
// simulator (host/engine.h) on the host.  Blocks and grids are one-dimensional.  Collectives are
// called by all threads of the block or all lanes of the warp, converged.
//
//   MP_SHARED(T, name, [n][m])   a __shared__ variable (uninitialized; NaN on the host)
//   MP_DYN_SHARED(T, name)       the dynamic shared memory; the launch specifies its size
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"
#include "kernels/simt/half.h"

#if MP_ON_CUDA
#include <cuda_runtime.h>
#else
#include <cmath>
#include <cstring>
#include <utility>

#include "host/engine.h"
#endif

namespace mp::MP_TARGET {

constexpr int kWarpSize = 32;

template <class T>
MP_HD constexpr T min_of(T a, T b) {
  return b < a ? b : a;
}
template <class T>
MP_HD constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}
/// Maximum that ignores NaN (IEEE 754-2019, maximumNumber).  On the host `a` must not be NaN.
MP_HD float max_number(float a, float b) {
#if MP_ON_CUDA
  return fmaxf(a, b);
#else
  return a < b ? b : a;
#endif
}
template <class T>
MP_HD constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

/// Returns x limited to [0, most].
MP_HD int clamp_to_int(int64_t x, int64_t most) {
  return static_cast<int>(max_of<int64_t>(min_of(x, most), 0));
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Calls f(i, j, ...) for all combinations of indices below kCount and kCounts, the last index
/// fastest.  The loops are unrolled on the device.  Loops that end early use MP_UNROLL, as do those
/// whose PTX would change.
template <int kCount, int... kCounts, class F>
[[gnu::always_inline]] MP_DEVICE void unroll(const F &f) {
  MP_UNROLL
  for (int i = 0; i < kCount; i++) {
    if constexpr (sizeof...(kCounts) == 0)
      f(i);
    else
      unroll<kCounts...>([&](auto... rest) { f(i, rest...); });
  }
}

#if MP_ON_CUDA

// ---- indices
MP_DEVICE int thread_index() {
  return static_cast<int>(threadIdx.x);
}
MP_DEVICE int lane_index() {
  return static_cast<int>(threadIdx.x % kWarpSize);
}
MP_DEVICE int warp_index() {
  return static_cast<int>(threadIdx.x / kWarpSize);
}
MP_DEVICE int64_t block_index() {
  return blockIdx.x;
}
MP_DEVICE int64_t grid_size() {
  return gridDim.x;
}

// ---- barriers: writes before one are visible to the block (warp) after it
MP_DEVICE void block_sync() {
  __syncthreads();
}
MP_DEVICE void warp_sync() {
  __syncwarp();
}
/// Makes this thread's earlier writes visible to the device before its later ones.
MP_DEVICE void device_fence() {
  __threadfence();
}

/// Returns `address`, known to the compiler to be in gmem (or NULL): accesses become ld.global and
/// st.global instead of generic ones.
template <class T>
MP_DEVICE T *in_gmem(T *address) {
  size_t global;
  asm("cvta.to.global.u64 %0, %1;" : "=l"(global) : "l"(address));
  return static_cast<T *>(__cvta_global_to_generic(global));
}

/// Prefetches the 128-byte line at `address` in gmem into L2.
MP_DEVICE void prefetch_l2(const void *address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(address)));
}

/// Returns x, computed here and kept in a register.  Otherwise the compiler may recompute values
/// that derive from arguments and the thread index in each iteration of a loop.
MP_DEVICE int pin_to_register(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
MP_DEVICE int64_t pin_to_register(int64_t x) {
  asm volatile("" : "+l"(x));
  return x;
}

// ---- warp shuffles
template <class T>
MP_DEVICE T shuffle_xor(T value, int lane_mask) {
  return __shfl_xor_sync(~0u, value, lane_mask);
}
template <class T>
MP_DEVICE T shuffle(T value, int source_lane) {
  return __shfl_sync(~0u, value, source_lane);
}

// ---- relaxed atomics in gmem
MP_DEVICE uint32_t atomic_max(uint32_t *address, uint32_t value) {
  return atomicMax(address, value);
}
MP_DEVICE void atomic_add(int64_t *address, int64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long *>(address),
            static_cast<unsigned long long>(value));
}
/// Increments up to `limit`, then wraps to 0; returns the previous value.
MP_DEVICE uint32_t atomic_wrap_inc(uint32_t *address, uint32_t limit) {
  return atomicInc(address, limit);
}

// ---- programmatic dependent launch (PDL)
/// Waits until the previous kernels of the stream have completed.  In a kernel launched with
/// uses_pdl, every thread must call it before it accesses gmem: until it returns, previous kernels
/// may still write its inputs and read its outputs.  The next kernel, if it uses PDL too, may be
/// launched as soon as all blocks have made this call.
#if !MP_UP_TO_SM80  // defined by kernels/cuda.mk
MP_DEVICE void wait_for_previous_kernel() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}
#endif

// ---- notification of the CPU through mapped memory (allocate_mapped)
/// Release store at system scope: a CPU thread that reads `value` with acquire order also sees
/// everything that this thread wrote or observed before.
MP_DEVICE void store_release_system(uint64_t *address, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
               "l"(value)
               : "memory");
}

#define MP_SHARED(T, name, extent) __shared__ T name extent
#define MP_DYN_SHARED(T, name)                                    \
  extern __shared__ __align__(1024) unsigned char dynamic_smem[]; \
  T *const name = reinterpret_cast<T *>(dynamic_smem)

inline void check_cuda(cudaError_t error, const char *what) {
  if (error == cudaSuccess) return;
  const bool memory = error == cudaErrorMemoryAllocation;
  throw_target_error(memory ? MP_ERROR_OUT_OF_MEMORY : MP_ERROR_CUDA, "%s failed: %s, %s", what,
                     cudaGetErrorName(error), cudaGetErrorString(error));
}

/// Makes `ordinal` the current device for a scope; the caller's current device may be another.
class DeviceScope {
 public:
  explicit DeviceScope(int ordinal) {
    check_cuda(cudaGetDevice(&previous_), "cudaGetDevice");
    changed_ = previous_ != ordinal;
    if (changed_) check_cuda(cudaSetDevice(ordinal), "cudaSetDevice");
  }
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;
  ~DeviceScope() {
    if (changed_) cudaSetDevice(previous_);
  }

 private:
  int previous_ = 0;
  bool changed_ = false;
};

#else

MP_DEVICE int thread_index() {
  return engine::this_thread().index;
}
MP_DEVICE int lane_index() {
  return engine::this_thread().lane;
}
MP_DEVICE int warp_index() {
  return engine::this_thread().warp->index;
}
MP_DEVICE int64_t block_index() {
  return engine::this_thread().block->index;
}
MP_DEVICE int64_t grid_size() {
  return engine::this_thread().block->grid_size;
}

MP_DEVICE void block_sync(source_location where = source_location::current()) {
  engine::block_barrier(engine::this_thread(), where);
}
MP_DEVICE void warp_sync(source_location where = source_location::current()) {
  engine::warp_collective(engine::this_thread(), "warp_sync", nullptr, where);
}
MP_DEVICE void device_fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
template <class T>
MP_DEVICE T *in_gmem(T *address) {
  return address;
}
MP_DEVICE void prefetch_l2(const void *) {}

template <class T>
T shuffle(T value, int source_lane, source_location where = source_location::current()) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  engine::Thread &thread = engine::this_thread();
  const int lane = thread.lane;
  engine::Warp &warp = *thread.warp;
  std::memcpy(&warp.value[lane], &value, sizeof value);
  warp.source[lane] = static_cast<uint8_t>(source_lane % kWarpSize);
  const auto exchange = [](engine::Warp &w) {
    for (int i = 0; i < kWarpSize; i++) w.result[i] = w.value[w.source[i]];
  };
  engine::warp_collective(thread, "shuffle", exchange, where);
  std::memcpy(&value, &warp.result[lane], sizeof value);
  return value;
}
template <class T>
T shuffle_xor(T value, int lane_mask, source_location where = source_location::current()) {
  return host::shuffle(value, lane_index() ^ lane_mask, where);  // qualified: not std::shuffle
}

template <class T>
T pin_to_register(T x) {
  return x;
}

MP_DEVICE uint32_t atomic_max(uint32_t *address, uint32_t value) {
  uint32_t seen = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(address, &seen, value, true, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST)) {
  }
  return seen;
}
MP_DEVICE void atomic_add(int64_t *address, int64_t value) {
  __atomic_fetch_add(address, value, __ATOMIC_SEQ_CST);
}
MP_DEVICE uint32_t atomic_wrap_inc(uint32_t *address, uint32_t limit) {
  uint32_t seen = __atomic_load_n(address, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(address, &seen, seen >= limit ? 0 : seen + 1, true,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return seen;
}

MP_DEVICE void wait_for_previous_kernel() {}

MP_DEVICE void store_release_system(uint64_t *address, uint64_t value) {
  __atomic_store_n(address, value, __ATOMIC_RELEASE);
}

#define MP_SHARED(T, name, extent)                                                     \
  using name##_type = T extent;                                                        \
  static constexpr char name##_key = 0;                                                \
  name##_type &name = *static_cast<name##_type *>(::mp::host::engine::shared_variable( \
      &name##_key, #name, sizeof(name##_type), alignof(name##_type)))
#define MP_DYN_SHARED(T, name) \
  T *const name = reinterpret_cast<T *>(::mp::host::engine::this_thread().block->dynamic_smem)

#endif

/// Sets *flag to 1.  Concurrent calls are safe: all threads write the same value.
MP_DEVICE void raise_flag(float *flag) {
#if MP_ON_CUDA
  *static_cast<volatile float *>(flag) = 1.0f;
#else
  float one = 1.0f;
  __atomic_store(flag, &one, __ATOMIC_RELAXED);
#endif
}

// ---------------------------------------------------------------------------- launch

struct LaunchShape {
  int64_t num_blocks;
  int num_threads;  ///< per block; a multiple of 32
  size_t smem_bytes = 0;
  int cluster = 1;  ///< blocks per cluster (sm90_barrier.h); divides num_blocks
  /// Programmatic dependent launch: the kernel may start before the previous kernels of the stream
  /// have ended, which hides its first steps.  All its threads must call
  /// wait_for_previous_kernel().
  bool uses_pdl = false;
};

/// Maximum grid size; kernels with more work use a grid-stride loop.
constexpr int64_t kMaxBlocks = (int64_t{1} << 31) - 1;

#if MP_ON_CUDA
/// Opts in to all shared memory of a block.  Without this, static and dynamic memory together are
/// limited to 48 KiB.  The limit belongs to the kernel, so a lower one set by another thread would
/// make a launch fail.  A per-thread cache avoids repeated driver calls.
inline void opt_in_to_smem(const char *name, const void *kernel, const Device &device,
                           size_t bytes) {
  if (bytes == 0) return;
  struct OptedIn {
    const void *kernel;
    int ordinal;
  };
  static thread_local OptedIn opted_in[256];
  OptedIn &entry = opted_in[reinterpret_cast<uintptr_t>(kernel) / 16 % 256];
  if (entry.kernel == kernel && entry.ordinal == device.ordinal) return;
  cudaFuncAttributes attributes;
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), name);
  const int most = device.smem_per_block - static_cast<int>(attributes.sharedSizeBytes);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), name);
  entry = {kernel, device.ordinal};
}
#endif

/// Enqueues kernel<<<shape>>>(argument).  Kernels take one struct as MP_PARAM.
template <class Argument>
void launch(const char *name, void (*kernel)(MP_PARAM(Argument)), const Device &device,
            const LaunchShape &shape, mp_stream_t stream, const Argument &argument) {
#if MP_ON_CUDA
  const DeviceScope scope(device.ordinal);
  const void *const function = reinterpret_cast<const void *>(kernel);
  opt_in_to_smem(name, function, device, shape.smem_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.num_blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.num_threads));
  config.dynamicSmemBytes = shape.smem_bytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (shape.cluster > 1) {
    cudaLaunchAttribute &cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  }
  if (shape.uses_pdl && device.has_pdl) {  // older code has no wait
    cudaLaunchAttribute &early = attributes[config.numAttrs++];
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
  }
  void *arguments[] = {const_cast<Argument *>(&argument)};
  check_cuda(cudaLaunchKernelExC(&config, function, arguments), name);
#else
  (void)stream;
  struct Call {
    void (*kernel)(const Argument &);
    const Argument &argument;
  } const call{kernel, argument};
  const auto body = [](const void *c) {
    const Call &the_call = *static_cast<const Call *>(c);
    the_call.kernel(the_call.argument);
  };
  const engine::Grid grid{name,
                          shape.num_blocks,
                          shape.num_threads,
                          shape.cluster,
                          shape.smem_bytes,
                          device.num_sms,
                          body,
                          &call};
  engine::run(grid);
#endif
}

}  // namespace mp::MP_TARGET
