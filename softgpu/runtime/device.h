// Devices of the process.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/machine/launch.h"
#include "softgpu/runtime/api.h"

namespace softgpu::runtime {

/// SOFTGPU_FAIL=function:n[=error],...: the n-th call of a function fails.
struct Injection {
  std::string text;      ///< complete specification
  std::string function;  ///< "launch": the n-th kernel fails during execution
  uint64_t number;
  int error;  ///< -1: the natural error of the function
};

struct Settings {
  bool is_synchronous = false;  ///< SOFTGPU_SYNC=1
  /// SOFTGPU_DELAY: work that no call waits for begins after this time.
  std::chrono::microseconds delay{10'000};
  std::vector<std::string> ptx_folders;  ///< SOFTGPU_PTX=DIR[:DIR]
  /// SOFTGPU_CODE: newest architecture whose code is loaded, as if the program had no newer code.
  int newest_code = 999;
  std::vector<Injection> injections;           ///< SOFTGPU_FAIL
  std::string count_file;                      ///< SOFTGPU_COUNT; %p is the process ID
  uint64_t memory_bytes = uint64_t{16} << 30;  ///< SOFTGPU_MEMORY: bytes per device
};

/// Returns the settings.  The first call reads the environment; an invalid value ends the process
/// with an error message.
const Settings &settings();

/// Returns the counters of all kernels since the process began, with counts per line of PTX.
std::string counts_of_process();

/// Kinds of memory that copies distinguish.
enum class Place { kPageable, kPinned, kDevice };

/// Returns the kind of memory that a copy accesses.  Reports and fails if the range exceeds its
/// allocation or was freed.
Place place_of(const void *begin, size_t bytes, const char *what);
/// Checks a range again when the copy runs, which may be later than its call and repeated in a
/// graph: throws a Fault if memory that belonged to an allocation was freed meanwhile.
void check_is_there(Place then, const void *begin, size_t bytes, const char *what);

/// Function that allocated or registered the memory; determines which function releases it.
enum class Origin { kDevice, kPinned, kRegistered };

/// Allocates poisoned device memory, aligned to exactly 256 bytes.
void *allocate_on_device(int device, size_t bytes);
/// Allocates host memory that devices can access.
void *allocate_pinned(size_t bytes);
/// Releases a block; returns false if no block of this origin begins at the address.
bool release_memory(const void *begin, Origin);
/// Releases all memory of a device.
void release_device_memory(int device);

/// Return "cudaErrorInvalidValue" and "invalid argument", or null for an unknown code.
const char *error_name(cudaError_t);
const char *error_text(cudaError_t);
/// Returns the code of a name, or -1.
int error_of_name(std::string_view name);

/// Returns the error that stopped a device; every later call returns it.
cudaError_t sticky_error(int device);
void stop_device(int device, cudaError_t);
void clear_sticky_error(int device);

/// Returns the error that SOFTGPU_FAIL injects into this call, or cudaSuccess.
cudaError_t injected_error(std::string_view function, cudaError_t natural_error);

/// Returns whether SOFTGPU_FAIL accepts this name: "launch", or a function that the library
/// exports.
bool can_fail(const std::string &function);
/// Reports each injection whose call was never reached.
void report_injections();

/// Returns whether the process has called the API.
bool is_used();
/// Returns whether this process is a forked child of a process that had used the runtime.  As on
/// hardware, no call succeeds in such a child.
bool is_forked_child();

constexpr int kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxBlockDim[3] = {1024, 1024, 64};
constexpr uint32_t kMaxGridDim[3] = {0x7FFFFFFF, 65535, 65535};
constexpr int kSmemWithoutOptIn = 48 * 1024;

void set_current_device(int device);

}  // namespace softgpu::runtime
