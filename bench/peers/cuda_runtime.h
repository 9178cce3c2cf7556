// Declarations of the CUDA runtime functions for timing, so that the bench builds without the CUDA
// toolkit and starts without a driver.
//
// libmpcore links its own copy of the runtime.  Both use the primary context of the device, so they
// can share streams and memory.
// Source: CUDA Runtime API, chapter "Interactions with the CUDA Driver API".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "dynamic_library.h"
#include "mpcore.h"

namespace mpbench {

using CudaEvent = struct CUevent_st *;  // cudaEvent_t

// Signatures use int for cudaError_t and mp_stream_t for cudaStream_t.
#define MPBENCH_CUDA_FUNCTIONS(X)                                                 \
  X(int, get_device, cudaGetDevice, int *)                                        \
  X(int, set_device, cudaSetDevice, int)                                          \
  X(int, get_pci_bus_id, cudaDeviceGetPCIBusId, char *, int, int)                 \
  X(int, driver_get_version, cudaDriverGetVersion, int *)                         \
  X(int, runtime_get_version, cudaRuntimeGetVersion, int *)                       \
  X(int, mem_get_info, cudaMemGetInfo, size_t *, size_t *)                        \
  X(int, stream_create, cudaStreamCreate, mp_stream_t *)                          \
  X(int, stream_destroy, cudaStreamDestroy, mp_stream_t)                          \
  X(int, event_create, cudaEventCreate, CudaEvent *)                              \
  X(int, event_destroy, cudaEventDestroy, CudaEvent)                              \
  X(int, event_record, cudaEventRecord, CudaEvent, mp_stream_t)                   \
  X(int, event_synchronize, cudaEventSynchronize, CudaEvent)                      \
  X(int, event_elapsed_time, cudaEventElapsedTime, float *, CudaEvent, CudaEvent) \
  X(const char *, get_error_name, cudaGetErrorName, int)
MPBENCH_TABLE(CudaFunctions, MPBENCH_CUDA_FUNCTIONS)

/// One device, one stream, and two events on it.
class CudaRuntime {
 public:
  /// @param ordinal  below 0: the calling thread's current device.
  explicit CudaRuntime(int32_t ordinal);
  CudaRuntime(const CudaRuntime &) = delete;
  CudaRuntime &operator=(const CudaRuntime &) = delete;
  ~CudaRuntime();

  int ordinal() const { return ordinal_; }
  mp_stream_t stream() const { return stream_; }

  void record_start() const;
  void record_stop() const;
  /// Waits until the device has passed the stop event.
  double elapsed_us() const;

  int64_t free_bytes() const;
  std::string pci_bus_id() const;
  /// 1000 major + 10 minor: the newest CUDA that the driver supports, and the runtime's version.
  int driver_version() const;
  int runtime_version() const;
  const DynamicLibrary &library() const { return library_; }

  /// True if the devices are those of softgpu, which have counts instead of times.
  bool is_software() const { return take_counts_ != nullptr; }
  /// Waits for all work; returns JSON of the counts since the last call, as described in
  /// softgpu/README.md.
  /// @throws std::runtime_error if the devices have no counters
  std::string take_counts() const;

 private:
  void check(int error, const char *call) const;

  DynamicLibrary library_;
  CudaFunctions cuda_;
  const char *(*take_counts_)() = nullptr;  ///< software devices only
  int ordinal_ = 0;
  mp_stream_t stream_ = nullptr;
  CudaEvent start_ = nullptr;
  CudaEvent stop_ = nullptr;
};

}  // namespace mpbench
