#include "softgpu/runtime/errors.h"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "softgpu/options.h"
#include "softgpu/runtime/device.h"
#include "softgpu/runtime/settings.h"

namespace softgpu::runtime {

namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device_of_thread = 0;
thread_local bool is_in_user_function = false;

std::array<std::atomic<cudaError_t>, kMaxDevices> sticky_errors;
std::atomic<bool> is_child = false, has_begun = false;

/// Number of calls of each function in settings().injections.
struct InjectedCalls {
  std::mutex mutex;
  std::vector<uint64_t> count = std::vector<uint64_t>(settings().injections.size());
};
InjectedCalls &injected_calls() {
  static auto *const calls = new InjectedCalls;  // never destroyed: the exit report uses it
  return *calls;
}

/// Initializes the process before its first API call.
void initialise() {
  static std::once_flag once;
  std::call_once(once, [] {
    options();
    settings();
    pthread_atfork(nullptr, nullptr, [] { is_child = true; });
    has_begun = true;
  });
}

}  // namespace

cudaError_t sticky_error(int device) {
  return sticky_errors[static_cast<size_t>(device)];
}

void stop_device(int device, cudaError_t error) {
  cudaError_t none = cudaSuccess;
  sticky_errors[static_cast<size_t>(device)].compare_exchange_strong(none, error);
}

void clear_sticky_error(int device) {
  sticky_errors[static_cast<size_t>(device)] = cudaSuccess;
}

bool can_fail(const std::string &function) {
  if (function == "launch") return true;
  Dl_info found, own;
  void *const address = dlsym(RTLD_DEFAULT, function.c_str());
  // The symbol must belong to this library: another library may define the same name.
  return address && dladdr(address, &found) && dladdr(&sticky_errors, &own) &&
         found.dli_fbase == own.dli_fbase;
}

cudaError_t injected_error(std::string_view function, cudaError_t natural_error) {
  const std::vector<Injection> &injections = settings().injections;
  if (injections.empty()) return cudaSuccess;
  InjectedCalls &calls = injected_calls();
  const std::lock_guard lock(calls.mutex);
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < injections.size(); i++) {
    if (injections[i].function != function || ++calls.count[i] != injections[i].number) continue;
    error = injections[i].error < 0 ? natural_error : static_cast<cudaError_t>(injections[i].error);
  }
  return error;
}

void report_injections() {
  InjectedCalls &calls = injected_calls();
  const std::lock_guard lock(calls.mutex);
  for (size_t i = 0; i < calls.count.size(); i++) {
    const Injection &injection = settings().injections[i];
    if (calls.count[i] < injection.number)
      std::fprintf(stderr, "softgpu: SOFTGPU_FAIL=%s never happened\n", injection.text.c_str());
  }
}

bool is_used() {
  return has_begun;
}

bool is_forked_child() {
  return is_child;
}

cudaError_t begin_call(const char *name, cudaError_t natural_error, Needs needs) {
  if (is_child) return cudaErrorInitializationError;
  initialise();
  if (is_in_user_function) return cudaErrorNotPermitted;
  if (needs == Needs::kDevice) {
    if (options().num_devices == 0) return cudaErrorNoDevice;
    if (sticky_error(device_of_thread) != cudaSuccess) return sticky_error(device_of_thread);
  }
  return injected_error(name, natural_error);
}

cudaError_t end_call(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

int current_device() {
  return device_of_thread;
}

void check_device(int device) {
  require(device >= 0 && device < options().num_devices, cudaErrorInvalidDevice);
}

void set_current_device(int device) {
  check_device(device);
  device_of_thread = device;
}

void call_user(void (*function)(void *), void *argument) {
  is_in_user_function = true;
  function(argument);
  is_in_user_function = false;
}

}  // namespace softgpu::runtime

using namespace softgpu::runtime;

extern "C" {

cudaError_t cudaPeekAtLastError() {
  if (is_forked_child()) return cudaErrorInitializationError;
  const cudaError_t sticky = sticky_error(current_device());
  return sticky != cudaSuccess ? sticky : last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

}  // extern "C"
