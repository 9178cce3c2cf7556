// Operations that normalize rows: LayerNorm, RMSNorm, Softmax, LogSoftmax.
#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

// ---------------------------------------------------------------------------- norms

constexpr Attribute kNorm[] = {real("epsilon", 1e-5, 0, 1e30), integer("groups", 1, 1, kMaxInt32),
                               integer("zero_centered", 0, 0, 1)};
constexpr int64_t kMaxNormColumns = 65536;

enum : size_t { kX, kGamma, kBeta };              // inputs, forward; RMSNorm has no beta
enum : size_t { kY, kRstd, kMean };               // outputs, forward; RMSNorm has no mean
enum : size_t { kDy = 2, kRstdIn, kMeanIn };      // inputs, backward, after gamma
enum : size_t { kGradX, kGradGamma, kGradBeta };  // outputs, backward

void infer_norm(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, kX);
  const int64_t groups = n.attributes[1].integer, columns = x.columns() / groups;
  if (x.columns() % groups != 0)
    fail_at(n, "groups = ", groups, " must divide the ", x.columns(), " columns of x = ", x.name);
  if (columns > kMaxNormColumns)
    fail_at(n, "x = ", x.name, " has ", columns, " columns per group, more than ", kMaxNormColumns);
  require_vector(g, n, kGamma, columns);
  require_vector(g, n, kBeta, columns);
  set_extent(g, n, kY, x.extent);
  for (const size_t i : {kRstd, kMean}) set_extent(g, n, i, {x.rows(), groups});
}

mp_norm_desc_t norm_desc(const Node &n, const Tensor &x) {
  const int64_t groups = n.attributes[1].integer;
  mp_norm_desc_t d = mp_norm_desc_default(static_cast<mp_norm_kind_t>(n.operation->traits.variant),
                                          x.rows(), x.columns() / groups, n.dtype);
  d.epsilon = static_cast<float>(n.attributes[0].real);
  d.groups = narrow(groups);
  if (n.attributes[2].integer != 0) d.flags |= MP_NORM_FLAG_ZERO_CENTERED;
  return d;
}

/// Returns the mask of the dropout that a norm absorbed.
DropoutMask mask_of(Emitter &e, const Node &n) {
  if (n.fused.dropout == kNone) return {};
  return {e, e.graph().node(n.fused.dropout), 1, kDropoutSeedStep};
}

void apply(const MaskArgs &dropout, mp_norm_desc_t &desc, mp_norm_tensors_t &tensors) {
  desc.dropout = dropout.p;
  desc.dropout_seed = dropout.seed;
  tensors.dropout_offset = dropout.offset;
}

void emit_norm(Emitter &e, const Node &n) {
  mp_norm_desc_t desc = norm_desc(n, e.graph().out(n, kY));
  const DropoutMask mask = mask_of(e, n);
  if (n.fused.aux_out != kNone) desc.dtype_residual = e.graph().tensor(n.fused.aux_out).dtype;
  const AddressIndex residual = e.index(n.fused.aux), sum = e.index({n.fused.aux_out});
  e.append("mp_norm_forward", [=](const LaunchArgs &run) {
    mp_norm_desc_t d = desc;
    auto t = zero_struct<mp_norm_tensors_t>();
    apply(mask.at(run), d, t);
    t.x = run.in(kX);
    t.gamma = run.floats_in(kGamma);
    t.beta = run.floats_in(kBeta);
    t.residual = run.at(residual);
    t.sum = run.at(sum);
    t.y = run.out(kY);
    t.rstd = run.floats_out(kRstd);
    t.mean = run.floats_out(kMean);
    return mp_norm_forward(run.context, &d, &t, run.stream);
  });
}

/// Emits the gradient of a norm.  Output 0 is the gradient of the sum if has_sum.
void emit_norm_grad(Emitter &e, const Node &n) {
  mp_norm_desc_t desc = norm_desc(n, e.graph().out(n, kGradX));
  desc.dtype_residual = e.graph().out(n, kGradX).dtype;
  const DropoutMask mask = mask_of(e, n);
  const bool has_sum =
      n.fused.aux.tensor != kNone || n.fused.dropout != kNone || desc.dtype_residual != desc.dtype;
  const AddressIndex dsum = e.index(n.fused.aux);
  const AddressIndex dx =
      n.fused.writes_copy ? e.index({n.outputs[kGradX], true}) : e.index({n.fused.aux_out});
  e.needs_workspace_of(mp_norm_backward_workspace_size, &desc);
  e.append("mp_norm_backward", [=](const LaunchArgs &run) {
    mp_norm_desc_t d = desc;
    auto t = zero_struct<mp_norm_tensors_t>();
    apply(mask.at(run), d, t);
    if (has_sum) {
      t.sum = run.in(kX);
      t.dsum = run.at(dsum);
      t.dresidual = run.out(kGradX);
      t.dx = run.at(dx);
    } else {
      t.x = run.in(kX);
      t.dx = run.out(kGradX);
    }
    t.gamma = run.floats_in(kGamma);
    t.dy = run.in(kDy);
    t.rstd = run.floats_in(kRstdIn);
    t.mean = run.floats_in(kMeanIn);
    t.dgamma = run.floats_out(kGradGamma);
    t.dbeta = run.floats_out(kGradBeta);
    t.stats = run.stats;
    return mp_norm_backward(run.context, &d, &t, run.workspace, run.workspace_bytes, run.stream);
  });
}

// ---------------------------------------------------------------------------- softmax

constexpr Attribute kSoftmax[] = {real("scale", 1, -3e38, 3e38)};

/// Infers the shape of y.  lengths has the first dimensions of x: one length applies to all rows
/// that have the same indices there.
void infer_softmax(Graph &g, const Node &n) {
  infer_same(g, n);
  if (!n.has_input(1)) return;
  const Extent &x = g.in(n, 0).extent;
  const size_t rank = require_integers(g, n, 1).extent.size();
  if (rank == 0 || rank >= x.size())
    fail_at(n, "lengths = ", g.in(n, 1).name, " has ", rank,
            " dimensions, but must have at least 1 and fewer than x");
  require_extent(g, n, 1, Extent(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(rank)));
}

/// Emits the pass of the node; the row's variant is 0 or MP_SOFTMAX_FLAG_LOG.
void emit_softmax(Emitter &e, const Node &n) {
  const Tensor &x = e.graph().in(n, 0);
  mp_softmax_desc_t desc = mp_softmax_desc_default(x.rows(), x.columns(), n.dtype);
  desc.flags = static_cast<uint32_t>(n.operation->traits.variant);
  desc.scale = static_cast<float>(n.attributes[0].real);
  if (n.has_input(1)) desc.mask_rows = x.rows() / e.graph().in(n, 1).numel();
  const bool is_backward = n.is_backward;
  e.append(is_backward ? "mp_softmax_backward" : "mp_softmax_forward", [=](const LaunchArgs &run) {
    mp_softmax_desc_t d = desc;
    const void *const lengths = run.in(1);
    if (lengths != nullptr) d.mask = MP_SOFTMAX_MASK_LENGTHS;
    if (!is_backward)
      return mp_softmax_forward(run.context, &d, run.in(0), lengths, run.out(0), run.stream);
    return mp_softmax_backward(run.context, &d, run.in(0), run.in(2), lengths, run.out(0),
                               &run.stats, run.stream);
  });
}

// ---------------------------------------------------------------------------- the table

constexpr Traits traits(int32_t variant, Fusion fusion = Fusion::none) {
  return {.variant = variant,
          .flags = kEitherType,
          .fusion = fusion,
          .writes_as_it_reads = true,
          .reads_one_type = true};
}

// clang-format off
constexpr Operation kRows[] = {
    {"LayerNorm", {{"x"}, {"gamma", kOptional | kFp32}, {"beta", kOptional | kFp32}},
     {{"y"}, {"rstd", kKept | kFp32}, {"mean", kKept | kFp32}}, kNorm, emit_norm,
     traits(MP_NORM_LAYER, Fusion::row_norm), infer_norm},
    {"LayerNormGrad",
     {{"x"}, {"gamma", kOptional | kFp32}, {"dy"}, {"rstd", kFp32}, {"mean", kFp32}},
     {{"dx"}, {"dgamma", kOptional | kFp32}, {"dbeta", kOptional | kFp32}}, kNorm, emit_norm_grad,
     traits(MP_NORM_LAYER, Fusion::row_norm_gradient)},
    {"RMSNorm", {{"x"}, {"gamma", kOptional | kFp32}}, {{"y"}, {"rstd", kKept | kFp32}}, kNorm,
     emit_norm, traits(MP_NORM_RMS, Fusion::row_norm), infer_norm},
    {"RMSNormGrad", {{"x"}, {"gamma", kOptional | kFp32}, {"dy"}, {"rstd", kFp32}},
     {{"dx"}, {"dgamma", kOptional | kFp32}}, kNorm, emit_norm_grad,
     traits(MP_NORM_RMS, Fusion::row_norm_gradient)},
    {"Softmax", {{"x"}, {"lengths", kOptional | kUnbound}}, {{"y"}}, kSoftmax, emit_softmax,
     traits(0), infer_softmax},
    {"SoftmaxGrad", {{"y"}, {"lengths", kOptional | kUnbound}, {"dy"}}, {{"dx"}}, kSoftmax,
     emit_softmax, traits(0)},
    {"LogSoftmax", {{"x"}, {"lengths", kOptional | kUnbound}}, {{"y"}}, kSoftmax, emit_softmax,
     traits(MP_SOFTMAX_FLAG_LOG), infer_softmax},
    {"LogSoftmaxGrad", {{"y"}, {"lengths", kOptional | kUnbound}, {"dy"}}, {{"dx"}}, kSoftmax,
     emit_softmax, traits(MP_SOFTMAX_FLAG_LOG)}};
// clang-format on

}  // namespace

std::span<const Operation> row_operations() {
  return kRows;
}

}  // namespace mp::graph
