// Tests of the runtime that replaces libcudart.
//
// The runtime reads its environment once, a fault stops a device permanently, and violations end
// the process with code 99.  Test cases are therefore hidden test cases of this binary, each run in
// a separate process.
#pragma once

#include <cuda_runtime_api.h>
#include <unistd.h>
#include <cstdint>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace softgpu::test {

using Environment = std::vector<std::pair<std::string, std::string>>;

struct CaseResult {
  int exit_code = -1;  ///< 0: all checks passed; 99: violations; otherwise failed checks
  std::string output;  ///< stdout and stderr
  bool passed() const { return exit_code == 0; }
  bool says(const std::string &text) const { return output.find(text) != std::string::npos; }
};
/// Prints a result in Catch2 messages.
std::ostream &operator<<(std::ostream &, const CaseResult &);

/// File that is removed after the test.
struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("softgpu_test_" + std::to_string(getpid()));
  ~TemporaryFile() { std::filesystem::remove(path); }
};

/// Work begins only when a call waits for it: the delay of a second is longer than a test case.
const std::pair<std::string, std::string> kLongDelay{"SOFTGPU_DELAY", "1000000"};

/// Runs a hidden test case in a process with additional environment variables.
CaseResult run_case(const std::string &name, const Environment &environment = {});

/// Checks that the case passes.
void passes(const std::string &name, const Environment & = {});
/// Checks that the case passes in the default order, with several seeds, and with SOFTGPU_SYNC.
void passes_in_every_order(const std::string &name);
/// Checks that the case passes with each value of SOFTGPU_ARCH.
void passes_on_every_architecture(const std::string &name, Environment = {});
/// Checks that the case fails in the default order and with at least one seed.
void is_noticed(const std::string &name);
/// Checks that the process exits with violations and prints the text.
void is_reported(const std::string &name, const std::string &text, const Environment & = {});

// A program: the hidden test case "case: TITLE", and a test that runs it.
#define SOFTGPU_PROGRAM(check, title, ...)                \
  TEST_CASE("runtime: " #check ": " title, "[runtime]") { \
    check("case: " title __VA_OPT__(, ) __VA_ARGS__);     \
  }                                                       \
  TEST_CASE("case: " title, "[.]")
#define PASSES(...) SOFTGPU_PROGRAM(passes, __VA_ARGS__)
#define PASSES_IN_EVERY_ORDER(title) SOFTGPU_PROGRAM(passes_in_every_order, title)
#define PASSES_ON_EVERY_ARCHITECTURE(title) SOFTGPU_PROGRAM(passes_on_every_architecture, title)
#define IS_NOTICED(title) SOFTGPU_PROGRAM(is_noticed, title)
#define IS_REPORTED(...) SOFTGPU_PROGRAM(is_reported, __VA_ARGS__)

/// Value that the work writes, previous value, and number of elements.
constexpr uint32_t kNew = 42, kOld = 7, kCount = 256;
constexpr size_t kBytes = kCount * sizeof(uint32_t);

/// Kernels of one module on the current device, each launched with kCount threads:
///
///     set(p, value)   p[i] = value
///     increment(p)    p[i] += 1
///     copy(to, from)  to[i] = from[i]
///     read_table(p)   p[i] = table[i % 4], a variable of the module: {10, 11, 12, 13}
class Kernels {
 public:
  Kernels();
  ~Kernels();
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;

  cudaLibrary_t library() const { return library_; }
  const void *operator[](const char *name) const;
  cudaError_t set(void *p, uint32_t value, cudaStream_t stream = nullptr) const {
    return launch("set", stream, p, value);
  }
  cudaError_t increment(void *p, cudaStream_t stream = nullptr) const {
    return launch("increment", stream, p);
  }
  cudaError_t copy(void *to, const void *from, cudaStream_t stream = nullptr) const {
    return launch("copy", stream, to, from);
  }

 private:
  template <class... Arguments>
  cudaError_t launch(const char *name, cudaStream_t stream, Arguments... arguments) const {
    void *addresses[] = {&arguments...};
    return cudaLaunchKernel((*this)[name], dim3(kCount / 32), dim3(32), addresses, 0, stream);
  }

  cudaLibrary_t library_;
  std::map<std::string, cudaKernel_t> handles_;
};

/// Returns a kernel.  Its body has the index of the thread in %i and, for each pointer parameter,
/// the address of the thread's word in a register of the same name; it may use %r (32 bits) and %a
/// (64 bits).
/// @param parameters  other parameters, such as ", .param .u32 value"
std::string kernel_entry(const std::string &name, const std::vector<std::string> &pointers,
                         const std::string &body, const std::string &parameters = "");
/// Returns a module with these kernels and variables.
std::string module_of(const std::string &text, const std::string &target = "sm_75");
/// Returns the module of class Kernels.
std::string kernels_text(const std::string &target = "sm_75");

/// Loads module_of(text, target).
cudaLibrary_t load_library(const std::string &text, const std::string &target = "sm_75");
cudaKernel_t kernel_of(cudaLibrary_t, const char *name);

/// Allocates uninitialized memory on the current device.
void *allocate(size_t bytes);
/// Returns kCount words on the device or in pinned memory, all kOld.
uint32_t *device_words();
uint32_t *pinned_words();
/// Waits for all work and checks that all words on the device are `value`.
void require_words(const uint32_t *on_device, uint32_t value);

cudaStream_t make_stream(unsigned flags = cudaStreamNonBlocking);
cudaEvent_t make_event(unsigned flags = cudaEventDefault);

/// Returns a new stream that captures its work.
cudaStream_t begin_capture(cudaStreamCaptureMode = cudaStreamCaptureModeGlobal,
                           unsigned flags = cudaStreamNonBlocking);
cudaGraph_t end_capture(cudaStream_t);
cudaGraphExec_t instantiate(cudaGraph_t);

}  // namespace softgpu::test
