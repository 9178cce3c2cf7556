// GEMMs of CUTLASS 2 for sm_80: cp.async, ldmatrix and mma.sync, or wmma.
#include <cutlass/gemm/device/gemm.h>
#include <algorithm>
#include <type_traits>

#include "reference.h"
#include "report.h"

namespace calibration {
namespace {

using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
template <int m, int n, int k>
using Size = cutlass::gemm::GemmShape<m, n, k>;

template <class Layout>
Strides strides_of(int rows, int columns) {
  return std::is_same_v<Layout, Row> ? row_major(columns) : column_major(rows);
}

/// D = A B + C.
template <class Element, class LayoutA, class LayoutB, class Output, class Sum, class Block,
          class OfWarp, class OfInstruction, int kStages,
          class Operators = cutlass::arch::OpClassTensorOp>
void run(Report &report, const std::string &name, GemmSize size) {
  if (!report.wants(name)) return;
  using Epilogue =
      cutlass::epilogue::thread::LinearCombination<Output, 16 / sizeof(Output), Sum, Sum>;
  using Gemm =
      cutlass::gemm::device::Gemm<Element, LayoutA, Element, LayoutB, Output, Row, Sum, Operators,
                                  cutlass::arch::Sm80, Block, OfWarp, OfInstruction, Epilogue,
                                  cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>,
                                  kStages>;
  const auto [m, n, k] = size;
  const auto a = small_integers<Element>(size_t(m) * k, 1);
  const auto b = small_integers<Element>(size_t(k) * n, 2);
  const auto c = small_integers<Output>(size_t(m) * n, 3);
  const OnDevice<Element> on_device_a(a), on_device_b(b);
  const OnDevice<Output> on_device_c(c), on_device_d(c.size());
  const Strides a_strides = strides_of<LayoutA>(m, k), b_strides = strides_of<LayoutB>(k, n);
  const auto leading = [](Strides s) { return int(std::max(s.row, s.column)); };
  Gemm gemm;
  const cutlass::Status status = gemm({{m, n, k},
                                       {on_device_a.get(), leading(a_strides)},
                                       {on_device_b.get(), leading(b_strides)},
                                       {on_device_c.get(), n},
                                       {on_device_d.get(), n},
                                       {Sum(1), Sum(1)}});
  if (status != cutlass::Status::kSuccess) return report.say(name, cutlassGetStatusString(status));
  std::vector<float> want = product(size, a.data(), a_strides, b.data(), b_strides);
  for (size_t i = 0; i < want.size(); i++) want[i] += float(c[i]);
  report.compare(name, on_device_d.read(), want);
}

}  // namespace
}  // namespace calibration

int main(int argc, char **argv) {
  using namespace calibration;
  using cutlass::bfloat16_t;
  using cutlass::tfloat32_t;
  Report report(argc, argv);
  run<Half, Row, Column, float, float, Size<128, 128, 32>, Size<64, 64, 32>, Size<16, 8, 16>, 3>(
      report, "TN fp16 128x128x32", {200, 136, 136});
  run<Half, Column, Row, Half, float, Size<64, 128, 32>, Size<32, 64, 32>, Size<16, 8, 16>, 4>(
      report, "NT fp16 64x128x32, D in fp16", {136, 200, 104});
  run<bfloat16_t, Row, Row, float, float, Size<128, 64, 64>, Size<64, 32, 64>, Size<16, 8, 16>, 3>(
      report, "TT bf16 128x64x64", {200, 136, 200});
  run<Half, Column, Column, Half, Half, Size<128, 128, 32>, Size<64, 64, 32>, Size<16, 8, 16>, 3>(
      report, "NN fp16 128x128x32, sums in fp16", {200, 136, 72});
  run<tfloat32_t, Row, Column, float, float, Size<128, 128, 16>, Size<64, 64, 16>, Size<16, 8, 8>,
      4>(report, "TN tf32 128x128x16", {136, 136, 72});
  using Wmma = cutlass::arch::OpClassWmmaTensorOp;
  run<Half, Row, Column, float, float, Size<64, 64, 32>, Size<32, 32, 32>, Size<16, 16, 16>, 2,
      Wmma>(report, "TN wmma 64x64x32", {200, 136, 104});
  run<Half, Column, Row, Half, float, Size<128, 64, 32>, Size<64, 32, 32>, Size<16, 16, 16>, 1,
      Wmma>(report, "NT wmma 128x64x32, one stage, D in fp16", {136, 200, 72});
  return report.finish();
}
