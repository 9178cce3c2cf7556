// Prologue and epilogue shared by all functions of the runtime API.
#pragma once

#include <new>
#include <type_traits>

// The library exports only the API.
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

namespace softgpu::runtime {

/// Error code that an API function returns; thrown by its body.
struct ApiError {
  cudaError_t code;
};

inline void require(bool condition, cudaError_t otherwise) {
  if (!condition) throw ApiError{otherwise};
}

/// Precondition of an API function.
enum class Needs {
  kProcess,  ///< the process can use the runtime
  kDevice,   ///< kProcess, and no fault has stopped the current device
};

/// Returns the error with which a call must fail immediately: an injected error, the error of a
/// stopped device, or the error for a forked child of a process that used the runtime or for a call
/// from a host function.
cudaError_t begin_call(const char *name, cudaError_t natural_error, Needs);
/// Stores an error for cudaGetLastError, and returns it.
cudaError_t end_call(cudaError_t);

/// Runs the body of an API function; the body may throw.
/// @param natural_error  error that SOFTGPU_FAIL=name:n injects into the n-th call
/// @param name           name of the API function; by default, of the caller
template <class Body>
cudaError_t call(cudaError_t natural_error, Body &&body, Needs needs = Needs::kDevice,
                 const char *name = __builtin_FUNCTION()) {
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

/// Runs the body of an API function that returns one value through a pointer.
template <class Value, class Get>
cudaError_t get(Value *to, Get &&value, cudaError_t natural_error = cudaErrorInvalidValue,
                Needs needs = Needs::kDevice, const char *name = __builtin_FUNCTION()) {
  const auto body = [&] {
    require(to, cudaErrorInvalidValue);
    *to = value();
  };
  return call(natural_error, body, needs, name);
}

/// Returns the current device of the calling thread.
int current_device();
/// Fails unless `device` exists.
void check_device(int device);

/// Runs a user function in which API calls fail.
void call_user(void (*function)(void *), void *argument);

}  // namespace softgpu::runtime
