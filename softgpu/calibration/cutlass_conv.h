// Convolutions of CUTLASS 3 for sm_90: implicit GEMMs that load the image in TMA's im2col mode.
#pragma once

#include <cutlass/cutlass.h>
#include <cutlass/kernel_hardware_info.h>
#include <cute/tensor.hpp>
#include <cutlass/conv/collective/collective_builder.hpp>
#include <cutlass/conv/device/conv_universal_adapter.hpp>
#include <cutlass/conv/kernel/conv_universal.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/util/packed_stride.hpp>
#include <iterator>
#include <tuple>
#include <type_traits>

#include "cutlass_launch.h"
#include "reference.h"
#include "report.h"

namespace calibration {

using Half = cutlass::half_t;
using cutlass::conv::Operator;

template <int dims>
using ImageLayout =
    std::tuple_element_t<dims - 1,
                         std::tuple<cutlass::layout::TensorNWC, cutlass::layout::TensorNHWC,
                                    cutlass::layout::TensorNDHWC>>;
template <int dims>
using FilterLayout =
    std::tuple_element_t<dims - 1,
                         std::tuple<cutlass::layout::TensorKCS, cutlass::layout::TensorKCSR,
                                    cutlass::layout::TensorKCSRT>>;

constexpr ConvPass pass_of(Operator op) {
  return op == Operator::kFprop   ? ConvPass::kForward
         : op == Operator::kDgrad ? ConvPass::kDataGradient
                                  : ConvPass::kFilterGradient;
}

template <Operator op, int dims, class Tile, class Cluster, class Output>
struct ConvKernel {
  using Image = ImageLayout<dims>;
  using Result = std::conditional_t<op == Operator::kWgrad, FilterLayout<dims>, Image>;
  using Store = std::conditional_t<op == Operator::kWgrad, cutlass::epilogue::NoSmemWarpSpecialized,
                                   cutlass::epilogue::TmaWarpSpecialized>;
  static constexpr int kAlignment = 16 / sizeof(Output);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, Output, Result, kAlignment,
      Output, Result, kAlignment, Store>::CollectiveOp;
  using Mainloop = typename cutlass::conv::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, op, Half, Image, 8, Half, Image, 8,
      float, Tile, Cluster,
      cutlass::conv::collective::StageCountAutoCarveout<int(
          sizeof(typename Epilogue::SharedStorage))>,
      cutlass::conv::collective::KernelScheduleAuto>::CollectiveOp;
  using Shape = cutlass::conv::ConvProblemShape<op, dims>;
  using Kernel = cutlass::conv::kernel::ConvUniversal<Shape, Mainloop, Epilogue>;
  using Conv = cutlass::conv::device::ConvUniversalAdapter<Kernel>;
};

/// CUTLASS arguments of a problem, which has the last `dims` axes.
template <class Shape, int dims>
Shape shape_of(const ConvProblem &p) {
  typename Shape::TensorExtent image{}, filter{};
  typename Shape::SpatialExtent pad_low{}, pad_high{}, stride{}, dilation{};
  image[0] = p.n;
  image[dims + 1] = filter[dims + 1] = p.c;
  filter[0] = p.k;
  for (int i = 0; i < dims; i++) {
    const int axis = i + 3 - dims;
    image[i + 1] = p.image[axis];
    filter[i + 1] = p.filter[axis];
    pad_low[i] = p.pad_low[axis];
    pad_high[i] = p.pad_high[axis];
    stride[i] = p.stride[axis];
    dilation[i] = p.dilation[axis];
  }
  return Shape(cutlass::conv::Mode::kCrossCorrelation, image, filter, pad_low, pad_high, stride,
               dilation, 1);
}

/// Strides of the output; strides of an image are nested.
template <Operator op, class Stride, class Shape>
Stride result_stride(const Shape &shape) {
  Stride stride{};
  if constexpr (op == Operator::kWgrad)
    stride = cutlass::make_cute_packed_stride(Stride{}, shape.shape_C, shape.stride_C, op);
  else
    cute::for_each(cute::make_seq<cute::rank<0>(Stride{})>{},
                   [&](auto i) { cute::get<0, i>(stride) = shape.stride_C[Shape::RankT - 2 - i]; });
  return stride;
}

template <Operator op, int dims, class Tile, class Cluster, class Output>
void run_conv(Report &report, const std::string &kind, const ConvProblem &p) {
  constexpr ConvPass kPass = pass_of(op);
  const std::string name = kind + ", " + to_string(p);
  if (!report.wants(name)) return;
  using Kernels = ConvKernel<op, dims, Tile, Cluster, Output>;
  using Kernel = typename Kernels::Kernel;
  using Conv = typename Kernels::Conv;
  const ConvTensors want = convolved(kPass, p);
  const std::vector<float> &a = kPass == ConvPass::kForward ? want.x : want.y;
  const std::vector<float> &b = kPass == ConvPass::kFilterGradient ? want.x : want.w;
  const OnDevice<Half> on_device_a(std::vector<Half>(a.begin(), a.end()));
  const OnDevice<Half> on_device_b(std::vector<Half>(b.begin(), b.end()));
  const OnDevice<Output> result(want.result(kPass).size());

  const auto shape = shape_of<typename Kernels::Shape, dims>(p);
  typename Conv::Arguments arguments{shape,
                                     {on_device_a.get(), on_device_b.get()},
                                     {{},
                                      result.get(),
                                      result_stride<op, typename Kernel::StrideC>(shape),
                                      result.get(),
                                      result_stride<op, typename Kernel::StrideD>(shape)},
                                     cutlass::KernelHardwareInfo{0, 132},
                                     {}};
  arguments.epilogue.thread.alpha = 1;
  arguments.epilogue.thread.beta = 0;
  const OnDevice<char> workspace = workspace_of<Conv>(arguments);
  if (const std::string error = launch<Conv>(arguments, workspace); !error.empty())
    return report.say(name, error);
  report.compare(name, result.read(), want.result(kPass));
}

// One-sided padding, and different strides and dilations; problems from kFirstStrided on are
// strided.
constexpr int kFirstStrided = 3;
const ConvProblem kImages[] = {
    {2, {1, 7, 9}, 72, 40, {1, 3, 3}, {0, 1, 1}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {3, {1, 8, 11}, 64, 96, {1, 3, 2}, {0, 2, 1}, {0, 0, 2}, {1, 1, 1}, {1, 1, 1}},
    {2, {1, 11, 10}, 40, 64, {1, 3, 3}, {0, 2, 1}, {0, 1, 2}, {1, 1, 1}, {1, 2, 3}},
    {2, {1, 11, 13}, 72, 40, {1, 3, 3}, {0, 1, 1}, {0, 1, 0}, {1, 2, 3}, {1, 1, 1}},
    {2, {1, 12, 13}, 64, 48, {1, 3, 2}, {0, 2, 1}, {0, 1, 2}, {1, 2, 2}, {1, 2, 3}}};
const ConvProblem kVolume = {2,         {4, 5, 6}, 40,        72,       {2, 3, 2},
                             {1, 1, 0}, {0, 1, 1}, {1, 1, 1}, {1, 1, 2}};
const ConvProblem kStridedVolume = {2,         {5, 6, 7}, 40,        72,       {2, 3, 2},
                                    {1, 1, 0}, {0, 1, 1}, {2, 1, 2}, {1, 1, 2}};
const ConvProblem kLine = {3,         {1, 1, 37}, 72,        40,       {1, 1, 5},
                           {0, 0, 3}, {0, 0, 1},  {1, 1, 1}, {1, 1, 2}};

/// Runs all problems; strided ones only if CUTLASS supports them.  A cluster of 1x2 multicasts the
/// image.
template <Operator op, class Tile64, class Tile128>
int run_all(Report &report, const std::string &pass) {
  using Alone = cute::Shape<cute::_1, cute::_1, cute::_1>;
  using Rows = cute::Shape<cute::_2, cute::_1, cute::_1>;
  using Columns = cute::Shape<cute::_1, cute::_2, cute::_1>;
  constexpr bool kHasStrides = op != Operator::kDgrad;
  for (int i = 0; i < (kHasStrides ? int(std::size(kImages)) : kFirstStrided); i++) {
    run_conv<op, 2, Tile64, Alone, float>(report, pass + " tile of 64, fp32", kImages[i]);
    run_conv<op, 2, Tile128, Rows, Half>(report, pass + " tile of 128, cluster 2x1, fp16",
                                         kImages[i]);
    if (i % 2 == 0)
      run_conv<op, 2, Tile128, Columns, Half>(report, pass + " tile of 128, cluster 1x2, fp16",
                                              kImages[i]);
  }
  run_conv<op, 3, Tile64, Rows, float>(report, pass + " 3-d, cluster 2x1, fp32", kVolume);
  if (kHasStrides)
    run_conv<op, 3, Tile64, Rows, float>(report, pass + " 3-d, cluster 2x1, fp32", kStridedVolume);
  run_conv<op, 1, Tile64, Alone, float>(report, pass + " 1-d, fp32", kLine);
  return report.finish();
}

}  // namespace calibration
