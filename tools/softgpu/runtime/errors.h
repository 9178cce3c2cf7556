// Errors of the runtime: their names, what stops a device, and errors on demand.
#pragma once

#include <string>
#include <string_view>

#include "tools/softgpu/machine/faults.h"
#include "tools/softgpu/runtime/api.h"

namespace softgpu::runtime {

/// "cudaErrorInvalidValue" and "invalid argument"; null for a code that the runtime does not have.
const char *error_name(cudaError_t);
const char *error_text(cudaError_t);
/// The code of a name, or -1.
int error_of_name(std::string_view name);

/// What has stopped a device, and is returned by each call from then on.
cudaError_t sticky_error(int device);
void stop_device(int device, cudaError_t);
void clear_sticky_error(int device);

/// The error with which SOFTGPU_FAIL makes this call of the function fail, or cudaSuccess.
cudaError_t injected_error(std::string_view function, cudaError_t natural_error);

/// Whether SOFTGPU_FAIL may name it: a function that the library exports, or "launch".
bool can_fail(const std::string &function);
/// Says of each injection that the process has not come to that it has not.
void report_injections();

/// Whether anything was called so far.
bool is_used();
/// A child of fork() that began after its parent had used the runtime: nothing works in it, as on
/// hardware.
bool is_forked_child();

}  // namespace softgpu::runtime
