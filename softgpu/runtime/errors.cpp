#include "softgpu/runtime/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "softgpu/options.h"

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
      std::fprintf(stderr, "softgpu: SOFTGPU_FAIL=%s was never applied\n", injection.text.c_str());
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

namespace {

/// Per device; more than any device has.
constexpr uint64_t kMaxMemory = uint64_t{1} << 42;
/// One hour, in microseconds.
constexpr uint64_t kMaxDelay = 3'600'000'000;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Injection read_injection(const std::string &text) {
  constexpr char kName[] = "SOFTGPU_FAIL";
  constexpr char kForm[] = "FUNCTION:N or FUNCTION:N=cudaErrorName, with commas between several";
  const size_t colon = text.find(':'), equals = text.find('=');
  if (colon == std::string::npos || equals < colon) refuse(kName, text, kForm);
  const std::string number = text.substr(colon + 1, equals - colon - 1);
  const std::optional<uint64_t> n = parse_number(number);
  if (!n || *n == 0) refuse(kName, text, kForm);
  Injection injection{text, text.substr(0, colon), *n, -1};
  if (!can_fail(injection.function))
    refuse(kName, text, "a call of a runtime function that can fail, or a launch");
  if (equals != std::string::npos) {
    injection.error = error_of_name(text.substr(equals + 1));
    if (injection.error <= 0) refuse(kName, text, kForm);
  }
  return injection;
}

/// Returns a file name in which %p is replaced by the process ID.
std::string file_of(const char *name) {
  std::string file(text_of(name));
  const size_t at = file.find("%p");
  if (at != std::string::npos) file.replace(at, 2, std::to_string(getpid()));
  return file;
}

Settings read_settings() {
  Settings s;
  s.is_synchronous = read_switch("SOFTGPU_SYNC");
  s.delay = std::chrono::microseconds(
      number_of("SOFTGPU_DELAY", static_cast<uint64_t>(s.delay.count()), 0, kMaxDelay));
  s.ptx_folders = split(text_of("SOFTGPU_PTX"), ':');
  read_number("SOFTGPU_CODE", 0, 999, &s.newest_code);
  for (const std::string &text : split(text_of("SOFTGPU_FAIL"), ','))
    s.injections.push_back(read_injection(text));
  s.count_file = file_of("SOFTGPU_COUNT");
  if (s.count_file == "1") s.count_file.clear();  // 1 counts without writing a file
  read_number("SOFTGPU_MEMORY", 1, kMaxMemory, &s.memory_bytes);
  return s;
}

}  // namespace

const Settings &settings() {
  // Never destroyed: the exit report uses it.
  static const Settings *const read = new Settings(read_settings());
  return *read;
}

// ---- names and descriptions of runtime errors, for cudaGetErrorName and cudaGetErrorString

namespace {

constexpr size_t kNumCodes = cudaErrorUnknown + 1;
constexpr char kUnknown[] = "unrecognized error code";

/// Returns text that contains the name of an enumerator in the toolkit's header; for other numbers,
/// a conversion "(cudaError)5".
template <cudaError_t code>
constexpr std::string_view function_name() {
  return __PRETTY_FUNCTION__;
}
template <size_t code>
std::string enumerator_name() {
  const std::string_view text = function_name<static_cast<cudaError_t>(code)>();
  const std::string_view name = text.substr(text.find("code = ") + 7);
  return name.starts_with("cuda") ? std::string(name.substr(0, name.find_first_of(";]"))) : "";
}

const std::array<std::string, kNumCodes> &names() {
  static const auto *const all = []<size_t... code>(std::index_sequence<code...>) {
    return new std::array<std::string, kNumCodes>{enumerator_name<code>()...};
  }
  (std::make_index_sequence<kNumCodes>());
  return *all;
}

/// Descriptions that are not the words of the name.
constexpr std::pair<cudaError_t, const char *> kDescriptions[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorCudartUnloading, "driver shutting down"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "invalid device symbol"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorInvalidKernelImage, "device kernel image is invalid"},
    {cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
    {cudaErrorInvalidPtx, "a PTX JIT compilation failed"},
    {cudaErrorSymbolNotFound, "named symbol not found"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, "the launch timed out and was terminated"},
    {cudaErrorLaunchFailure, "unspecified launch failure"},
    {cudaErrorNotPermitted, "operation not permitted"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorUnknown, "unknown error"},
};

/// Returns "invalid device function" for cudaErrorInvalidDeviceFunction.
std::string words_of(const std::string &name) {
  std::string words;
  for (size_t i = std::string_view("cudaError").size(); i < name.size(); i++) {
    if (!words.empty() && std::isupper(name[i])) words += ' ';
    words += static_cast<char>(std::tolower(name[i]));
  }
  return words;
}

}  // namespace

const char *error_name(cudaError_t code) {
  const bool is_known = code >= 0 && code < kNumCodes && !names()[code].empty();
  return is_known ? names()[code].c_str() : kUnknown;
}

const char *error_text(cudaError_t code) {
  static const auto *const all = [] {
    auto *const texts = new std::array<std::string, kNumCodes>;
    std::ranges::transform(names(), texts->begin(), words_of);
    for (const auto &[known, text] : kDescriptions) (*texts)[known] = text;
    return texts;
  }();
  return error_name(code) == kUnknown ? kUnknown : (*all)[code].c_str();
}

int error_of_name(std::string_view name) {
  const auto found = std::ranges::find(names(), name);
  return name.empty() || found == names().end() ? -1 : static_cast<int>(found - names().begin());
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

const char *cudaGetErrorName(cudaError_t error) {
  return softgpu::runtime::error_name(error);
}

const char *cudaGetErrorString(cudaError_t error) {
  return softgpu::runtime::error_text(error);
}

}  // extern "C"
