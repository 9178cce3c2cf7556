// Faults that stop a device, and the errors that the host receives.
#include <sys/resource.h>

#include <fstream>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

/// Loads a kernel without parameters.
const void *load(const std::string &body) {
  const std::string text =
      ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n" + body +
      "ret;\n}\n";
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  REQUIRE(cudaLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          cudaSuccess);
  REQUIRE(cudaLibraryGetKernel(&kernel, library, "k") == cudaSuccess);
  return kernel;
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

}  // namespace

// ---------------------------------------------------------------- hidden cases

TEST_CASE("case: the errors of faults", "[.]") {
  CHECK(error_of("trap;\n") == cudaErrorLaunchFailure);
  CHECK(error_of(".reg .b64 %a;\n.reg .b32 %r;\nmov.u64 %a, 4098;\nld.global.u32 %r, [%a];\n") ==
        cudaErrorMisalignedAddress);
  CHECK(error_of(".reg .b64 %a;\n.reg .b32 %r;\nmov.u64 %a, 4096;\nld.global.u32 %r, [%a];\n") ==
        cudaErrorIllegalAddress);
  CHECK(error_of("barrier.sync 0, 96;\n") == cudaErrorLaunchTimeout);
}

TEST_CASE("case: the host runs out of memory for a block", "[.]") {
  const void *const kernel = load(with_local("524288"));
  limit_memory(uint64_t{256} << 20);
  REQUIRE(launch(kernel, 1024) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

TEST_CASE("case: too much local memory", "[.]") {
  CHECK(launch(load(with_local("524304")), 32) == cudaErrorInvalidKernelImage);
  CHECK(launch(load(with_local("4294967296")), 32) == cudaErrorInvalidKernelImage);
}

TEST_CASE("case: a kernel that accesses a variable of a peer", "[.]") {
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

// ---------------------------------------------------------------- tests

TEST_CASE("runtime: the error code depends on the kind of fault", "[runtime]") {
  is_reported("case: the errors of faults", "misaligned");
}

TEST_CASE("runtime: internal errors of the device are faults", "[runtime]") {
  is_reported("case: the host runs out of memory for a block", "the device itself failed",
              {{"SOFTGPU_THREADS", "1"}});
  is_reported("case: too much local memory", "bytes of local memory per thread");
}

TEST_CASE("runtime: module variables are per device", "[runtime]") {
  is_reported("case: a kernel that accesses a variable of a peer",
              "the variable table of device 0, by a kernel on device 1",
              {{"SOFTGPU_DEVICES", "2"}});
}
