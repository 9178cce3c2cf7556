// Launch of a Hopper convolution kernel.
#include <algorithm>

#include "kernels/conv/conv_wgmma_args.h"
#include "kernels/gemm/wgmma_args.h"

namespace mp::MP_TARGET {

namespace {

/// One load of the image brings 64 pixels of k, or the rows of a tile, or half of them.
void set_operands(ConvWgmmaArgs &args, const ConvProblem &problem, const GemmPlan &plan) {
  const GemmKernel &kernel = *plan.kernel;
  const bool is_clustered = plan.multicast > 1;
  if (problem.op == MP_CONV_WGRAD) {
    const ConvShape &s = problem.shape;
    const Operand dy{problem.other, nullptr, s.k, 0};  // a row per pixel
    args.a = tensor_map(
        wgmma_matrix_spec(dy, problem.dtype, int64_t{s.n} * s.p * s.q, s.k, 1, kernel.tile_k));
    args.b = im2col_map(im2col_spec(problem, kernel.tile_k));
    return;
  }
  const bool by_k = problem.op == MP_CONV_FPROP;
  const int rows_a = wgmma_box_rows(true, kernel.tile_m, is_clustered && !kernel.cluster_along_m);
  const int rows_b = wgmma_box_rows(by_k, kernel.tile_n, is_clustered && kernel.cluster_along_m);
  args.a = im2col_map(im2col_spec(problem, rows_a));
  args.b = tensor_map(filter_spec(problem.shape, problem.other, problem.dtype, rows_b));
}

void set_output(ConvWgmmaArgs &args, const ConvProblem &problem, const GemmPlan &plan) {
  const Output &out = args.problem.out;
  const bool is_wgrad = problem.op == MP_CONV_WGRAD;
  set_wgmma_store(plan,
                  is_wgrad ? filter_spec(problem.shape, out.d.base, out.dtype, kSubtileRows)
                           : wgmma_subtile_spec(out, out.d),
                  wgmma_subtile_spec(out, wgmma_source_operand(out)), &args);
}

void set_taps_and_origins(ConvWgmmaArgs &args, const ConvProblem &problem) {
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
  args.origins = {fast_divisor(int64_t{rows} * cols),
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
  StridePhases all{axis.phases, axis.extent, axis.stride, {}};
  for (int32_t residue = 0; residue < axis.phases; residue++) {
    const DgradPhase own(axis, residue);
    all.at[residue] = {residue, fast_divisor(max_of(own.taps, 1)), own.taps, own.first_tap * number,
                       own.offset - lower};
  }
  std::stable_sort(all.at, all.at + axis.phases,
                   [](const StridePhase &a, const StridePhase &b) { return a.taps > b.taps; });
  return all;
}

void set_phases(DgradWgmmaArgs &args, const ConvProblem &problem) {
  const ConvShape &s = problem.shape;
  const Im2colSpec image = im2col_spec(problem, kTapBlock);
  const DgradDirection h = dgrad_h(s), w = dgrad_w(s);
  args.h = stride_phases(dgrad_axis(s, true), image.lower[1], s.s);
  args.w = stride_phases(dgrad_axis(s, false), image.lower[0], 1);
  args.phases = fast_divisor(args.w.count);
  args.common_k_tiles = 0;
  args.taps.next = w.tap_step;
  args.taps.next_row = h.tap_step * s.s;
  args.taps.step_w = -w.dy_step;
  args.taps.step_h = -h.dy_step;
}

void set_phase_output(DgradWgmmaArgs &args, const ConvProblem &problem, const GemmPlan &plan) {
  const Output &out = args.problem.out;
  args.source = plan.source;
  args.store = plan.store;
  if (plan.store != StorePath::tma) return;
  if (plan.source != EpilogueSource::none)
    args.source_map = im2col_map(phase_source_spec(out, problem.shape));
  for (int32_t i = 0; i < args.h.count; i++)
    for (int32_t j = 0; j < args.w.count; j++)
      args.d_phases[i * args.w.count + j] =
          im2col_map(phase_spec(out, problem.shape, args.h.at[i].residue, args.w.at[j].residue));
}

/// Everything but output and partial sums.
void set_product(const ConvPlan &plan, const ConvProblem &problem, const Device &device,
                 ConvWgmmaArgs &args) {
  const GemmArgs gemm =
      make_gemm_args(im2col_gemm(problem), *plan.gemm.kernel, plan.gemm.split_k, device);
  static_cast<WgmmaArgs &>(args) = make_wgmma_args(plan.gemm, gemm);
  set_operands(args, problem, plan.gemm);
  set_taps_and_origins(args, problem);
}

}  // namespace

void launch_conv_wgmma(const ConvPlan &plan, const ConvProblem &problem, const Device &device,
                       const ColumnPartials &sums, float *partial_sums, mp_stream_t stream) {
  const bool is_split = plan.gemm.num_partials() > 1;
  if (is_strided_dgrad(problem)) {
    DgradWgmmaArgs args{};
    set_product(plan, problem, device, args);
    set_phases(args, problem);
    if (is_split)
      set_wgmma_slices(problem.out, partial_sums, &args);
    else
      set_phase_output(args, problem, plan.gemm);
    launch_dgrad_wgmma_kernel(plan, device, args, stream);
  } else {
    ConvWgmmaArgs args{};
    set_product(plan, problem, device, args);
    args.column_partials = sums;
    if (is_split)
      set_wgmma_slices(problem.out, partial_sums, &args);
    else
      set_output(args, problem, plan.gemm);
    launch_conv_wgmma_kernel(plan, problem.op, device, args, stream);
  }
}

}  // namespace mp::MP_TARGET
