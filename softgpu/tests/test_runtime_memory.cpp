// Allocations, copies, and several devices.
#include "softgpu/machine/shared_memory.h"
#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

// ---------------------------------------------------------------- hidden cases

TEST_CASE("case: fresh memory is poisoned and aligned to 256 bytes only", "[.]") {
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

TEST_CASE("case: memory is exhausted", "[.]") {
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

TEST_CASE("case: pointer attributes", "[.]") {
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

TEST_CASE("case: 2D copies and fills in all directions", "[.]") {
  uint32_t *const words = device_words();
  const std::vector<uint32_t> source = {1, 2, 3, 4, 5, 6};
  REQUIRE(cudaMemset(words, 0, kBytes) == cudaSuccess);
  REQUIRE(cudaMemcpy2D(words, 16, source.data(), 12, 8, 2, cudaMemcpyHostToDevice) == cudaSuccess);
  REQUIRE(cudaMemset2D(words + 8, 8, 0xFF, 4, 2) == cudaSuccess);
  std::vector<uint32_t> copy(12);
  REQUIRE(cudaMemcpy(copy.data(), words, 48, cudaMemcpyDefault) == cudaSuccess);
  CHECK(copy == std::vector<uint32_t>{1, 2, 0, 0, 4, 5, 0, 0, ~0u, 0, ~0u, 0});

  CHECK(cudaMemcpy(words, source.data(), 4, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(words, source.data(), 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(copy.data(), words, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(words, source.data(), 4, static_cast<cudaMemcpyKind>(9)) ==
        cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemcpy2D(words, 4, source.data(), 12, 8, 2, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
  CHECK(cudaMemset(copy.data(), 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault) == cudaSuccess);
}

TEST_CASE("case: a copy beyond its allocation", "[.]") {
  std::vector<uint32_t> host(kCount + 1);
  CHECK(cudaMemcpy(device_words(), host.data(), kBytes + 4, cudaMemcpyHostToDevice) ==
        cudaErrorInvalidValue);
}

TEST_CASE("case: a fill beyond its allocation", "[.]") {
  CHECK(cudaMemset(device_words() + 1, 0, kBytes) == cudaErrorInvalidValue);
}

TEST_CASE("case: a copy of freed memory", "[.]") {
  uint32_t *const words = device_words();
  uint32_t word = 0;
  REQUIRE(cudaFree(words) == cudaSuccess);
  CHECK(cudaMemcpy(&word, words, 4, cudaMemcpyDefault) == cudaErrorInvalidValue);
}

TEST_CASE("case: a kernel that uses freed memory", "[.]") {
  const Kernels kernels;
  uint32_t *const words = device_words();
  REQUIRE(cudaFree(words) == cudaSuccess);
  REQUIRE(kernels.set(words, kNew) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

TEST_CASE("case: cudaFree waits for kernels that use the memory", "[.]") {
  const Kernels kernels;
  uint32_t *const words = device_words(), *const pinned = pinned_words();
  REQUIRE(kernels.set(words, kNew, make_stream()) == cudaSuccess);
  REQUIRE(cudaFree(words) == cudaSuccess);
  REQUIRE(kernels.set(pinned, kNew, make_stream()) == cudaSuccess);
  REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("case: module variables", "[.]") {
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

TEST_CASE("case: memory and streams and variables are per device", "[.]") {
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
  REQUIRE(cudaMemcpyPeer(on_0, 0, on_1, 1, kBytes) == cudaSuccess);
  require_words(on_0, kNew);

  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, on_1) == cudaSuccess);
  CHECK(attributes.device == 1);
}

TEST_CASE("case: a kernel that accesses a peer", "[.]") {
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

TEST_CASE("case: a kernel that accesses a peer without permission", "[.]") {
  const Kernels kernels;
  uint32_t *const on_0 = device_words();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(kernels.set(on_0, kNew) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);  // device 0 continues
  require_words(on_0, kOld);
}

// ---------------------------------------------------------------- tests

TEST_CASE("runtime: allocations are poisoned, limited and typed", "[runtime]") {
  passes_in_every_order("case: fresh memory is poisoned and aligned to 256 bytes only");
  passes_in_every_order("case: pointer attributes");
  passes_in_every_order("case: cudaFree waits for kernels that use the memory");
  const CaseResult result = run_case("case: memory is exhausted", {{"SOFTGPU_MEMORY", "1048576"}});
  INFO(result);
  CHECK(result.passed());
}

TEST_CASE("runtime: copies and module variables match their sources", "[runtime]") {
  passes_in_every_order("case: 2D copies and fills in all directions");
  passes_in_every_order("case: module variables");
}

TEST_CASE("runtime: accesses to invalid memory are reported", "[runtime]") {
  is_reported("case: a copy beyond its allocation", "leave a cudaMalloc of 1024 bytes");
  is_reported("case: a fill beyond its allocation", "leave a cudaMalloc of 1024 bytes");
  is_reported("case: a copy of freed memory", "which was freed");
  is_reported("case: a kernel that uses freed memory", "FAULT");
}

TEST_CASE("runtime: devices are independent", "[runtime]") {
  const Environment two{{"SOFTGPU_DEVICES", "2"}};
  for (const char *name : {"case: memory and streams and variables are per device",
                           "case: a kernel that accesses a peer"}) {
    const CaseResult result = run_case(name, two);
    INFO(name << ": " << result);
    CHECK(result.passed());
  }
  is_reported("case: a kernel that accesses a peer without permission", "device 0", two);
}
