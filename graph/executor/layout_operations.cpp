// Operations that move elements, Concat, Split, Slice, Pad and Transpose, and sums over axes.
//
// Concat, Split, Slice, Pad and their gradients copy between a whole tensor and its parts along an
// axis.  They treat a tensor as a matrix: its rows are the dimensions before the axis, its columns
// the axis and the dimensions after it.
#include <algorithm>

#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

/// Returns the product of the dimensions in [first, last).
int64_t product_of(const Extent &extent, size_t first, size_t last) {
  int64_t count = 1;
  for (size_t i = first; i < last; ++i) count *= extent[i];
  return count;
}

// ---------------------------------------------------------------------------- blocks

/// Variant of a row: role of input 0 and output 0.
enum BlockKind : int32_t {
  kJoins,  ///< the inputs are parts of the output
  kParts   ///< the outputs are parts of the input
};

constexpr Attribute kAxis = integer("axis", -1, -MP_GRAPH_MAX_RANK, MP_GRAPH_MAX_RANK - 1);
constexpr int64_t kMaxExtent = int64_t{1} << 48;
constexpr Attribute kConcat[] = {kAxis};
constexpr Attribute kSplit[] = {kAxis, integers("extents", 1, kMaxExtent)};
constexpr Attribute kSlice[] = {kAxis, integer("begin", 0, 0, kMaxExtent),
                                integer("end", 0, 0, kMaxExtent)};
constexpr Attribute kPad[] = {kAxis, integer("before", 0, 0, kMaxExtent),
                              integer("after", 0, 0, kMaxExtent)};

/// Returns the axis of a node, counted from the first dimension.
size_t axis_of(const Node &n, const Tensor &t) {
  const auto rank = static_cast<int64_t>(t.extent.size());
  const int64_t axis = n.attributes[0].integer;
  if (axis < -rank || axis >= rank)
    fail_at(n, "axis = ", axis, " is outside [", -rank, ", ", rank - 1, "], the dimensions of ",
            t.name);
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

void infer_concat(Graph &g, const Node &n) {
  Extent y = require_floats(g, n, 0).extent;
  const size_t axis = axis_of(n, g.in(n, 0));
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    if (!n.has_input(i)) fail_at(n, "x", i, " must not be absent");
    Extent wanted = y;
    const Tensor &x = require_floats(g, n, i, static_cast<int>(y.size()));
    wanted[axis] = x.extent[axis];
    require_extent(g, n, i, wanted);
    y[axis] += x.extent[axis];
  }
  set_extent(g, n, 0, y);
}

void infer_split(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0);
  const size_t axis = axis_of(n, x), parts = n.outputs.size();
  const int64_t whole = x.extent[axis];
  std::vector<int64_t> sizes = n.attributes[1].integers;
  if (sizes.empty()) {
    if (whole % static_cast<int64_t>(parts) != 0)
      fail_at(n, "x = ", x.name, " has extent ", whole,
              " on the axis, which the number of outputs, ", parts, ", must divide");
    sizes.assign(parts, whole / static_cast<int64_t>(parts));
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  if (sizes.size() != parts || sum != whole)
    fail_at(n, "x = ", x.name, " has extent ", whole, " on the axis, but ", sizes.size(),
            " extents for ", parts, " outputs have the sum ", sum);
  for (size_t i = 0; i < parts; ++i) {
    Extent y = x.extent;
    y[axis] = sizes[i];
    set_extent(g, n, i, y);
  }
}

void infer_slice(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0);
  const size_t axis = axis_of(n, x);
  const int64_t begin = n.attributes[1].integer;
  const int64_t end = n.attributes[2].integer != 0 ? n.attributes[2].integer : x.extent[axis];
  if (begin >= end || end > x.extent[axis])
    fail_at(n, "begin = ", begin, " and end = ", end, " are not a range in the extent ",
            x.extent[axis], " of x = ", x.name);
  Extent y = x.extent;
  y[axis] = end - begin;
  set_extent(g, n, 0, y);
}

void infer_pad(Graph &g, const Node &n) {
  Extent y = require_floats(g, n, 0).extent;
  y[axis_of(n, g.in(n, 0))] += n.attributes[1].integer + n.attributes[2].integer;
  set_extent(g, n, 0, y);
}

void emit_blocks(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  const bool joins = n.operation->traits.variant == kJoins;
  const Tensor &whole = joins ? g.out(n, 0) : g.in(n, 0);
  const size_t axis = axis_of(n, whole), rank = whole.extent.size();
  const int64_t outer = product_of(whole.extent, 0, axis);
  const int64_t inner = product_of(whole.extent, axis + 1, rank);
  // The forward node has all parts; a gradient may be absent.
  const Node &forward = n.is_backward ? g.node(n.forward) : n;
  const bool forward_joins = joins != n.is_backward;
  const auto extent_of = [&](size_t i) {
    return (forward_joins ? g.in(forward, i) : g.out(forward, i)).extent[axis];
  };
  const size_t parts = joins ? n.inputs.size() : n.outputs.size();
  int64_t covered = 0;
  for (size_t i = 0; i < parts; ++i)
    if (joins && n.has_input(i)) covered += extent_of(i);
  if (joins && covered < whole.extent[axis]) {
    const size_t bytes = whole.bytes(false);
    e.append("mp_memset", [=](const LaunchArgs &run) {
      return mp_memset(run.context, run.out(0), 0, bytes, run.stream);
    });
  }
  const bool has_offset = n.attributes.size() > 2;  // Slice and Pad
  int64_t offset = has_offset ? n.attributes[1].integer : 0;
  for (size_t i = 0; i < parts; offset += extent_of(i), ++i) {
    if (!(joins ? n.has_input(i) : n.has_output(i))) continue;
    const int64_t run = extent_of(i) * inner, row = whole.extent[axis] * inner;
    mp_strided_copy_desc_t desc = mp_strided_copy_desc_default(n.dtype);
    append_dim(desc, outer, joins ? run : row, joins ? row : run);
    append_dim(desc, run, 1, 1);
    if (joins)
      emit_copy(e, desc, e.in(n, i), 0, e.out(n, 0), offset * inner);
    else
      emit_copy(e, desc, e.in(n, 0), offset * inner, e.out(n, i), 0, i);
  }
}

// ---------------------------------------------------------------------------- Transpose

constexpr Attribute kTranspose[] = {integers("permutation", 0, MP_GRAPH_MAX_RANK - 1)};

/// Dimension i of y is dimension permutation[i] of x.
void infer_transpose(Graph &g, const Node &n) {
  const Extent &x = require_floats(g, n, 0).extent;
  const std::vector<int64_t> &permutation = n.attributes[0].integers;
  std::vector<int64_t> sorted = permutation;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i)) sorted.clear();
  if (x.size() > MP_STRIDED_COPY_MAX_RANK || sorted.size() != x.size())
    fail_at(n, "permutation = ", text_of(permutation), " must contain each of the ", x.size(),
            " dimensions of x = ", g.in(n, 0).name, " once; at most ", MP_STRIDED_COPY_MAX_RANK);
  Extent y;
  for (const int64_t i : permutation) y.push_back(x[static_cast<size_t>(i)]);
  set_extent(g, n, 0, y);
}

/// Iterates over the dimensions of the forward output.
void emit_transpose(Emitter &e, const Node &n) {
  const Tensor &x = n.is_backward ? e.graph().out(n, 0) : e.graph().in(n, 0);
  const std::vector<int64_t> &permutation = n.attributes[0].integers;
  const size_t rank = x.extent.size();
  mp_strided_copy_desc_t desc = mp_strided_copy_desc_default(n.dtype);
  int64_t y_stride = x.numel();
  for (const int64_t i : permutation) {
    const auto dim = static_cast<size_t>(i);
    const int64_t x_stride = product_of(x.extent, dim + 1, rank);
    y_stride /= x.extent[dim];
    append_dim(desc, x.extent[dim], n.is_backward ? y_stride : x_stride,
               n.is_backward ? x_stride : y_stride);
  }
  emit_copy(e, desc, e.in(n, 0), 0, e.out(n, 0), 0);
}

// ---------------------------------------------------------------------------- Sum, Mean

constexpr Attribute kReduce[] = {integers("axes", 0, MP_GRAPH_MAX_RANK - 1),
                                 integer("keep_dims", 0, 0, 1)};

enum : size_t { kLengths = 1 };  // input of Mean

/// x as [outer, reduced, inner].
struct Reduced {
  int64_t outer, reduced, inner;

  Reduced(const Node &n, const Extent &x) {
    const std::vector<int64_t> &axes = n.attributes[0].integers;
    const auto first = static_cast<size_t>(axes.front()), last = static_cast<size_t>(axes.back());
    outer = product_of(x, 0, first);
    reduced = product_of(x, first, last + 1);
    inner = product_of(x, last + 1, x.size());
  }
  /// Returns the factor of the sum: 1, or for Mean 1 / reduced.
  float factor(const Node &n) const {
    return n.operation->traits.variant != 0 ? 1.0f / static_cast<float>(reduced) : 1.0f;
  }
};

void infer_reduce(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0);
  const std::vector<int64_t> &axes = n.attributes[0].integers;
  bool is_range = !axes.empty() && axes.back() < static_cast<int64_t>(x.extent.size());
  for (size_t i = 1; i < axes.size(); ++i) is_range &= axes[i] == axes[i - 1] + 1;
  if (!is_range)
    fail_at(n, "axes = ", text_of(axes), " must be adjacent dimensions of x = ", x.name,
            " in ascending order; use Transpose");
  require_narrow(n, x);
  if (product_of(x.extent, 0, static_cast<size_t>(axes.front())) > kMaxInt32)
    fail_at(n, "x = ", x.name, " has more than 2^31 - 1 elements before the axes");
  Extent y;
  for (size_t i = 0; i < x.extent.size(); ++i) {
    const auto dim = static_cast<int64_t>(i);
    const bool is_kept = dim < axes.front() || dim > axes.back();
    if (is_kept || n.attributes[1].integer != 0) y.push_back(is_kept ? x.extent[i] : 1);
  }
  set_extent(g, n, 0, y);
  if (!n.has_input(kLengths)) return;
  require_integers(g, n, kLengths);
  if (axes.size() != 1) fail_at(n, "axes = ", text_of(axes), " must be one axis with lengths");
  require_extent(g, n, kLengths, Extent(x.extent.begin(), x.extent.begin() + axes[0]));
}

/// Emits a mean of the first `length` elements of each outer index: a product of a row of weights,
/// which are a softmax of zeros, with [reduced, inner].  Gradient: a column of weights times dy.
void emit_mean_of_lengths(Emitter &e, const Node &n, const Reduced &r) {
  const mp_dtype_t dtype = e.graph().dtype_read(n.inputs[0]);
  mp_softmax_desc_t softmax = mp_softmax_desc_default(r.outer, r.reduced, dtype);
  softmax.mask_rows = 1;
  const int64_t rows = n.is_backward ? r.reduced : 1, depth = n.is_backward ? 1 : r.reduced;
  mp_gemm_desc_t desc =
      mp_gemm_desc_default(rows, r.inner, depth, dtype, e.graph().out(n, 0).dtype);
  desc.batch_count = narrow(r.outer);
  desc.stride_a = r.reduced;
  desc.stride_b = depth * r.inner;
  desc.stride_c = desc.stride_d = rows * r.inner;
  const size_t bytes = e.needs_workspace_of(mp_gemm_workspace_size, &desc, nullptr);
  const auto num_weights = static_cast<size_t>(r.outer * r.reduced);
  const size_t weight_bytes = checked_bytes(num_weights, mp_dtype_size(dtype));
  const size_t offset = (weight_bytes + 255) / 256 * 256;
  e.needs_workspace(offset + bytes);
  const AddressIndex zeros = e.zeros(weight_bytes);
  e.append("mp_softmax_forward", [=](const LaunchArgs &run) {
    mp_softmax_desc_t d = softmax;
    if (run.in(kLengths) != nullptr) d.mask = MP_SOFTMAX_MASK_LENGTHS;
    return mp_softmax_forward(run.context, &d, run.at(zeros), run.in(kLengths), run.workspace,
                              run.stream);
  });
  e.append("mp_gemm", [=](const LaunchArgs &run) {
    return mp_gemm(run.context, &desc, run.workspace, run.in(0), nullptr, run.out(0), nullptr,
                   static_cast<char *>(run.workspace) + offset, run.workspace_bytes - offset,
                   run.stream);
  });
}

/// Multiplies by ones, with fp32 accumulation: [outer, reduced] by a column, or for each outer
/// index a row by [reduced, inner].
void emit_reduce(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  const Reduced r(n, g.in(n, 0).extent);
  if (n.has_input(kLengths)) return emit_mean_of_lengths(e, n, r);
  const mp_dtype_t dtype = g.dtype_read(n.inputs[0]);
  const bool is_last = r.inner == 1;
  mp_gemm_desc_t desc =
      mp_gemm_desc_default(is_last ? r.outer : 1, r.inner, r.reduced, dtype, g.out(n, 0).dtype);
  desc.alpha = r.factor(n);
  if (!is_last) {
    desc.batch_count = narrow(r.outer);
    desc.stride_b = r.reduced * r.inner;
    desc.stride_d = desc.stride_c = r.inner;
  }
  const AddressIndex ones = e.ones(dtype, r.reduced), x = e.in(n, 0);
  e.needs_workspace_of(mp_gemm_workspace_size, &desc, nullptr);
  e.append("mp_gemm", [=](const LaunchArgs &run) {
    return mp_gemm(run.context, &desc, run.at(is_last ? x : ones), run.at(is_last ? ones : x),
                   nullptr, run.out(0), nullptr, run.workspace, run.workspace_bytes, run.stream);
  });
}

/// Repeats the gradient.
void emit_reduce_grad(Emitter &e, const Node &n) {
  const Reduced r(n, e.graph().out(n, 0).extent);
  if (n.has_input(kLengths)) return emit_mean_of_lengths(e, n, r);
  mp_strided_copy_desc_t desc = mp_strided_copy_desc_default(n.dtype);
  append_dim(desc, r.outer, r.inner, r.reduced * r.inner);
  append_dim(desc, r.reduced, 0, r.inner);
  append_dim(desc, r.inner, 1, 1);
  desc.alpha = r.factor(n);
  emit_copy(e, desc, e.in(n, 0), 0, e.out(n, 0), 0);
}

// ---------------------------------------------------------------------------- the table

constexpr Traits reduce_traits(int32_t is_mean) {
  return {.variant = is_mean, .flags = kEitherType};
}
constexpr Traits reduce_grad_traits(int32_t is_mean) {
  return {.variant = is_mean, .flags = kEitherType, .writes_as_it_reads = true};
}

// clang-format off
constexpr Operation kLayouts[] = {
    {"Concat",
     {{"x0"}, {"x1", kOptional}, {"x2", kOptional}, {"x3", kOptional}, {"x4", kOptional},
      {"x5", kOptional}, {"x6", kOptional}, {"x7", kOptional}}, {{"y"}}, kConcat, emit_blocks,
     {.variant = kJoins}, infer_concat},
    {"ConcatGrad", {{"dy"}},
     {{"dx0", kOptional}, {"dx1", kOptional}, {"dx2", kOptional}, {"dx3", kOptional},
      {"dx4", kOptional}, {"dx5", kOptional}, {"dx6", kOptional}, {"dx7", kOptional}}, kConcat,
     emit_blocks, {.variant = kParts}},
    {"Split", {{"x"}},
     {{"y0"}, {"y1", kOptional}, {"y2", kOptional}, {"y3", kOptional}, {"y4", kOptional},
      {"y5", kOptional}, {"y6", kOptional}, {"y7", kOptional}}, kSplit, emit_blocks,
     {.variant = kParts}, infer_split},
    {"SplitGrad", {{"dy0"}, {"dy1"}, {"dy2"}, {"dy3"}, {"dy4"}, {"dy5"}, {"dy6"}, {"dy7"}},
     {{"dx", kOptional}}, kSplit, emit_blocks, {.variant = kJoins}},
    {"Slice", {{"x"}}, {{"y"}}, kSlice, emit_blocks, {.variant = kParts}, infer_slice},
    {"SliceGrad", {{"dy"}}, {{"dx", kOptional}}, kSlice, emit_blocks, {.variant = kJoins}},
    {"Pad", {{"x"}}, {{"y"}}, kPad, emit_blocks, {.variant = kJoins}, infer_pad},
    {"PadGrad", {{"dy"}}, {{"dx", kOptional}}, kPad, emit_blocks, {.variant = kParts}},
    {"Transpose", {{"x"}}, {{"y"}}, kTranspose, emit_transpose, {}, infer_transpose},
    {"TransposeGrad", {{"dy"}}, {{"dx"}}, kTranspose, emit_transpose},
    {"Sum", {{"x"}}, {{"y"}}, kReduce, emit_reduce, reduce_traits(0), infer_reduce},
    {"SumGrad", {{"dy"}}, {{"dx"}}, kReduce, emit_reduce_grad, reduce_grad_traits(0)},
    {"Mean", {{"x"}, {"lengths", kOptional | kUnbound}}, {{"y"}}, kReduce, emit_reduce,
     reduce_traits(1), infer_reduce},
    {"MeanGrad", {{"dy"}, {"lengths", kOptional | kUnbound}}, {{"dx"}}, kReduce, emit_reduce_grad,
     reduce_grad_traits(1)}};
// clang-format on

}  // namespace

std::span<const Operation> layout_operations() {
  return kLayouts;
}

}  // namespace mp::graph
