// GEMMs of CUTLASS 3 for sm_90 (TMA, wgmma) from its collective builder.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>
#include <cutlass/util/packed_stride.hpp>
#include <type_traits>

#include "cutlass_launch.h"
#include "reference.h"
#include "report.h"

namespace calibration {

using Half = cutlass::half_t;
using Bfloat = cutlass::bfloat16_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
template <int m, int n, int k>
using Size = cute::Shape<cute::Int<m>, cute::Int<n>, cute::Int<k>>;

// Main loop and epilogue schedules.
struct Cooperative {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
};
struct PingPong {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
};
struct Plain {
  using Mainloop = cutlass::gemm::KernelTmaWarpSpecialized;
  using Epilogue = cutlass::epilogue::NoSmemWarpSpecialized;
};

/// A kernel type; in grouped GEMMs, layouts are pointers to layouts.
template <class Problem, class Element, class LayoutA, class LayoutB, class Output, class LayoutD,
          class Tile, class Cluster, class Schedule, class Tiles = void>
struct GemmKernel {
  static constexpr int kAlignment = 16 / sizeof(Output);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, Output, LayoutD, kAlignment,
      Output, LayoutD, kAlignment, typename Schedule::Epilogue>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, LayoutA, 8, Element, LayoutB, 8,
      float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<int(
          sizeof(typename Epilogue::SharedStorage))>,
      typename Schedule::Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Problem, Mainloop, Epilogue, Tiles>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};

template <class Layout>
Strides strides_of(int rows, int columns) {
  return std::is_same_v<Layout, Row> ? row_major(columns) : column_major(rows);
}

/// Runs a batch of two products, D = A B + beta C.
template <class Element, class LayoutA, class LayoutB, class Output, class Tile, class Cluster,
          class Schedule, class Tiles = void>
void run_gemm(Report &report, const std::string &name, GemmSize size, float beta = 0) {
  if (!report.wants(name)) return;
  using Kernels = GemmKernel<cute::Shape<int, int, int, int>, Element, LayoutA, LayoutB, Output,
                             Row, Tile, Cluster, Schedule, Tiles>;
  using Kernel = typename Kernels::Kernel;
  using Gemm = typename Kernels::Gemm;
  constexpr int kBatch = 2;
  const auto [m, n, k] = size;
  const auto a = small_integers<Element>(size_t(kBatch) * m * k, 1);
  const auto b = small_integers<Element>(size_t(kBatch) * k * n, 2);
  const auto c = small_integers<Output>(size_t(kBatch) * m * n, 3);
  const OnDevice<Element> on_device_a(a), on_device_b(b);
  const OnDevice<Output> on_device_c(c), on_device_d(c.size());

  const auto stride = [&](auto kind, int rows, int columns) {
    return cutlass::make_cute_packed_stride(kind, cute::make_shape(rows, columns, kBatch));
  };
  typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                     {m, n, k, kBatch},
                                     {on_device_a.get(), stride(typename Kernel::StrideA{}, m, k),
                                      on_device_b.get(), stride(typename Kernel::StrideB{}, n, k)},
                                     {{1.0f, beta},
                                      on_device_c.get(),
                                      stride(typename Kernel::StrideC{}, m, n),
                                      on_device_d.get(),
                                      stride(typename Kernel::StrideD{}, m, n)}};
  // Few enough blocks that each computes several tiles.
  arguments.hw_info.sm_count = int(cute::size(Cluster{})) * 2 + 1;
  const OnDevice<char> workspace = workspace_of<Gemm>(arguments);
  if (const std::string error = launch<Gemm>(arguments, workspace); !error.empty())
    return report.say(name, error);

  std::vector<float> want;
  for (int i = 0; i < kBatch; i++) {
    const auto d = product(size, &a[size_t(i) * m * k], strides_of<LayoutA>(m, k),
                           &b[size_t(i) * k * n], strides_of<LayoutB>(k, n));
    want.insert(want.end(), d.begin(), d.end());
  }
  for (size_t i = 0; i < want.size(); i++) want[i] += beta * float(c[i]);
  report.compare(name, on_device_d.read(), want);
}

/// Runs the kernels that exist for each order of operands.
template <class LayoutA, class LayoutB>
void run_cooperative_and_ping_pong(Report &report, const std::string &order) {
  run_gemm<Half, LayoutA, LayoutB, float, Size<128, 128, 64>, Size<1, 1, 1>, Cooperative>(
      report, order + " cooperative 128x128x64, C added, fp32", {200, 136, 200}, 1);
  run_gemm<Half, LayoutA, LayoutB, Half, Size<64, 128, 64>, Size<2, 1, 1>, PingPong>(
      report, order + " ping-pong 64x128x64, cluster 2x1, fp16", {200, 264, 136});
}

}  // namespace calibration
