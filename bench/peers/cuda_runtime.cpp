#include "cuda_runtime.h"

namespace mpbench {

CudaRuntime::CudaRuntime(int32_t ordinal) : library_({"libcudart.so.13", "libcudart.so.12"}) {
  cuda_.load(library_);
  take_counts_ = library_.find_if_there<const char *()>("softgpu_take_counts");

  if (ordinal >= 0) check(cuda_.set_device(ordinal), "cudaSetDevice");
  check(cuda_.get_device(&ordinal_), "cudaGetDevice");
  check(cuda_.stream_create(&stream_), "cudaStreamCreate");
  check(cuda_.event_create(&start_), "cudaEventCreate");
  check(cuda_.event_create(&stop_), "cudaEventCreate");
}

CudaRuntime::~CudaRuntime() {
  cuda_.event_destroy(stop_);
  cuda_.event_destroy(start_);
  cuda_.stream_destroy(stream_);
}

void CudaRuntime::record_start() const {
  check(cuda_.event_record(start_, stream_), "cudaEventRecord");
}

void CudaRuntime::record_stop() const {
  check(cuda_.event_record(stop_, stream_), "cudaEventRecord");
}

double CudaRuntime::elapsed_us() const {
  float elapsed_ms = 0;
  check(cuda_.event_synchronize(stop_), "cudaEventSynchronize");
  check(cuda_.event_elapsed_time(&elapsed_ms, start_, stop_), "cudaEventElapsedTime");
  return 1e3 * elapsed_ms;
}

int64_t CudaRuntime::free_bytes() const {
  size_t free_bytes = 0, total_bytes = 0;
  check(cuda_.mem_get_info(&free_bytes, &total_bytes), "cudaMemGetInfo");
  return static_cast<int64_t>(free_bytes);
}

std::string CudaRuntime::pci_bus_id() const {
  char id[32] = {};
  check(cuda_.get_pci_bus_id(id, sizeof id, ordinal_), "cudaDeviceGetPCIBusId");
  return id;
}

int CudaRuntime::driver_version() const {
  int version = 0;
  check(cuda_.driver_get_version(&version), "cudaDriverGetVersion");
  return version;
}

int CudaRuntime::runtime_version() const {
  int version = 0;
  check(cuda_.runtime_get_version(&version), "cudaRuntimeGetVersion");
  return version;
}

std::string CudaRuntime::take_counts() const {
  const char *const counts = take_counts_();
  if (counts == nullptr)
    throw std::runtime_error("the software device requires SOFTGPU_COUNT=1 for counters");
  return counts;
}

void CudaRuntime::check(int error, const char *call) const {
  if (error != 0) throw std::runtime_error(std::string(call) + ": " + cuda_.get_error_name(error));
}

}  // namespace mpbench
