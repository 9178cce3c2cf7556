// Launches and their limits, errors, device properties, and driver functions.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <thread>

#include "softgpu/tests/runtime_case.h"
#include "tests/support/catch.h"

using namespace softgpu::test;

namespace {

/// Empty kernels with launch bounds.
constexpr char kLimited[] = R"(
.visible .entry bounded() .maxntid 64, 1, 1 .minnctapersm 4 { ret; }
.visible .entry shared() {
  .shared .align 4 .b8 buffer[1024];
  .reg .b32 %r<2>;
  ld.shared.u32 %r1, [buffer];
  ret;
}
)";

/// Kernels for sm_90 with cluster bounds; `shaped` traps in a cluster of another shape.
constexpr char kLimitedClusters[] = R"(
.visible .entry shaped() .reqntid 16, 2 .reqnctapercluster 1, 2 {
  .reg .b32 %r;
  .reg .pred %p;
  mov.u32 %r, %cluster_nctaid.y;
  setp.ne.u32 %p, %r, 2;
  @%p trap;
  ret;
}
.visible .entry ranked() .maxclusterrank 2 { ret; }
)";

struct Limited {
  cudaLibrary_t library = load_library(kLimited);
  const void *bounded = kernel_of(library, "bounded"), *shared = kernel_of(library, "shared");
};

cudaError_t launch(const void *kernel, const dim3 &grid, const dim3 &block, size_t smem = 0) {
  return cudaLaunchKernel(kernel, grid, block, nullptr, smem, nullptr);
}

cudaError_t launch_cluster(const void *kernel, const dim3 &grid, const dim3 &cluster,
                           const dim3 &block = dim3(32)) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, kernel, nullptr);
}

int attribute(cudaDeviceAttr which) {
  int value = -1;
  REQUIRE(cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess);
  return value;
}

template <class Function>
Function look_up(const char *name) {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  REQUIRE(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) ==
          cudaSuccess);
  REQUIRE(found == cudaDriverEntryPointSuccess);
  return reinterpret_cast<Function>(function);
}

/// Valid arguments of a tensor map; tests invalidate one of them.
struct TiledMap {
  alignas(64) std::array<std::byte, 256> storage{};
  CUtensorMap *map = reinterpret_cast<CUtensorMap *>(storage.data());
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 3;
  uint64_t base = 4096;
  std::array<cuuint64_t, 5> sizes{64, 32, 16, 1, 1}, strides{128, 4096, 65536, 65536, 0};
  std::array<cuuint32_t, 5> box{64, 8, 1, 1, 1}, steps{1, 1, 1, 1, 1};
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  std::array<int, 3> lower{-1, -1, -1}, upper{-1, -1, -1};
  cuuint32_t channels = 64, pixels = 128;
  const void *missing = nullptr;  ///< list that is replaced by null

  template <class List>
  const typename List::value_type *list(const List &values) const {
    return missing == &values ? nullptr : values.data();
  }
  CUresult tiled() const {
    return look_up<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
        map, type, rank, reinterpret_cast<void *>(base), list(sizes), list(strides), list(box),
        list(steps), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
  }
  CUresult im2col() const {
    return look_up<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col")(
        map, type, rank, reinterpret_cast<void *>(base), list(sizes), list(strides), list(lower),
        list(upper), channels, pixels, list(steps), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, fill);
  }
};

template <class Change>
void is_rejected(Change &&change) {
  TiledMap map;
  change(map);
  CHECK(map.tiled() == CUDA_ERROR_INVALID_VALUE);
  CHECK(map.im2col() == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

PASSES_IN_EVERY_ORDER("launch limits") {
  const Limited k;
  CHECK(launch(k.shared, dim3(1), dim3(1024)) == cudaSuccess);
  CHECK(launch(k.shared, dim3(1), dim3(1025)) == cudaErrorInvalidConfiguration);
  CHECK(launch(k.shared, dim3(1), dim3(32, 64)) == cudaErrorInvalidConfiguration);
  CHECK(launch(k.shared, dim3(1), dim3(1, 1, 65)) == cudaErrorInvalidConfiguration);
  CHECK(launch(k.shared, dim3(0), dim3(32)) == cudaErrorInvalidConfiguration);
  CHECK(launch(k.shared, dim3(1, 65536), dim3(32)) == cudaErrorInvalidConfiguration);
  CHECK(launch(k.bounded, dim3(1), dim3(64)) == cudaSuccess);
  CHECK(launch(k.bounded, dim3(1), dim3(65)) == cudaErrorInvalidConfiguration);

  const int most = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  CHECK(launch(k.shared, dim3(1), dim3(32), 47 * 1024) == cudaSuccess);
  CHECK(launch(k.shared, dim3(1), dim3(32), 47 * 1024 + 1) == cudaErrorInvalidValue);
  constexpr auto kSmem = cudaFuncAttributeMaxDynamicSharedMemorySize;
  CHECK(cudaFuncSetAttribute(k.shared, kSmem, most - 1023) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(k.shared, kSmem, most - 1024) == cudaSuccess);
  CHECK(launch(k.shared, dim3(1), dim3(32), static_cast<size_t>(most - 1024)) == cudaSuccess);
  CHECK(launch(k.shared, dim3(1), dim3(32), static_cast<size_t>(most - 1023)) ==
        cudaErrorInvalidValue);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

PASSES_IN_EVERY_ORDER("cluster limits") {
  const Limited k;
  CHECK(launch_cluster(k.shared, 8, dim3(4)) == cudaSuccess);
  CHECK(launch_cluster(k.shared, 6, dim3(4)) == cudaErrorInvalidClusterSize);
  CHECK(launch_cluster(k.shared, 16, dim3(16)) == cudaErrorInvalidClusterSize);
  CHECK(launch_cluster(k.shared, 8, dim3(0)) == cudaErrorInvalidClusterSize);
  CHECK(cudaFuncSetAttribute(k.shared, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) ==
        cudaSuccess);
  CHECK(launch_cluster(k.shared, 16, dim3(16)) == cudaSuccess);

  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeCooperative;
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.attrs = attributes;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelExC(&config, k.shared, nullptr) == cudaSuccess);
  config.attrs = nullptr;
  CHECK(cudaLaunchKernelExC(&config, k.shared, nullptr) == cudaErrorInvalidValue);
  config.attrs = attributes;
  config.numAttrs = 2;
  CHECK(cudaLaunchKernelExC(&config, k.shared, nullptr) == cudaErrorNotSupported);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

PASSES_IN_EVERY_ORDER("required block and cluster shapes") {
  const cudaLibrary_t library = load_library(kLimitedClusters, "sm_90");
  const void *shaped = kernel_of(library, "shaped"), *ranked = kernel_of(library, "ranked");
  const dim3 grid(2, 2), block(16, 2);
  CHECK(launch(shaped, grid, block) == cudaSuccess);
  CHECK(launch(shaped, grid, dim3(32)) == cudaErrorInvalidConfiguration);
  CHECK(launch(shaped, grid, dim3(16)) == cudaErrorInvalidConfiguration);
  CHECK(launch_cluster(shaped, grid, dim3(1, 2), block) == cudaSuccess);
  CHECK(launch_cluster(shaped, grid, dim3(2, 1), block) == cudaErrorInvalidClusterSize);
  CHECK(launch_cluster(shaped, grid, dim3(1, 1), block) == cudaErrorInvalidClusterSize);
  CHECK(launch(shaped, dim3(2, 1), block) == cudaErrorInvalidClusterSize);
  CHECK(launch_cluster(ranked, grid, dim3(2)) == cudaSuccess);
  CHECK(launch_cluster(ranked, dim3(4), dim3(4)) == cudaErrorInvalidClusterSize);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);

  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, shaped) == cudaSuccess);
  CHECK(attributes.requiredClusterWidth == 1);
  CHECK(attributes.requiredClusterHeight == 2);
  CHECK(attributes.requiredClusterDepth == 1);
}

PASSES_IN_EVERY_ORDER("function attributes") {
  const Limited k;
  cudaFuncAttributes attributes{};
  REQUIRE(cudaFuncGetAttributes(&attributes, k.bounded) == cudaSuccess);
  CHECK(attributes.maxThreadsPerBlock == 64);
  CHECK(attributes.ptxVersion == 75);
  REQUIRE(cudaFuncGetAttributes(&attributes, k.shared) == cudaSuccess);
  CHECK(attributes.maxThreadsPerBlock == 1024);
  CHECK(attributes.sharedSizeBytes == 1024);
  const int unknown = 0;
  CHECK(cudaFuncGetAttributes(&attributes, &unknown) == cudaErrorInvalidDeviceFunction);
  CHECK(launch(&unknown, dim3(1), dim3(1)) == cudaErrorInvalidDeviceFunction);

  const auto blocks = [](const void *kernel, int threads, size_t smem) {
    int count = -1;
    REQUIRE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel, threads, smem) ==
            cudaSuccess);
    return count;
  };
  CHECK(blocks(k.shared, 1024, 0) == 2);
  CHECK(blocks(k.shared, 32, 0) == 32);
  // 98 KiB plus 1 KiB each for the kernel and the system
  CHECK(blocks(k.shared, 32, 98 * 1024) == 2);
  CHECK(blocks(k.shared, 32, 1 << 20) == 0);
  CHECK(blocks(k.bounded, 64, 0) == 4);  // limited by 255 registers per thread
  CHECK(blocks(k.bounded, 65, 0) == 0);

  cudaKernel_t kernel = nullptr;
  CHECK(cudaLibraryGetKernel(&kernel, k.library, "absent") == cudaErrorSymbolNotFound);
  REQUIRE(cudaLibraryUnload(k.library) == cudaSuccess);
  CHECK(cudaLibraryUnload(k.library) == cudaErrorInvalidResourceHandle);
  CHECK(launch(k.shared, dim3(1), dim3(1)) == cudaErrorInvalidDeviceFunction);
}

PASSES_ON_EVERY_ARCHITECTURE("a device of this architecture") {
  const int arch = std::stoi(getenv("SOFTGPU_ARCH"));
  CHECK(10 * attribute(cudaDevAttrComputeCapabilityMajor) +
            attribute(cudaDevAttrComputeCapabilityMinor) ==
        arch);
  struct Limits {
    int smem_kib, threads, sms;
  };
  const std::map<int, Limits> limits = {{75, {64, 1024, 40}},    {80, {163, 2048, 108}},
                                        {89, {99, 1536, 142}},   {90, {227, 2048, 132}},
                                        {100, {227, 2048, 148}}, {120, {99, 1536, 170}}};
  CHECK(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) == limits.at(arch).smem_kib * 1024);
  CHECK(attribute(cudaDevAttrMaxThreadsPerMultiProcessor) == limits.at(arch).threads);
  CHECK(attribute(cudaDevAttrMultiProcessorCount) == limits.at(arch).sms);
  CHECK(attribute(cudaDevAttrClusterLaunch) == (arch >= 90));
  cudaDeviceProp properties{};
  REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK(10 * properties.major + properties.minor == arch);
  CHECK(std::string(properties.name).find("softgpu") == 0);
  char bus[32];
  REQUIRE(cudaDeviceGetPCIBusId(bus, sizeof bus, 0) == cudaSuccess);
  CHECK(std::string(bus) == "0000:17:00.0");
  const Limited k;
  CHECK((launch_cluster(k.shared, 2, dim3(2)) == cudaSuccess) == (arch >= 90));
  CHECK((TiledMap().tiled() == CUDA_SUCCESS) == (arch >= 90));
}

PASSES_IN_EVERY_ORDER("tensor map limits") {
  CHECK(TiledMap().tiled() == CUDA_SUCCESS);
  CHECK(TiledMap().im2col() == CUDA_SUCCESS);
  is_rejected([](TiledMap &m) { m.map = reinterpret_cast<CUtensorMap *>(m.storage.data() + 32); });
  is_rejected([](TiledMap &m) { m.missing = &m.sizes; });
  is_rejected([](TiledMap &m) { m.missing = &m.strides; });
  is_rejected([](TiledMap &m) { m.missing = &m.steps; });
  is_rejected([](TiledMap &m) { m.rank = 0; });
  is_rejected([](TiledMap &m) { m.rank = 6; });
  is_rejected([](TiledMap &m) { m.base += 8; });
  is_rejected([](TiledMap &m) { m.sizes[1] = 0; });
  is_rejected([](TiledMap &m) { m.sizes[1] = (1ull << 32) + 1; });
  is_rejected([](TiledMap &m) { m.strides[0] = 136; });
  is_rejected([](TiledMap &m) { m.strides[1] = 1ull << 40; });
  is_rejected([](TiledMap &m) { m.steps[0] = 0; });
  is_rejected([](TiledMap &m) { m.steps[0] = 9; });
  is_rejected([](TiledMap &m) { m.box[0] = m.channels = 128; });  // wider than the swizzle
  is_rejected([](TiledMap &m) { m.box[0] = m.channels = 4; });
  is_rejected([](TiledMap &m) { m.box[1] = m.pixels = 0; });
  is_rejected([](TiledMap &m) { m.box[1] = 257, m.pixels = 1025; });
  is_rejected([](TiledMap &m) {
    m.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
    m.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  });
  TiledMap flat;
  flat.rank = 2;
  CHECK(flat.tiled() == CUDA_SUCCESS);
  CHECK(flat.im2col() == CUDA_ERROR_INVALID_VALUE);
  TiledMap incomplete;
  incomplete.missing = &incomplete.box;
  CHECK(incomplete.tiled() == CUDA_ERROR_INVALID_VALUE);
  incomplete.missing = &incomplete.lower;
  CHECK(incomplete.im2col() == CUDA_ERROR_INVALID_VALUE);
  TiledMap large;  // 4 GiB
  large.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  large.rank = 5;
  large.sizes = {64, 256, 256, 256, 16};
  large.box = {16, 256, 256, 256, 16};
  CHECK(large.tiled() == CUDA_ERROR_INVALID_VALUE);
  large.box = {16, 256, 32, 1, 1};
  CHECK(large.tiled() == CUDA_SUCCESS);
  TiledMap corner;
  corner.upper[0] = 40000;
  CHECK(corner.im2col() == CUDA_ERROR_INVALID_VALUE);
  corner.upper[0] = -40;  // removes more than the 32 pixels
  CHECK(corner.im2col() == CUDA_ERROR_INVALID_VALUE);
}

PASSES_IN_EVERY_ORDER("driver functions") {
  void *function = &function;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, 0, &found) ==
          cudaSuccess);
  CHECK(found == cudaDriverEntryPointSymbolNotFound);
  CHECK(function == nullptr);
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 11000, 0, &found) ==
          cudaSuccess);
  CHECK(found == cudaDriverEntryPointVersionNotSufficent);
  const char *text = nullptr;
  CHECK(look_up<decltype(&cuGetErrorName)>("cuGetErrorName")(CUDA_ERROR_INVALID_VALUE, &text) ==
        CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_INVALID_VALUE");
  CHECK(look_up<decltype(&cuGetErrorName)>("cuGetErrorName")(CUDA_SUCCESS, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
}

IS_REPORTED("a fault stops the device until it is reset", "FAULT") {
  uint32_t *words = nullptr;
  {
    const Kernels kernels;
    REQUIRE(kernels.set(&words, kNew) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(kernels.set(&words, kNew) == cudaErrorIllegalAddress);
  }
  void *memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  cudaError_t in_thread = cudaSuccess;
  std::thread([&] { in_thread = cudaDeviceSynchronize(); }).join();
  CHECK(in_thread == cudaErrorIllegalAddress);
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
}

IS_REPORTED("unsupported PTX", "frobnicate") {
  constexpr char kText[] = ".visible .entry strange() { frobnicate.u32; ret; }";
  CHECK(launch(kernel_of(load_library(kText), "strange"), dim3(1), dim3(1)) ==
        cudaErrorInvalidKernelImage);
}

TEST_CASE("case: injected errors", "[.]") {
  void *memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  CHECK(cudaMalloc(&memory, 16) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMemset(memory, 0, 16) == cudaErrorNotSupported);
  const Kernels kernels;
  uint32_t *const words = device_words();
  CHECK(kernels.set(words, kNew) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(kernels.set(words, kNew) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
}

PASSES("a child of a process that used the device") {
  const pid_t unused = fork();
  if (unused == 0) {
    int count = 0;
    _exit(cudaGetDeviceCount(&count) == cudaSuccess && count == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(unused, &status, 0) == unused);
  CHECK(WEXITSTATUS(status) == 0);

  uint32_t *const words = device_words();
  const Kernels kernels;
  REQUIRE(kernels.set(words, kNew) == cudaSuccess);
  const pid_t used = fork();
  if (used == 0) {
    const bool fails = cudaDeviceSynchronize() == cudaErrorInitializationError &&
                       cudaGetLastError() == cudaErrorInitializationError;
    std::exit(fails ? 0 : 1);
  }
  REQUIRE(waitpid(used, &status, 0) == used);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  require_words(words, kNew);
}

TEST_CASE("runtime: SOFTGPU_FAIL injects errors", "[runtime]") {
  const CaseResult result =
      run_case("case: injected errors",
               {{"SOFTGPU_FAIL", "cudaMalloc:2,cudaMemset:1=cudaErrorNotSupported,launch:2"}});
  INFO(result);
  CHECK(result.passed());
  for (const char *bad : {"cudaMalloc", "cudaMalloc:0", "cudaMalloc:x", "cudaMalloc:1=cudaNo"}) {
    const CaseResult rejected = run_case("case: injected errors", {{"SOFTGPU_FAIL", bad}});
    INFO(rejected);
    CHECK(rejected.exit_code == 2);
    CHECK(rejected.says("SOFTGPU_FAIL"));
  }
}
