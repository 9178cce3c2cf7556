// Allocations, copies, and several devices.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fstream>
#include "softgpu/machine/shared_memory.h"
#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

PASSES_IN_EVERY_ORDER("fresh memory is poisoned and aligned to 256 bytes only") {
  for (const size_t bytes : {4, 100, 256, 1000, 4096, 1 << 20}) {
    auto *const words = static_cast<uint32_t *>(allocate(bytes));
    const auto address = reinterpret_cast<uint64_t>(words);
    CHECK(address % 256 == 0);
    CHECK(address % 512 != 0);
    std::vector<uint32_t> copy(bytes / 4);
    REQUIRE(cudaMemcpy(copy.data(), words, copy.size() * 4, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(copy == std::vector<uint32_t>(bytes / 4, softgpu::kPoison));
  }
  void *nothing = &nothing;
  CHECK(cudaMalloc(&nothing, 0) == cudaSuccess);
  CHECK(nothing == nullptr);
  CHECK(cudaFree(nullptr) == cudaSuccess);
}

PASSES("memory is exhausted", {{"SOFTGPU_MEMORY", "1048576"}}) {
  size_t free = 0, total = 0, after = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(free == total);
  CHECK(total == 1 << 20);
  void *const memory = allocate(1000);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(after == free - 1000);
  void *more = &more;
  CHECK(cudaMalloc(&more, free) == cudaErrorMemoryAllocation);
  CHECK(more == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaFree(memory) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaErrorInvalidValue);
  CHECK(cudaMalloc(&more, free) == cudaSuccess);
}

PASSES_IN_EVERY_ORDER("pointer attributes") {
  const auto type_of = [](const void *p) {
    cudaPointerAttributes attributes{};
    REQUIRE(cudaPointerGetAttributes(&attributes, p) == cudaSuccess);
    return attributes.type;
  };
  static uint32_t words[64];
  CHECK(type_of(words) == cudaMemoryTypeUnregistered);
  CHECK(type_of(device_words() + 3) == cudaMemoryTypeDevice);
  CHECK(type_of(pinned_words() + 3) == cudaMemoryTypeHost);
  void *mapped = nullptr;
  CHECK(cudaHostGetDevicePointer(&mapped, words, 0) == cudaErrorInvalidValue);
  REQUIRE(cudaHostRegister(words, sizeof words, cudaHostRegisterMapped) == cudaSuccess);
  CHECK(cudaHostRegister(words, sizeof words, 0) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(type_of(words) == cudaMemoryTypeHost);
  CHECK(cudaHostGetDevicePointer(&mapped, words, 0) == cudaSuccess);
  CHECK(mapped == words);
  REQUIRE(cudaHostUnregister(words) == cudaSuccess);
  CHECK(cudaHostUnregister(words) == cudaErrorHostMemoryNotRegistered);
  CHECK(type_of(words) == cudaMemoryTypeUnregistered);
}

PASSES_IN_EVERY_ORDER("copies and fills in all directions") {
  uint32_t *const words = device_words();
  const std::vector<uint32_t> source = {1, 2, 3};
  REQUIRE(cudaMemset(words, 0, 20) == cudaSuccess);
  REQUIRE(cudaMemcpy(words, source.data(), 8, cudaMemcpyHostToDevice) == cudaSuccess);
  REQUIRE(cudaMemset(words + 3, 0xFF, 4) == cudaSuccess);
  std::vector<uint32_t> copy(6);
  REQUIRE(cudaMemcpy(copy.data(), words, 24, cudaMemcpyDefault) == cudaSuccess);
  CHECK(copy == std::vector<uint32_t>{1, 2, 0, ~0u, 0, kOld});

  CHECK(cudaMemcpy(words, source.data(), 4, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(words, source.data(), 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(copy.data(), words, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(words, source.data(), 4, static_cast<cudaMemcpyKind>(9)) ==
        cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemset(copy.data(), 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault) == cudaSuccess);
}

IS_REPORTED("a copy beyond its allocation", "exceed a cudaMalloc of 1024 bytes") {
  std::vector<uint32_t> host(kCount + 1);
  CHECK(cudaMemcpy(device_words(), host.data(), kBytes + 4, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
}

IS_REPORTED("a fill beyond its allocation", "exceed a cudaMalloc of 1024 bytes") {
  CHECK(cudaMemset(device_words() + 1, 0, kBytes) == cudaErrorInvalidValue);
}

IS_REPORTED("a copy of freed memory", "which was freed") {
  uint32_t *const words = device_words();
  uint32_t word = 0;
  REQUIRE(cudaFree(words) == cudaSuccess);
  CHECK(cudaMemcpy(&word, words, 4, cudaMemcpyDefault) == cudaErrorInvalidValue);
}

IS_REPORTED("a kernel that uses freed memory", "FAULT") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  REQUIRE(cudaFree(words) == cudaSuccess);
  REQUIRE(kernels.set(words, kNew) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

PASSES_IN_EVERY_ORDER("cudaFree waits for kernels that use the memory") {
  const Kernels kernels;
  uint32_t *const words = device_words(), *const pinned = pinned_words();
  REQUIRE(kernels.set(words, kNew, make_stream()) == cudaSuccess);
  REQUIRE(cudaFree(words) == cudaSuccess);
  REQUIRE(kernels.set(pinned, kNew, make_stream()) == cudaSuccess);
  REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

PASSES_IN_EVERY_ORDER("module variables") {
  const Kernels kernels;
  void *table = nullptr;
  size_t bytes = 0;
  REQUIRE(cudaLibraryGetGlobal(&table, &bytes, kernels.library(), "table") == cudaSuccess);
  CHECK(bytes == 16);
  CHECK(cudaLibraryGetGlobal(&table, &bytes, kernels.library(), "tables") ==
        cudaErrorSymbolNotFound);
  const uint32_t changed = 99;
  REQUIRE(cudaMemcpy(static_cast<uint32_t *>(table) + 1, &changed, 4, cudaMemcpyHostToDevice) ==
          cudaSuccess);
  uint32_t *words = device_words();
  void *arguments[] = {&words};
  REQUIRE(cudaLaunchKernel(kernels["read_table"], dim3(1), dim3(4), arguments, 0, nullptr) ==
          cudaSuccess);
  std::vector<uint32_t> read(5);
  REQUIRE(cudaMemcpy(read.data(), words, 20, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(read == std::vector<uint32_t>{10, 99, 12, 13, kOld});
}

PASSES("memory and streams and variables are per device", {{"SOFTGPU_DEVICES", "2"}}) {
  int count = 0, device = -1;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == 2);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  const Kernels kernels;
  uint32_t *const on_0 = device_words();
  const cudaStream_t stream_0 = make_stream();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 1);
  uint32_t *const on_1 = device_words();
  CHECK(kernels.set(on_1, kNew, stream_0) == cudaErrorInvalidResourceHandle);
  REQUIRE(kernels.set(on_1, kNew) == cudaSuccess);
  require_words(on_1, kNew);
  REQUIRE(cudaMemcpy(on_0, on_1, kBytes, cudaMemcpyDefault) == cudaSuccess);
  require_words(on_0, kNew);

  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, on_1) == cudaSuccess);
  CHECK(attributes.device == 1);
}

PASSES("a kernel that accesses a peer", {{"SOFTGPU_DEVICES", "2"}}) {
  const Kernels kernels;
  uint32_t *const on_0 = device_words();
  int can = 0;
  REQUIRE(cudaDeviceCanAccessPeer(&can, 1, 0) == cudaSuccess);
  REQUIRE(can == 1);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaDeviceEnablePeerAccess(0, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
  REQUIRE(kernels.set(on_0, kNew) == cudaSuccess);
  require_words(on_0, kNew);
  REQUIRE(cudaDeviceDisablePeerAccess(0) == cudaSuccess);
  CHECK(cudaDeviceDisablePeerAccess(0) == cudaErrorPeerAccessNotEnabled);
}

IS_REPORTED("a kernel that accesses a peer without permission", "device 0",
            {{"SOFTGPU_DEVICES", "2"}}) {
  const Kernels kernels;
  uint32_t *const on_0 = device_words();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(kernels.set(on_0, kNew) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);  // device 0 continues
  require_words(on_0, kOld);
}

// ---- faults that stop a device, and the errors that the host receives

namespace {

/// Loads a kernel without parameters.
const void *load(const std::string &body) {
  return kernel_of(load_library(".visible .entry k()\n{\n" + body + "ret;\n}\n"), "k");
}

/// Returns a body that uses this many bytes of local memory.
std::string with_local(const std::string &bytes) {
  return ".local .align 4 .b8 big[" + bytes +
         "];\n.reg .b32 %r;\nmov.u32 %r, 1;\nst.local.u32 [big], %r;\n";
}

cudaError_t launch(const void *kernel, unsigned num_threads) {
  return cudaLaunchKernel(kernel, dim3(1), dim3(num_threads), nullptr, 0, nullptr);
}

/// Returns the sticky error of a kernel.
cudaError_t error_of(const std::string &body) {
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  REQUIRE(launch(load(body), 64) == cudaSuccess);
  return cudaDeviceSynchronize();
}

/// Limits the additional memory of the process.
void limit_memory(uint64_t bytes) {
  uint64_t num_pages = 0;
  std::ifstream("/proc/self/statm") >> num_pages;
  const rlimit limit{num_pages * 4096 + bytes, RLIM_INFINITY};
  REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
}

IS_REPORTED("the errors of faults", "misaligned") {
  CHECK(error_of("trap;\n") == cudaErrorLaunchFailure);
  CHECK(error_of(".reg .b64 %a;\n.reg .b32 %r;\nmov.u64 %a, 4098;\nld.global.u32 %r, [%a];\n") ==
        cudaErrorMisalignedAddress);
  CHECK(error_of(".reg .b64 %a;\n.reg .b32 %r;\nmov.u64 %a, 4096;\nld.global.u32 %r, [%a];\n") ==
        cudaErrorIllegalAddress);
  CHECK(error_of("barrier.sync 0, 96;\n") == cudaErrorLaunchTimeout);
}

IS_REPORTED("the host runs out of memory for a block", "internal error of the device",
            {{"SOFTGPU_THREADS", "1"}}) {
  const void *const kernel = load(with_local("524288"));
  limit_memory(uint64_t{256} << 20);
  REQUIRE(launch(kernel, 1024) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

IS_REPORTED("too much local memory", "bytes of local memory per thread") {
  CHECK(launch(load(with_local("524304")), 32) == cudaErrorInvalidKernelImage);
  CHECK(launch(load(with_local("4294967296")), 32) == cudaErrorInvalidKernelImage);
}

IS_REPORTED("a kernel that accesses a variable of a peer",
            "the variable table of device 0, by a kernel on device 1", {{"SOFTGPU_DEVICES", "2"}}) {
  const Kernels kernels;
  void *table = nullptr;
  size_t bytes = 0;
  REQUIRE(cudaLibraryGetGlobal(&table, &bytes, kernels.library(), "table") == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  uint32_t *words = device_words();
  void *arguments[] = {&words, &table};
  REQUIRE(cudaLaunchKernel(kernels["copy"], dim3(1), dim3(4), arguments, 0, nullptr) ==
          cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

// ---- freed and uninitialized memory

/// Returns a graph of the work that `enqueue(stream)` adds to a stream.
template <class Enqueue>
cudaGraphExec_t capture(cudaStream_t stream, Enqueue &&enqueue) {
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  REQUIRE(enqueue(stream) == cudaSuccess);
  return instantiate(end_capture(stream));
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

IS_REPORTED("a graph that copies to freed memory", "a copy to") {
  uint32_t *const words = device_words(), *const source = pinned_words();
  free_between_launches(words, [&](cudaStream_t stream) {
    return cudaMemcpyAsync(words, source, kBytes, cudaMemcpyHostToDevice, stream);
  });
}

IS_REPORTED("a graph that copies from freed memory", "a copy from") {
  uint32_t *const words = device_words(), *const other = device_words();
  free_between_launches(words, [&](cudaStream_t stream) {
    return cudaMemcpyAsync(other, words, kBytes, cudaMemcpyDeviceToDevice, stream);
  });
}

IS_REPORTED("a graph that fills freed memory", "a fill of") {
  uint32_t *const words = device_words();
  free_between_launches(
      words, [&](cudaStream_t stream) { return cudaMemsetAsync(words, 0, kBytes, stream); });
}

IS_REPORTED("a copy while another stream frees", "which was freed") {
  uint32_t *const words = device_words(), *const other = device_words();
  const cudaStream_t first = make_stream(), second = make_stream();
  REQUIRE(cudaMemcpyAsync(words, other, kBytes, cudaMemcpyDeviceToDevice, first) == cudaSuccess);
  // Begins first, because it was submitted last.
  REQUIRE(cudaFreeAsync(words, second) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

IS_REPORTED("a copy to a large allocation that was freed", "which was freed") {
  void *const memory = allocate(100 << 20);
  uint32_t word = 0;
  REQUIRE(cudaFree(memory) == cudaSuccess);
  std::vector<std::byte> other(100 << 20);  // does not reuse the addresses
  CHECK(cudaMemcpy(memory, &word, 4, cudaMemcpyDefault) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(&word, other.data(), 4, cudaMemcpyDefault) == cudaSuccess);
}

PASSES_IN_EVERY_ORDER("a process frees more memory than the machine has") {
  const auto machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  constexpr size_t kPart = size_t{4} << 30;
  for (size_t freed = 0; freed <= 2 * machine; freed += kPart)
    REQUIRE(cudaFree(allocate(kPart)) == cudaSuccess);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(child > 0);
  CHECK(waitpid(child, nullptr, 0) == child);
}

PASSES_IN_EVERY_ORDER("each allocation is released by its own function") {
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

IS_REPORTED("cudaFreeAsync frees memory twice", "for the second time") {
  const cudaStream_t stream = make_stream();
  uint32_t *const words = device_words();
  CHECK(cudaFreeAsync(words, stream) == cudaSuccess);
  CHECK(cudaFreeAsync(words, stream) == cudaErrorInvalidValue);
}

PASSES("copies of initialized memory", {{"SOFTGPU_INITCHECK", "1"}}) {
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

IS_REPORTED("a copy to the host of copied uninitialized memory", "reads 3 uninitialized bytes",
            {{"SOFTGPU_INITCHECK", "1"}}) {
  void *const from = allocate(kBytes), *const to = allocate(kBytes);
  std::vector<std::byte> host(kBytes);
  REQUIRE(cudaMemset(from, 1, 100) == cudaSuccess);
  REQUIRE(cudaMemset(to, 1, kBytes) == cudaSuccess);
  REQUIRE(cudaMemcpy(static_cast<std::byte *>(to) + 5, from, 103, cudaMemcpyDeviceToDevice) ==
          cudaSuccess);
  CHECK(cudaMemcpy(host.data(), to, kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
}

}  // namespace
