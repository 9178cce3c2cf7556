// Counts of a CUTLASS GEMM on the software device, for a shape of mpbench
// (bench/peers/count_cutlass).
//
//   cutlass_gemm ORDER M N K    prints the result of softgpu_take_counts for one call
//
// ORDER has mpcore's meaning: NT is A B^T of row-major matrices.  The kernel is the fastest one
// that CUTLASS's profiler finds for large squares on an H100: 128x256x64, clusters of 2x1, two
// warpgroups per tile.  As in mpbench's sets, NT and NN write FP16; TN, which computes weight
// gradients, accumulates in FP32.
#include <cuda_runtime_api.h>
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>
#include <string>

namespace {

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using Tile = cute::Shape<cute::_128, cute::_256, cute::_64>;
using Cluster = cute::Shape<cute::_2, cute::_1, cute::_1>;

template <class LayoutA, class LayoutB, class Output>
struct Kernels {
  static constexpr int kAlignment = 16 / sizeof(Output);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, Output, Row, kAlignment,
      Output, Row, kAlignment, cutlass::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, LayoutA, 8, Half, LayoutB, 8,
      float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<int(
          sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};

[[noreturn]] void fail(const char *what) {
  std::fprintf(stderr, "cutlass_gemm: %s\n", what);
  std::exit(1);
}

void *device_memory(size_t bytes) {
  void *data = nullptr;
  if (cudaMalloc(&data, bytes) != cudaSuccess || cudaMemset(data, 0, bytes) != cudaSuccess)
    fail("out of device memory");
  return data;
}

template <class LayoutA, class LayoutB, class Output>
void run(int m, int n, int k, float beta) {
  using Types = Kernels<LayoutA, LayoutB, Output>;
  using Kernel = typename Types::Kernel;
  using Gemm = typename Types::Gemm;
  const auto stride = [](auto kind, int rows, int columns) {
    return cutlass::make_cute_packed_stride(kind, cute::make_shape(rows, columns, 1));
  };
  auto *const a = static_cast<Half *>(device_memory(sizeof(Half) * m * k));
  auto *const b = static_cast<Half *>(device_memory(sizeof(Half) * n * k));
  auto *const d = static_cast<Output *>(device_memory(sizeof(Output) * m * n));
  typename Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      {m, n, k, 1},
      {a, stride(typename Kernel::StrideA{}, m, k), b, stride(typename Kernel::StrideB{}, n, k)},
      {{1.0f, beta},
       d,
       stride(typename Kernel::StrideC{}, m, n),
       d,
       stride(typename Kernel::StrideD{}, m, n)}};
  arguments.hw_info = cutlass::KernelHardwareInfo::make_kernel_hardware_info<Kernel>();
  Gemm gemm;
  if (gemm.can_implement(arguments) != cutlass::Status::kSuccess)
    fail("CUTLASS does not support this GEMM");
  void *const workspace = device_memory(Gemm::get_workspace_size(arguments) + 1);
  if (gemm.initialize(arguments, workspace) != cutlass::Status::kSuccess ||
      gemm.run() != cutlass::Status::kSuccess)
    fail("the kernel failed to launch");
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5) fail("usage: cutlass_gemm ORDER M N K");
  const std::string order = argv[1];
  const int m = std::atoi(argv[2]), n = std::atoi(argv[3]), k = std::atoi(argv[4]);
  if (order == "NT")
    run<Row, Column, Half>(m, n, k, 0);
  else if (order == "NN")
    run<Row, Row, Half>(m, n, k, 0);
  else if (order == "TN")
    run<Column, Row, float>(m, n, k, 1);
  else
    fail("ORDER must be NT, NN or TN");
  const auto take = reinterpret_cast<const char *(*)()>(dlsym(RTLD_DEFAULT, "softgpu_take_counts"));
  const char *const counts = take == nullptr ? nullptr : take();
  if (counts == nullptr) fail("requires the software device with SOFTGPU_COUNT=1");
  std::puts(counts);
}
