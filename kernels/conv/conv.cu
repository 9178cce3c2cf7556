// One mp_conv2d_*: the launch of a plan, and the passes before and after it.
#include "kernels/conv/conv_args.h"

#include "kernels/gemm/gemm_args.h"

namespace mp::MP_TARGET {

namespace {

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
