// Data gradient of strided convolutions, which CUTLASS 3 lacks: CUTLASS 2 for sm_80, whose kernel
// computes one GEMM per stride phase.
#include <cutlass/conv/conv2d_problem_size.h>
#include <cutlass/conv/device/implicit_gemm_convolution.h>
#include <cutlass/conv/kernel/default_conv2d_dgrad.h>

#include "reference.h"
#include "report.h"

namespace calibration {
namespace {

using Half = cutlass::half_t;
using cutlass::conv::IteratorAlgorithm;
using cutlass::gemm::GemmShape;
using Nhwc = cutlass::layout::TensorNHWC;

template <class Output, IteratorAlgorithm algorithm>
using StridedDataGradient = cutlass::conv::device::ImplicitGemmConvolution<
    typename cutlass::conv::kernel::DefaultConv2dDgrad<
        Half, Nhwc, Half, Nhwc, Output, Nhwc, float, cutlass::arch::OpClassTensorOp,
        cutlass::arch::Sm80, GemmShape<128, 64, 32>, GemmShape<64, 32, 32>, GemmShape<16, 8, 16>,
        cutlass::epilogue::thread::LinearCombination<Output, 16 / sizeof(Output), float, float>,
        cutlass::conv::threadblock::StridedDgradIdentityThreadblockSwizzle<1>, 3,
        cutlass::arch::OpMultiplyAdd, algorithm, cutlass::conv::StrideSupport::kStrided>::Kernel>;

cutlass::conv::Conv2dProblemSize size_of(const ConvProblem &p) {
  return cutlass::conv::Conv2dProblemSize(
      {p.n, p.image[1], p.image[2], p.c}, {p.k, p.filter[1], p.filter[2], p.c},
      {p.pad_low[1], p.pad_high[1], p.pad_low[2], p.pad_high[2]}, {p.stride[1], p.stride[2]},
      {p.dilation[1], p.dilation[2]}, {p.n, p.output(1), p.output(2), p.k});
}

template <class Output, IteratorAlgorithm algorithm>
void run(Report &report, const std::string &kind, const ConvProblem &p) {
  const std::string name = "strided data gradient " + kind + ", " + to_string(p);
  if (!report.wants(name)) return;
  using Conv = StridedDataGradient<Output, algorithm>;
  const ConvTensors want = convolved(ConvPass::kDataGradient, p);
  const OnDevice<Half> y(std::vector<Half>(want.y.begin(), want.y.end()));
  const OnDevice<Half> w(std::vector<Half>(want.w.begin(), want.w.end()));
  const OnDevice<Output> x(p.x_size());
  const Nhwc x_layout = Nhwc::packed({p.n, p.image[1], p.image[2], p.c});
  const typename Conv::Arguments arguments(
      size_of(p), {y.get(), Nhwc::packed({p.n, p.output(1), p.output(2), p.k})},
      {w.get(), Nhwc::packed({p.k, p.filter[1], p.filter[2], p.c})}, {x.get(), x_layout},
      {x.get(), x_layout}, {1.0f, 0.0f});
  Conv conv;
  cutlass::Status status = Conv::can_implement(arguments);
  if (status == cutlass::Status::kSuccess) status = conv(arguments);
  if (status != cutlass::Status::kSuccess) return report.say(name, cutlassGetStatusString(status));
  report.compare(name, x.read(), want.x);
}

// Equal and different strides, larger than the filter, with pixels without a tap, or with
// overlapping filters.
const ConvProblem kProblems[] = {
    {2, {1, 11, 13}, 72, 40, {1, 3, 3}, {0, 1, 1}, {0, 1, 1}, {1, 2, 2}, {1, 1, 1}},
    {2, {1, 12, 13}, 64, 48, {1, 3, 2}, {0, 1, 0}, {0, 1, 0}, {1, 2, 3}, {1, 1, 1}},
    {3, {1, 9, 10}, 40, 72, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 2, 2}, {1, 1, 1}},
    {2, {1, 14, 9}, 64, 64, {1, 5, 4}, {0, 2, 1}, {0, 2, 1}, {1, 3, 1}, {1, 1, 1}}};

}  // namespace
}  // namespace calibration

int main(int argc, char **argv) {
  using namespace calibration;
  Report report(argc, argv);
  for (const ConvProblem &p : kProblems) {
    run<float, IteratorAlgorithm::kOptimized>(report, "fp32", p);
    run<Half, IteratorAlgorithm::kAnalytic>(report, "fp16, analytic", p);
  }
  return report.finish();
}
