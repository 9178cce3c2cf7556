// One mp_conv2d_*: the arguments and the launch of a plan, and the passes before and after it.
#include <algorithm>

#include "kernels/conv/conv_args.h"
#include "kernels/conv/conv_wgmma_args.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/wgmma_args.h"

namespace mp::MP_TARGET {

namespace {

// ---------------------------------------------------------------------------- implicit, depthwise

TapSegments segments_of(const ConvProblem &problem) {
  const SegmentShape segments = segment_shape(problem);
  return {segments.taps_h, segments.taps_w, segments.elems, fast_divisor(segments.padded())};
}

/// Returns the im2col operand of fprop and wgrad: one row per pixel of y.
PatchMap patches_of_x(const ConvProblem &problem) {
  const ConvShape &s = problem.shape;
  PatchMap map{};
  map.height = s.h;
  map.width = s.w;
  map.channels = s.c;
  map.num_rows = s.n * s.p * s.q;
  map.grid_pixels = fast_divisor(int64_t{s.p} * s.q);
  map.grid_w = fast_divisor(s.q);
  map.stride_h = s.stride_h;
  map.stride_w = s.stride_w;
  map.offset_h = -s.pad_top;
  map.offset_w = -s.pad_left;
  map.step_h = s.dilation_h;
  map.step_w = s.dilation_w;
  map.segments = segments_of(problem);
  return map;
}

/// Returns the im2col operand of dgrad: one row per pixel of a stride phase of dx.  Each further
/// tap of a phase reads an earlier pixel of dy.  ConvProduct sets the offsets of a phase.
PatchMap patches_of_dy(const ConvProblem &problem) {
  const ConvShape &s = problem.shape;
  const StridePhases h = stride_phases(axis_h(s)), w = stride_phases(axis_w(s));
  PatchMap map{};
  map.height = s.p;
  map.width = s.q;
  map.channels = s.k;
  map.num_rows = s.n * h.max_pixels * w.max_pixels;
  map.grid_pixels = fast_divisor(int64_t{h.max_pixels} * w.max_pixels);
  map.grid_w = fast_divisor(w.max_pixels);
  map.stride_h = map.stride_w = 1;
  map.step_h = -h.dy_step;
  map.step_w = -w.dy_step;
  map.segments = segments_of(problem);
  return map;
}

/// Returns the layout of segments in dfilter, which has no padded channels.
FilterSegments written_segments(const ConvProblem &problem) {
  const SegmentShape segments = segment_shape(problem);
  const int32_t c = problem.unpadded_c, padded_c = problem.shape.c;
  if (c == 0) return {fast_divisor(segments.padded()), 1, segments.elems};
  return {fast_divisor(padded_c), segments.elems / padded_c, c};
}

/// Returns the arguments without scheduler, slice_k and partial_sums.
ConvArgs make_conv_args(const ConvProblem &problem) {
  const ConvShape &s = problem.shape;
  ConvArgs args{};
  args.out = problem.out;
  args.dtype = problem.dtype;
  args.image = problem.image;
  args.other = problem.other;
  args.patches = problem.op == MP_CONV_DGRAD ? patches_of_dy(problem) : patches_of_x(problem);
  args.groups = s.groups;
  args.group_c = group_c(s);
  args.group_k = group_k(s);
  args.filter_elems = int64_t{s.r} * filter_row(problem);
  args.filter = {0, filter_row(problem), group_c(s)};
  args.phases_h = stride_phases(axis_h(s));
  args.phases_w = stride_phases(axis_w(s));
  const VectorOperands vectors = vector_operands(problem);
  args.image_is_aligned = vectors.image && alignment_of(problem.image) == 16;
  args.other_is_aligned = vectors.other && alignment_of(problem.other) == 16;
  args.written = written_segments(problem);
  return args;
}

void launch_implicit(const ConvPlan &plan, const ConvProblem &problem, const Device &device,
                     ConvArgs args, mp_stream_t stream) {
  const GemmKernel &kernel = *plan.gemm.kernel;
  const ProductShape product = product_shape(problem);
  args.scheduler =
      make_scheduler(product.m, product.n, product.count, plan.gemm.split_k, kernel, device);
  args.slice_k = k_per_slice(kernel, product.k, plan.gemm.split_k);
  if (kernel.family == GemmFamily::simt)
    launch_conv_simt(plan, problem.op, device, args, stream);
  else
    launch_conv_wmma(plan, problem.op, device, args, stream);
}

// ---------------------------------------------------------------------------- im2col

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
  const Im2colSpec image = im2col_spec(problem, kTapBlock);
  const int32_t channels = static_cast<int32_t>(image.extent[0]);
  TapBlocks &taps = args.taps;
  taps.taps = s.r * s.s;
  taps.channels = channels;
  taps.padded = fast_divisor(align_up(channels, kTapBlock));
  taps.across = fast_divisor(s.s);
  taps.next = 1;
  taps.next_row = s.s;
  taps.step_w = s.dilation_w;
  taps.step_h = s.dilation_h;
  int32_t rows = s.p, columns = s.q;
  if (problem.op == MP_CONV_DGRAD) {
    const StridePhases h = stride_phases(axis_h(s)), w = stride_phases(axis_w(s));
    taps.next *= w.tap_step;
    taps.next_row *= h.tap_step;
    taps.step_w = -w.dy_step;
    taps.step_h = -h.dy_step;
    taps.first_w = (w.max_taps - 1) * w.dy_step;
    taps.first_h = (h.max_taps - 1) * h.dy_step;
    rows = h.max_pixels;
    columns = w.max_pixels;
  }
  args.origins = {fast_divisor(int64_t{rows} * columns),
                  fast_divisor(columns),
                  image.lower[0],
                  image.lower[1],
                  image.step[0],
                  image.step[1]};
}

/// Returns the phases of a strided dgrad along an axis.
/// @param lower  first coordinate of the image's map
/// @param tap_index_step  distance between taps of the axis in the filter, in taps
WgmmaPhases sorted_phases(const StridePhases &phases, int32_t lower, int32_t tap_index_step) {
  WgmmaPhases all{phases.count, phases.extent, phases.stride, {}};
  for (int32_t residue = 0; residue < phases.count; residue++) {
    const PhaseTaps taps(phases, residue);
    all.at[residue] = {residue, fast_divisor(max_of(taps.count, 1)), taps.count,
                       taps.first * tap_index_step, taps.offset - lower};
  }
  std::stable_sort(all.at, all.at + phases.count,
                   [](const WgmmaPhase &a, const WgmmaPhase &b) { return a.taps > b.taps; });
  return all;
}

void set_phases(DgradWgmmaArgs &args, const ConvShape &s) {
  args.h = sorted_phases(stride_phases(axis_h(s)), args.origins.first_h, s.s);
  args.w = sorted_phases(stride_phases(axis_w(s)), args.origins.first_w, 1);
  args.phases = fast_divisor(args.w.count);
  args.common_k_tiles = 0;
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

void launch_conv_wgmma(const ConvPlan &plan, const ConvProblem &problem, const Device &device,
                       const ColumnPartials &sums, float *partial_sums, mp_stream_t stream) {
  const bool is_split = plan.gemm.num_partials() > 1;
  if (is_strided_dgrad(problem)) {
    DgradWgmmaArgs args{};
    set_product(plan, problem, device, args);
    set_phases(args, problem.shape);
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

// ---------------------------------------------------------------------------- all families

/// Launches the kernels of one family, and the sum of their partial sums in workspace.
void launch_product(const Device &device, const ConvProblem &problem, const ConvPlan &plan,
                    std::byte *workspace, mp_stream_t stream) {
  const int32_t num_partials = plan.gemm.num_partials();
  float *const partial_sums =
      num_partials > 1 ? reinterpret_cast<float *>(workspace + plan.gemm.workspace.partial_sums)
                       : nullptr;
  if (plan.family == ConvFamily::im2col) {
    launch_conv_wgmma(plan, problem, device, column_partials(plan.gemm.dbias, workspace),
                      partial_sums, stream);
  } else {
    ConvArgs args = make_conv_args(problem);
    args.partial_sums = partial_sums;
    if (plan.family == ConvFamily::depthwise)
      launch_conv_depthwise(plan, problem, device, args, stream);
    else
      launch_implicit(plan, problem, device, args, stream);
  }
  if (num_partials > 1) launch_split_k_sum(device, problem.out, num_partials, partial_sums, stream);
}

}  // namespace

void conv(const Device &device, const ConvProblem &problem, const ConvPlan &plan,
          const Workspace &workspace, mp_stream_t stream) {
  if (plan.family == ConvFamily::gemm)
    return gemm(device, pointwise_gemm(problem), plan.gemm, workspace, stream);
  std::byte *const space = static_cast<std::byte *>(workspace.ptr);
  const ConvProblem read = launch_padded_image(device, problem, plan.copy, space, stream);
  launch_product(device, read, plan, space, stream);
  if (plan.copy.has_windows() && problem.op == MP_CONV_WGRAD)
    launch_store_windows(device, problem, plan.copy, read, stream);
  if (plan.gemm.dbias) launch_column_sum(device, problem.out, *plan.gemm.dbias, space, stream);
}

}  // namespace mp::MP_TARGET
