// From a checked convolution to the launch of a wgmma kernel.
#include "kernels/conv/conv_wgmma_args.h"
#include "kernels/gemm/wgmma_plan.h"

namespace mp::MP_TARGET {

namespace {

/// A matrix per tap: rows are output channels.
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

/// dy with a row per pixel.
TensorMapSpec gradient_spec(const ConvProblem &problem, int box_rows) {
  const ConvShape &s = problem.shape;
  return {.base = problem.other,
          .dtype = problem.dtype,
          .extent = {s.k, int64_t{s.n} * s.p * s.q, 1},
          .stride = {s.k, 0},
          .box = {kTapBlock, box_rows},
          .swizzle_128 = true};
}

/// One load of the image brings 64 pixels of k, or the rows of a tile, or half of them.
void set_operands(ConvWgmmaArgs &args, const ConvProblem &problem, const GemmChoice &choice) {
  const GemmKernel &kernel = *choice.kernel;
  const bool is_paired = choice.cluster > 1;
  if (problem.op == MP_CONV_WGRAD) {
    args.a = tensor_map(gradient_spec(problem, kernel.tile_k));
    args.b = im2col_map(im2col_spec(problem, kernel.tile_k));
    return;
  }
  const bool by_k = problem.op == MP_CONV_FPROP;
  const int rows_a = wgmma_box_rows(true, kernel.tile_m, is_paired && !kernel.pairs_in_m);
  const int rows_b = wgmma_box_rows(by_k, kernel.tile_n, is_paired && kernel.pairs_in_m);
  args.a = im2col_map(im2col_spec(problem, rows_a));
  args.b = tensor_map(filter_spec(problem, problem.other, problem.dtype, rows_b));
}

void set_output(ConvWgmmaArgs &args, const ConvProblem &problem) {
  constexpr int kStripRows = 16;
  const Output &out = args.problem.out;
  if (problem.op == MP_CONV_WGRAD) {
    const TensorMapSpec filter = filter_spec(problem, out.d.base, out.dtype, kStripRows);
    return plan_wgmma_store(filter, nullptr, &args);
  }
  const TensorMapSpec beside = wgmma_spec_side(out);
  plan_wgmma_store(wgmma_spec_d(out), &beside, &args);
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
  taps.step_w = is_dgrad ? -s.dilation_w : s.dilation_w;
  taps.step_h = is_dgrad ? -s.dilation_h : s.dilation_h;
  taps.first_w = is_dgrad ? (s.s - 1) * s.dilation_w : 0;
  taps.first_h = is_dgrad ? (s.r - 1) * s.dilation_h : 0;
  const int32_t rows = is_dgrad ? s.h : s.p, cols = is_dgrad ? s.w : s.q;
  args.places = {fast_divisor(int64_t{rows} * cols),
                 fast_divisor(cols),
                 image.lower[0],
                 image.lower[1],
                 image.step[0],
                 image.step[1]};
}

}  // namespace

void launch_conv_wgmma(const ConvChoice &choice, const ConvProblem &problem, const Device &device,
                       std::byte *workspace, mp_stream_t stream) {
  const GemmArgs gemm = make_gemm_args(im2col_gemm(problem), choice.gemm, device);
  ConvWgmmaArgs args{};
  static_cast<WgmmaArgs &>(args) = plan_wgmma(choice.gemm, gemm);
  set_operands(args, problem, choice.gemm);
  set_output(args, problem);
  set_walks(args, problem);
  start_wgmma_split(device, wgmma_workspace_of(args, choice.gemm, 0), workspace, &args, stream);
  with_half_type(problem.dtype, [&](auto type) {
    launch_conv_wgmma_kernel<typename decltype(type)::type>(choice, problem.op, device, args,
                                                            stream);
  });
}

}  // namespace mp::MP_TARGET
