// What every function of the runtime's API begins and ends with.
#pragma once

#include <new>
#include <type_traits>

// The API is all that the library exports.
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

namespace softgpu::runtime {

/// Thrown below a function of the API, which then returns the code.
struct ApiError {
  cudaError_t code;
};

inline void require(bool condition, cudaError_t otherwise) {
  if (!condition) throw ApiError{otherwise};
}

/// What a function of the API asks of the process before it does anything.
enum class Needs {
  kProcess,  ///< only that the process may use the runtime
  kDevice,   ///< and that nothing has stopped the current device
};

/// The error with which a call must fail at once: it was injected, the device has stopped, the
/// process is the child of one that used the runtime, or the thread is in a host function.
cudaError_t begin_call(const char *name, cudaError_t natural_error, Needs);
/// Remembers an error for cudaGetLastError; returns it.
cudaError_t end_call(cudaError_t);

/// Runs the body of a function of the API, which may throw.
/// @param natural_error  what SOFTGPU_FAIL=name:n makes the n-th call return
template <class Body>
cudaError_t call(const char *name, cudaError_t natural_error, Body &&body,
                 Needs needs = Needs::kDevice) {
  cudaError_t error = begin_call(name, natural_error, needs);
  if (error != cudaSuccess) return end_call(error);
  try {
    if constexpr (std::is_void_v<decltype(body())>)
      body();
    else
      error = body();
  } catch (const ApiError &failed) {
    error = failed.code;
  } catch (const std::bad_alloc &) {
    error = cudaErrorMemoryAllocation;
  }
  return end_call(error);
}

/// The device of the calling thread.
int current_device();
/// Fails unless there is a device of that number.
void check_device(int device);

/// Runs a function of the user, in which calls of the API fail.
void call_user(void (*function)(void *), void *argument);

}  // namespace softgpu::runtime
