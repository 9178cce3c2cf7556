// Memory that is gone when a copy comes to it, that was never written, or that somebody else gives back.
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softgpu/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

/// What `enqueue(stream)` puts into a stream, as a graph.
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

/// Launches a graph twice, between which memory is freed.
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

// ---------------------------------------------------------------- hidden

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
  REQUIRE(cudaFreeAsync(words, second) == cudaSuccess);  // begins first: it was submitted last
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

TEST_CASE("case: a copy to a large allocation that was freed", "[.]") {
  void *const memory = allocate(100 << 20);
  uint32_t word = 0;
  REQUIRE(cudaFree(memory) == cudaSuccess);
  std::vector<std::byte> other(100 << 20);  // which does not take its place
  CHECK(cudaMemcpy(memory, &word, 4, cudaMemcpyDefault) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(&word, other.data(), 4, cudaMemcpyDefault) == cudaSuccess);
}

TEST_CASE("case: a process that has freed more than the machine has", "[.]") {
  const auto machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  constexpr size_t kPart = size_t{4} << 30;
  for (size_t freed = 0; freed <= 2 * machine; freed += kPart)
    REQUIRE(cudaFree(allocate(kPart)) == cudaSuccess);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(child > 0);
  CHECK(waitpid(child, nullptr, 0) == child);
}

TEST_CASE("case: each allocation is given back by its own function", "[.]") {
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

TEST_CASE("case: memory is freed twice in the order of a stream", "[.]") {
  const cudaStream_t stream = make_stream();
  uint32_t *const words = device_words();
  CHECK(cudaFreeAsync(words, stream) == cudaSuccess);
  CHECK(cudaFreeAsync(words, stream) == cudaErrorInvalidValue);
}

TEST_CASE("case: copies of what was written", "[.]") {
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

TEST_CASE("case: a copy to the host of a copy of what nobody wrote", "[.]") {
  void *const from = allocate(kBytes), *const to = allocate(kBytes);
  std::vector<std::byte> host(kBytes);
  REQUIRE(cudaMemset(from, 1, 100) == cudaSuccess);
  REQUIRE(cudaMemset(to, 1, kBytes) == cudaSuccess);
  REQUIRE(cudaMemcpy(static_cast<std::byte *>(to) + 5, from, 103, cudaMemcpyDeviceToDevice) ==
          cudaSuccess);
  CHECK(cudaMemcpy(host.data(), to, kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
}

// ---------------------------------------------------------------- the tests

TEST_CASE("runtime: copies and fills of memory that was freed before they ran", "[runtime]") {
  is_reported("case: a graph that copies to freed memory", "a copy to");
  is_reported("case: a graph that copies from freed memory", "a copy from");
  is_reported("case: a graph that fills freed memory", "a fill of");
  is_reported("case: a copy while another stream frees", "which was freed");
  is_reported("case: a copy to a large allocation that was freed", "which was freed");
}

TEST_CASE("runtime: addresses of what was freed are kept and not reserved", "[runtime]") {
  passes_in_every_order("case: a process that has freed more than the machine has");
}

TEST_CASE("runtime: allocations are given back as they were made", "[runtime]") {
  passes_in_every_order("case: each allocation is given back by its own function");
  is_reported("case: memory is freed twice in the order of a stream", "for the second time");
}

TEST_CASE("runtime: copies take what nobody wrote along", "[runtime]") {
  const Environment checks{{"SOFTGPU_INITCHECK", "1"}};
  const CaseResult result = run_case("case: copies of what was written", checks);
  INFO(result);
  CHECK(result.passed());
  is_reported("case: a copy to the host of a copy of what nobody wrote",
              "reads 3 uninitialized bytes", checks);
}
