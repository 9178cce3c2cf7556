// Memory that is freed before a copy runs, uninitialized memory, and release by the wrong function.
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

/// Returns a graph of the work that `enqueue(stream)` adds to a stream.
template <class Enqueue>
cudaGraphExec_t capture(cudaStream_t stream, Enqueue &&enqueue) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  REQUIRE(enqueue(stream) == cudaSuccess);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  return exec;
}

/// Launches a graph twice and frees the memory in between.
template <class Enqueue>
void free_between_launches(void *memory, Enqueue &&enqueue) {
  const cudaStream_t stream = make_stream();
  const cudaGraphExec_t exec = capture(stream, enqueue);
  REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  REQUIRE(cudaFree(memory) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
}

}  // namespace

// ---------------------------------------------------------------- hidden cases

TEST_CASE("case: a graph that copies to freed memory", "[.]") {
  uint32_t *const words = device_words(), *const source = pinned_words();
  free_between_launches(words, [&](cudaStream_t stream) {
    return cudaMemcpyAsync(words, source, kBytes, cudaMemcpyHostToDevice, stream);
  });
}

TEST_CASE("case: a graph that copies from freed memory", "[.]") {
  uint32_t *const words = device_words(), *const other = device_words();
  free_between_launches(words, [&](cudaStream_t stream) {
    return cudaMemcpyAsync(other, words, kBytes, cudaMemcpyDeviceToDevice, stream);
  });
}

TEST_CASE("case: a graph that fills freed memory", "[.]") {
  uint32_t *const words = device_words();
  free_between_launches(
      words, [&](cudaStream_t stream) { return cudaMemsetAsync(words, 0, kBytes, stream); });
}

TEST_CASE("case: a copy while another stream frees", "[.]") {
  uint32_t *const words = device_words(), *const other = device_words();
  const cudaStream_t first = make_stream(), second = make_stream();
  REQUIRE(cudaMemcpyAsync(words, other, kBytes, cudaMemcpyDeviceToDevice, first) == cudaSuccess);
  // Begins first, because it was submitted last.
  REQUIRE(cudaFreeAsync(words, second) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

TEST_CASE("case: a copy to a large allocation that was freed", "[.]") {
  void *const memory = allocate(100 << 20);
  uint32_t word = 0;
  REQUIRE(cudaFree(memory) == cudaSuccess);
  std::vector<std::byte> other(100 << 20);  // does not reuse the addresses
  CHECK(cudaMemcpy(memory, &word, 4, cudaMemcpyDefault) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(&word, other.data(), 4, cudaMemcpyDefault) == cudaSuccess);
}

TEST_CASE("case: a process frees more memory than the machine has", "[.]") {
  const auto machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  constexpr size_t kPart = size_t{4} << 30;
  for (size_t freed = 0; freed <= 2 * machine; freed += kPart)
    REQUIRE(cudaFree(allocate(kPart)) == cudaSuccess);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(child > 0);
  CHECK(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("case: each allocation is released by its own function", "[.]") {
  static uint32_t registered[64];
  uint32_t *const device = device_words(), *const pinned = pinned_words();
  REQUIRE(cudaHostRegister(registered, sizeof registered, 0) == cudaSuccess);
  CHECK(cudaFree(pinned) == cudaErrorInvalidValue);
  CHECK(cudaFree(registered) == cudaErrorInvalidValue);
  CHECK(cudaFreeAsync(pinned, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(device) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(registered) == cudaErrorInvalidValue);
  CHECK(cudaHostUnregister(device) == cudaErrorInvalidValue);
  CHECK(cudaHostUnregister(pinned) == cudaErrorInvalidValue);
  CHECK(cudaFree(device) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaHostUnregister(registered) == cudaSuccess);
}

TEST_CASE("case: cudaFreeAsync frees memory twice", "[.]") {
  const cudaStream_t stream = make_stream();
  uint32_t *const words = device_words();
  CHECK(cudaFreeAsync(words, stream) == cudaSuccess);
  CHECK(cudaFreeAsync(words, stream) == cudaErrorInvalidValue);
}

TEST_CASE("case: copies of initialized memory", "[.]") {
  void *const from = allocate(kBytes), *const to = allocate(kBytes);
  std::vector<std::byte> host(kBytes);
  REQUIRE(cudaMemset(static_cast<std::byte *>(from) + 100, 1, 300) == cudaSuccess);
  REQUIRE(cudaMemcpy(static_cast<std::byte *>(to) + 7, from, 500, cudaMemcpyDeviceToDevice) ==
          cudaSuccess);
  CHECK(cudaMemcpy(host.data(), static_cast<std::byte *>(to) + 107, 300, cudaMemcpyDeviceToHost) ==
        cudaSuccess);
  REQUIRE(cudaMemcpy(to, host.data(), 107, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(host.data(), to, 407, cudaMemcpyDeviceToHost) == cudaSuccess);
}

TEST_CASE("case: a copy to the host of copied uninitialized memory", "[.]") {
  void *const from = allocate(kBytes), *const to = allocate(kBytes);
  std::vector<std::byte> host(kBytes);
  REQUIRE(cudaMemset(from, 1, 100) == cudaSuccess);
  REQUIRE(cudaMemset(to, 1, kBytes) == cudaSuccess);
  REQUIRE(cudaMemcpy(static_cast<std::byte *>(to) + 5, from, 103, cudaMemcpyDeviceToDevice) ==
          cudaSuccess);
  CHECK(cudaMemcpy(host.data(), to, kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
}

// ---------------------------------------------------------------- tests

TEST_CASE("runtime: copies and fills of freed memory are reported when they run", "[runtime]") {
  is_reported("case: a graph that copies to freed memory", "a copy to");
  is_reported("case: a graph that copies from freed memory", "a copy from");
  is_reported("case: a graph that fills freed memory", "a fill of");
  is_reported("case: a copy while another stream frees", "which was freed");
  is_reported("case: a copy to a large allocation that was freed", "which was freed");
}

TEST_CASE("runtime: addresses of freed memory are quarantined but not reserved", "[runtime]") {
  passes_in_every_order("case: a process frees more memory than the machine has");
}

TEST_CASE("runtime: allocations require the matching release function", "[runtime]") {
  passes_in_every_order("case: each allocation is released by its own function");
  is_reported("case: cudaFreeAsync frees memory twice", "for the second time");
}

TEST_CASE("runtime: copies propagate uninitialized memory", "[runtime]") {
  const Environment checks{{"SOFTGPU_INITCHECK", "1"}};
  const CaseResult result = run_case("case: copies of initialized memory", checks);
  INFO(result);
  CHECK(result.passed());
  is_reported("case: a copy to the host of copied uninitialized memory",
              "reads 3 uninitialized bytes", checks);
}
