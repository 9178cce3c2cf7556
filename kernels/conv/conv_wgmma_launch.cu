// Launch of the wgmma convolution kernels: tensor maps, store path, stride phases.
#include <algorithm>

#include "kernels/conv/conv_wgmma_args.h"
#include "kernels/gemm/wgmma_plan.h"

namespace mp::MP_TARGET {

namespace {

/// Returns the map of the filter: one matrix per tap, with output channels as rows.
TensorMapSpec filter_spec(const ConvProblem &problem, const void *filter, mp_dtype_t dtype,
                          int box_rows) {
  const ConvShape &s = problem.shape;
  const int64_t taps = int64_t{s.r} * s.s;
  return {.base = filter,
          .dtype = dtype,
          .extent = {s.c, s.k, taps},
          .stride = {taps * s.c, s.c},
          .box = {kTapBlock, box_rows},
          .swizzle_128 = true};
}

/// Returns the map of dy, with one row per pixel.
TensorMapSpec gradient_spec(const ConvProblem &problem, int box_rows) {
  const ConvShape &s = problem.shape;
  return {.base = problem.other,
          .dtype = problem.dtype,
          .extent = {s.k, int64_t{s.n} * s.p * s.q, 1},
          .stride = {s.k, 0},
          .box = {kTapBlock, box_rows},
          .swizzle_128 = true};
}

/// Sets the maps of A and B.  A load of the image contains 64 pixels in wgrad, else all or half of
/// the rows of a tile.
void set_operands(ConvWgmmaArgs &args, const ConvProblem &problem, const GemmPlan &choice) {
  const GemmKernel &kernel = *choice.kernel;
  const bool is_clustered = choice.cluster > 1;
  if (problem.op == MP_CONV_WGRAD) {
    args.a = tensor_map(gradient_spec(problem, kernel.tile_k));
    args.b = im2col_map(im2col_spec(problem, kernel.tile_k));
    return;
  }
  const bool by_k = problem.op == MP_CONV_FPROP;
  const int rows_a = wgmma_box_rows(true, kernel.tile_m, is_clustered && !kernel.cluster_along_m);
  const int rows_b = wgmma_box_rows(by_k, kernel.tile_n, is_clustered && kernel.cluster_along_m);
  args.a = im2col_map(im2col_spec(problem, rows_a));
  args.b = tensor_map(filter_spec(problem, problem.other, problem.dtype, rows_b));
}

void set_output(ConvWgmmaArgs &args, const ConvProblem &problem) {
  const Output &out = args.problem.out;
  if (problem.op == MP_CONV_WGRAD) {
    const TensorMapSpec filter = filter_spec(problem, out.d.base, out.dtype, kSubtileRows);
    return plan_wgmma_store(filter, nullptr, &args);
  }
  const TensorMapSpec source_map = wgmma_spec_source(out);
  plan_wgmma_store(wgmma_spec_d(out), &source_map, &args);
}

void set_walks(ConvWgmmaArgs &args, const ConvProblem &problem) {
  const ConvShape &s = problem.shape;
  const bool is_dgrad = problem.op == MP_CONV_DGRAD;
  const Im2colSpec image = im2col_spec(problem, kTapBlock);
  const int32_t channels = static_cast<int32_t>(image.extent[0]);
  TapBlocks &taps = args.taps;
  taps.taps = s.r * s.s;
  taps.channels = channels;
  taps.padded = fast_divisor(ceil_div(channels, kTapBlock) * kTapBlock);
  taps.across = fast_divisor(s.s);
  taps.next = 1;
  taps.next_row = s.s;
  taps.step_w = is_dgrad ? -s.dilation_w : s.dilation_w;
  taps.step_h = is_dgrad ? -s.dilation_h : s.dilation_h;
  taps.first_w = is_dgrad ? (s.s - 1) * s.dilation_w : 0;
  taps.first_h = is_dgrad ? (s.r - 1) * s.dilation_h : 0;
  const int32_t rows = is_dgrad ? dgrad_h(s).pixels : s.p;
  const int32_t cols = is_dgrad ? dgrad_w(s).pixels : s.q;
  args.places = {fast_divisor(int64_t{rows} * cols),
                 fast_divisor(cols),
                 image.lower[0],
                 image.lower[1],
                 image.step[0],
                 image.step[1]};
}

// ---- dgrad with a stride

/// Returns the phases of one direction.  `lower`: first coordinate of the image's map; `number`:
/// index step between taps.
StridePhases stride_phases(const DgradAxis &axis, int32_t lower, int32_t number) {
  StridePhases all{axis.classes, axis.extent, axis.stride, {}};
  for (int32_t residue = 0; residue < axis.classes; residue++) {
    const DgradPhase own(axis, residue);
    all.at[residue] = {residue, fast_divisor(max_of(own.taps, 1)), own.taps, own.first_tap * number,
                       own.offset - lower};
  }
  std::stable_sort(all.at, all.at + axis.classes,
                   [](const StridePhase &a, const StridePhase &b) { return a.taps > b.taps; });
  return all;
}

void set_classes(DgradWgmmaArgs &args, const ConvProblem &problem) {
  const ConvShape &s = problem.shape;
  const Im2colSpec image = im2col_spec(problem, kTapBlock);
  const DgradDirection h = dgrad_h(s), w = dgrad_w(s);
  args.h = stride_phases(dgrad_axis(s, true), image.lower[1], s.s);
  args.w = stride_phases(dgrad_axis(s, false), image.lower[0], 1);
  args.classes = fast_divisor(args.w.count);
  args.common_k_tiles = 0;
  args.taps.next = w.tap_step;
  args.taps.next_row = h.tap_step * s.s;
  args.taps.step_w = -w.dy_step;
  args.taps.step_h = -h.dy_step;
}

/// Returns the map of the pixels of dx in one column phase: one matrix per image row.
TensorMapSpec class_spec(const Output &out, const ConvShape &s, const StridePhase &columns) {
  const int64_t first = int64_t{columns.residue} * s.c;
  return {.base = static_cast<const char *>(out.d.base) + first * dtype_bytes(out.dtype),
          .dtype = out.dtype,
          .extent = {s.c, ceil_div(s.w - columns.residue, s.stride_w), int64_t{s.n} * s.h},
          .stride = {int64_t{s.stride_w} * s.c, int64_t{s.w} * s.c},
          .box = {kTapBlock, kLinePixels},
          .swizzle_128 = true};
}

/// Returns the map of the epilogue source, from which TMA loads one subtile of a stride phase at a
/// time.
Im2colSpec source_spec(const Output &out, const ConvShape &s) {
  const Operand matrix = wgmma_source_operand(out);
  const auto upper = [](const DgradDirection &d, int32_t extent, int32_t stride) {
    return (d.pixels - 1) * stride - (extent - 1);
  };
  return {.base = matrix.base,
          .dtype = out.dtype,
          .extent = {s.c, s.w, s.h, s.n},
          .stride = {matrix.ld, matrix.ld * s.w, matrix.ld * s.w * s.h},
          .lower = {0, 0},
          .upper = {upper(dgrad_w(s), s.w, s.stride_w), upper(dgrad_h(s), s.h, s.stride_h)},
          .step = {s.stride_w, s.stride_h},
          .channels = kTapBlock,
          .pixels = kSubtileRows,
          .swizzle_128 = true};
}

/// Selects the store path: TMA, unless dx is fp32, the epilogue writes aux, or a map is not
/// supported.
void set_class_output(DgradWgmmaArgs &args, const ConvProblem &problem) {
  const Output &out = args.problem.out;
  args.source = wgmma_epilogue_source(out);
  args.store = StorePath::staged;
  if (out.dtype == MP_FP32) return;
  if (args.source == EpilogueSource::c || args.source == EpilogueSource::aux_read) {
    const Im2colSpec source_map = source_spec(out, problem.shape);
    if (why_no_tensor_map(source_map) != nullptr) return;
    args.source_map = im2col_map(source_map);
  } else if (args.source != EpilogueSource::none) {
    return;
  }
  for (int32_t i = 0; i < args.w.count; i++) {
    const TensorMapSpec spec = class_spec(out, problem.shape, args.w.at[i]);
    if (why_no_tensor_map(spec) != nullptr) return;
    args.d_columns[i] = tensor_map(spec);
  }
  args.store = StorePath::tma;
}

/// Sets all arguments except the store path and the partial sums.
void plan_conv(const ConvPlan &choice, const ConvProblem &problem, const Device &device,
               ConvWgmmaArgs &args) {
  const GemmArgs gemm = make_gemm_args(im2col_gemm(problem), choice.gemm, device);
  static_cast<WgmmaArgs &>(args) = plan_wgmma(choice.gemm, gemm);
  set_operands(args, problem, choice.gemm);
  set_walks(args, problem);
}

}  // namespace

void launch_conv_wgmma(const ConvPlan &choice, const ConvProblem &problem, const Device &device,
                       const ColumnPartials &sums, float *partial_sums, mp_stream_t stream) {
  const bool is_split = choice.gemm.split_k > 1;
  if (is_strided_dgrad(problem)) {
    DgradWgmmaArgs args{};
    plan_conv(choice, problem, device, args);
    set_classes(args, problem);
    if (is_split)
      plan_wgmma_slices(problem.out, partial_sums, &args);
    else
      set_class_output(args, problem);
    launch_dgrad_wgmma_kernel(choice, device, args, stream);
  } else {
    ConvWgmmaArgs args{};
    plan_conv(choice, problem, device, args);
    args.column_partials = sums;
    if (is_split)
      plan_wgmma_slices(problem.out, partial_sums, &args);
    else
      set_output(args, problem);
    launch_conv_wgmma_kernel(choice, problem.op, device, args, stream);
  }
}

}  // namespace mp::MP_TARGET
