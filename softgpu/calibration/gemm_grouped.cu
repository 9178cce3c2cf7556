// Grouped GEMMs: each block modifies its tensor maps on the device for each group.
#include <cutlass/gemm/group_array_problem_shape.hpp>

#include "cutlass_gemm.h"

namespace calibration {
namespace {

struct GroupedCooperative {
  using Mainloop = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
};
struct GroupedPingPong {
  using Mainloop = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong;
};

const GemmSize kSizes[] = {
    {200, 136, 104}, {64, 264, 200}, {8, 8, 8}, {136, 40, 328}, {72, 128, 64}};

/// Operands of all groups and the kernel arguments: a pointer and a stride per group.
template <class Kernel>
struct Groups {
  template <class LayoutA, class LayoutB>
  void add(GemmSize size, LayoutA, LayoutB) {
    const auto [m, n, k] = size;
    const auto a = small_integers<Half>(size_t(m) * k, unsigned(m + 1));
    const auto b = small_integers<Half>(size_t(k) * n, unsigned(n + 2));
    want.push_back(
        product(size, a.data(), strides_of<LayoutA>(m, k), b.data(), strides_of<LayoutB>(k, n)));
    shapes.push_back(cute::make_shape(m, n, k));
    inputs.emplace_back(a);
    a_pointers.push_back(inputs.back().get());
    inputs.emplace_back(b);
    b_pointers.push_back(inputs.back().get());
    outputs.emplace_back(want.back().size());
    d_pointers.push_back(outputs.back().get());
    a_strides.push_back(packed(typename Kernel::InternalStrideA{}, m, k));
    b_strides.push_back(packed(typename Kernel::InternalStrideB{}, n, k));
    d_strides.push_back(packed(typename Kernel::InternalStrideD{}, m, n));
  }
  template <class Stride>
  static Stride packed(Stride stride, int rows, int columns) {
    return cutlass::make_cute_packed_stride(stride, cute::make_shape(rows, columns, 1));
  }

  std::vector<cute::Shape<int, int, int>> shapes;
  std::vector<OnDevice<Half>> inputs;
  std::vector<OnDevice<float>> outputs;
  std::vector<const Half *> a_pointers, b_pointers;
  std::vector<float *> d_pointers;
  std::vector<typename Kernel::InternalStrideA> a_strides;
  std::vector<typename Kernel::InternalStrideB> b_strides;
  std::vector<typename Kernel::InternalStrideD> d_strides;
  std::vector<std::vector<float>> want;
};

template <class LayoutA, class LayoutB, class Tile, class Cluster, class Schedule>
void run_groups(Report &report, const std::string &name) {
  if (!report.wants(name)) return;
  using Problem = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;
  using Kernels =
      GemmKernel<Problem, Half, LayoutA *, LayoutB *, float, Row *, Tile, Cluster, Schedule>;
  using Gemm = typename Kernels::Gemm;
  Groups<typename Kernels::Kernel> groups;
  for (const GemmSize &size : kSizes) groups.add(size, LayoutA{}, LayoutB{});

  const OnDevice shapes(groups.shapes);
  const OnDevice a(groups.a_pointers), b(groups.b_pointers);
  const OnDevice c(std::vector<const float *>(groups.d_pointers.begin(), groups.d_pointers.end()));
  const OnDevice d(groups.d_pointers);
  const OnDevice a_strides(groups.a_strides), b_strides(groups.b_strides);
  const OnDevice d_strides(groups.d_strides);
  typename Gemm::Arguments arguments;
  decltype(arguments.epilogue.thread) scales{};
  scales.alpha = 1;
  scales.beta = 0;
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = int(cute::size(Cluster{})) * 2;
  arguments = {cutlass::gemm::GemmUniversalMode::kGrouped,
               {int(groups.shapes.size()), shapes.get(), groups.shapes.data()},
               {a.get(), a_strides.get(), b.get(), b_strides.get()},
               {scales, c.get(), d_strides.get(), d.get(), d_strides.get()},
               hardware};
  const OnDevice<char> workspace = workspace_of<Gemm>(arguments);
  if (const std::string error = launch<Gemm>(arguments, workspace); !error.empty())
    return report.say(name, error);

  std::vector<float> got, want;
  for (size_t i = 0; i < groups.outputs.size(); i++) {
    const std::vector<float> one = groups.outputs[i].read();
    got.insert(got.end(), one.begin(), one.end());
    want.insert(want.end(), groups.want[i].begin(), groups.want[i].end());
  }
  report.compare(name, got, want);
}

}  // namespace
}  // namespace calibration

int main(int argc, char **argv) {
  using namespace calibration;
  Report report(argc, argv);
  run_groups<Row, Column, Size<128, 128, 64>, Size<2, 1, 1>, GroupedCooperative>(
      report, "TN grouped cooperative 128x128x64, cluster 2x1");
  run_groups<Column, Row, Size<64, 128, 64>, Size<1, 1, 1>, GroupedPingPong>(
      report, "NT grouped ping-pong 64x128x64");
  return report.finish();
}
