// Runtime errors: names, sticky errors of devices, injected errors.
#pragma once

#include <string>
#include <string_view>

#include "softgpu/machine/faults.h"
#include "softgpu/runtime/api.h"

namespace softgpu::runtime {

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

}  // namespace softgpu::runtime
