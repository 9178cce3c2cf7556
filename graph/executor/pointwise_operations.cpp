// Element-wise operations, gated units, and views, which emit no calls.
#include <limits>

#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

// ---------------------------------------------------------------------------- mp_pointwise

constexpr Attribute kErf[] = {integer("erf", 0, 0, 1)};

/// Returns whether b lacks leading dimensions of a and is repeated.
bool is_repeated(const Graph &g, const Node &n) {
  return g.in(n, 1).extent.size() < g.in(n, 0).extent.size();
}

/// Infers the shape of an operation on a and b, whose dimensions are the last ones of a.
void infer_binary(Graph &g, const Node &n) {
  const Tensor &a = require_floats(g, n, 0), &b = require_floats(g, n, 1);
  if (is_repeated(g, n)) {
    const auto rank = static_cast<std::ptrdiff_t>(b.extent.size());
    require_extent(g, n, 1, Extent(a.extent.end() - rank, a.extent.end()));
  } else {
    require_extent(g, n, 1, a.extent);
  }
  set_extent(g, n, 0, a.extent);
}

/// Appends the gradient of b from that of y, or from `terms` with the shape of y.
void differentiate_b(Gradients &d, const Node &n, int32_t terms) {
  if (!d.is_wanted(n, 1)) return;
  if (!is_repeated(d.graph(), n)) return d.contribute(n, 1, terms);
  const int32_t db = d.make(n, 1);
  const bool is_row = d.graph().in(n, 1).rows() == 1;
  d.append(n, is_row ? "BiasAddGrad" : "RepeatGrad", "grad_b", {terms}, {db});
  d.contribute(n, 1, db);
}

void differentiate_add(Gradients &d, const Node &n) {
  const int32_t dy = d.of(n, 0);
  d.contribute(n, 0, dy);
  differentiate_b(d, n, dy);
}

/// Appends a node whose output has the shape of y: a part of the gradient of b.
int32_t append_terms(Gradients &d, const Node &n, std::string_view type, std::string_view word,
                     const std::vector<int32_t> &inputs) {
  const int32_t terms = d.make(n, is_repeated(d.graph(), n) ? 0 : 1);
  d.append(n, type, word, inputs, {terms});
  return terms;
}

void differentiate_mul(Gradients &d, const Node &n) {
  const int32_t dy = d.of(n, 0);  // sums the contributions before the gradients exist
  d.append_gradient(n, 0, "MulGrad", "grad_a", {n.input(1)});
  if (!d.is_wanted(n, 1)) return;
  const char *const word = is_repeated(d.graph(), n) ? "grad_b_terms" : "grad_b";
  differentiate_b(d, n, append_terms(d, n, "MulGrad", word, {dy, n.input(0)}));
}

void differentiate_sub(Gradients &d, const Node &n) {
  const int32_t dy = d.of(n, 0);
  d.contribute(n, 0, dy);
  if (d.is_wanted(n, 1)) differentiate_b(d, n, append_terms(d, n, "SubGrad", "grad_b_terms", {dy}));
}

/// The gradient of b is -(dy / b) y: dy y could overflow.
void differentiate_div(Gradients &d, const Node &n) {
  if (!d.is_wanted(n, 0) && !d.is_wanted(n, 1)) return;
  const int32_t dy = d.of(n, 0), da = d.make(n, 0);
  d.append(n, "DivGrad", "grad_a", {dy, n.input(1)}, {da});
  d.contribute(n, 0, da);
  if (!d.is_wanted(n, 1)) return;
  const int32_t terms = append_terms(d, n, "MulGrad", "grad_b_product", {da, n.outputs[0]});
  differentiate_b(d, n, append_terms(d, n, "SubGrad", "grad_b_terms", {terms}));
}

/// Negates a gradient.
void emit_negative(Emitter &e, const Node &n) {
  mp_strided_copy_desc_t desc = mp_strided_copy_desc_default(n.dtype);
  append_dim(desc, e.graph().out(n, 0).numel(), 1, 1);
  desc.alpha = -1.0f;
  e.append("mp_strided_copy", [=](const LaunchArgs &run) {
    return mp_strided_copy(run.context, &desc, run.in(0), run.out(0), nullptr, run.stream);
  });
}

constexpr Attribute kSlope[] = {real("slope", 0.01, -3e38, 3e38)};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Attribute kRange[] = {real("min", -kInf, -kInf, kInf), real("max", kInf, -kInf, kInf)};

void infer_clip(Graph &g, const Node &n) {
  if (n.attributes[0].real > n.attributes[1].real)
    fail_at(n, "min = ", n.attributes[0].real, " exceeds max = ", n.attributes[1].real);
  infer_same(g, n);
}

/// Emits the row's variant, an mp_pointwise_op_t, or its activation, of the first input and an
/// optional second one.
void emit_pointwise(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  const Tensor &y = g.out(n, 0);
  const mp_activation_t activation = activation_of(n);
  const auto op = activation != MP_ACT_NONE
                      ? MP_POINTWISE_COPY
                      : static_cast<mp_pointwise_op_t>(n.operation->traits.variant);
  mp_pointwise_desc_t desc = mp_pointwise_desc_default(op, y.rows(), y.columns(), n.dtype);
  desc.activation = activation;
  const auto attribute = [&](size_t i) { return static_cast<float>(n.attributes[i].real); };
  if (op == MP_POINTWISE_LEAKY_RELU || op == MP_POINTWISE_DLEAKY_RELU) desc.slope = attribute(0);
  if (op == MP_POINTWISE_CLIP || op == MP_POINTWISE_DCLIP) {
    desc.low = attribute(0);
    desc.high = attribute(1);
  }
  if (n.has_input(1)) desc.dtype_b = g.dtype_read(n.inputs[1]);
  if (n.has_input(1) && is_repeated(g, n)) {
    desc.rows_b = g.in(n, 1).rows();
    if (desc.rows_b == 1) desc.ld_b = desc.rows_b = 0;
  }
  e.append("mp_pointwise", [=](const LaunchArgs &run) {
    return mp_pointwise(run.context, &desc, run.in(0), run.in(1), run.out(0), &run.stats,
                        run.stream);
  });
}

/// Sums the repetitions of b.
void emit_repeat_grad(Emitter &e, const Node &n) {
  const Tensor &dy = e.graph().in(n, 0), &db = e.graph().out(n, 0);
  const mp_sum_rows_desc_t desc = mp_sum_rows_desc_default(dy.rows(), db.rows(), db.columns(),
                                                           e.graph().dtype_read(n.inputs[0]));
  e.append("mp_sum_rows", [=](const LaunchArgs &run) {
    return mp_sum_rows(run.context, &desc, run.in(0), run.out(0), &run.stats, run.stream);
  });
}

void infer_bias_add(Graph &g, const Node &n) {
  require_vector(g, n, 1, require_floats(g, n, 0).columns());
  infer_same(g, n);
}

void differentiate_bias_add(Gradients &d, const Node &n) {
  const int32_t dy = d.of(n, 0);
  d.append_gradient(n, 1, "BiasAddGrad", "grad_b", {});
  d.contribute(n, 0, dy);
}

// ---------------------------------------------------------------------------- gated units

void infer_glu(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0);
  if (x.columns() % 2 != 0)
    fail_at(n, "x = ", x.name, " has ", x.columns(), " columns, but must have an even number");
  Extent y = x.extent;
  y.back() /= 2;
  set_extent(g, n, 0, y);
}

void emit_glu(Emitter &e, const Node &n) {
  const Tensor &y = n.is_backward ? e.graph().in(n, 0) : e.graph().out(n, 0);
  auto activation = static_cast<mp_activation_t>(n.operation->traits.variant);
  if (!n.attributes.empty() && n.attributes[0].integer != 0) activation = MP_ACT_GELU_ERF;
  const auto desc = mp_glu_desc_default(activation, y.rows(), y.columns(), n.dtype);
  const bool is_backward = n.is_backward;
  e.append(is_backward ? "mp_glu_backward" : "mp_glu_forward", [=](const LaunchArgs &run) {
    if (!is_backward) return mp_glu_forward(run.context, &desc, run.in(0), run.out(0), run.stream);
    return mp_glu_backward(run.context, &desc, run.in(1), run.in(0), run.out(0), &run.stats,
                           run.stream);
  });
}

// ---------------------------------------------------------------------------- Reshape

constexpr Attribute kReshape[] = {integers("extent", -1, int64_t{1} << 48)};

void infer_reshape(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0);
  const std::vector<int64_t> &given = n.attributes[0].integers;
  Extent y;
  int64_t known = 1;
  size_t open = given.size();
  for (size_t i = 0; i < given.size(); ++i) {
    int64_t extent = given[i];
    if (extent == 0) {
      if (i >= x.extent.size())
        fail_at(n, "extent ", i, " = 0, but x = ", x.name, " has only ", x.extent.size(),
                x.extent.size() == 1 ? " dimension" : " dimensions");
      extent = x.extent[i];
    }
    if (extent == -1) {
      if (open != given.size())
        fail_at(n, "extents ", open, " and ", i, " = -1: at most one extent can be -1");
      open = i;
    }
    y.push_back(extent);
    if (extent == -1) continue;
    // Also prevents overflow of the product.
    if (extent > x.numel() / known)
      fail_at(n, "x = ", x.name, " has ", x.numel(),
              " elements, fewer than the product of extents 0 to ", i);
    known *= extent;
  }
  if (open != y.size()) y[open] = x.numel() / known;
  Tensor result;
  result.extent = y;
  if (result.numel() != x.numel())
    fail_at(n, "x = ", x.name, " has ", x.numel(), " elements, but shape ", text_of(y), " has ",
            result.numel());
  set_extent(g, n, 0, y);
}

// ---------------------------------------------------------------------------- the table

// clang-format off
constexpr Operation kPointwise[] = {
    {"Relu", {{"x"}}, {{"y"}}, {}, emit_pointwise, {.activation = MP_ACT_RELU}, infer_same},
    {"ReluGrad", {{"dy"}, {"y"}}, {{"dx"}}, {}, emit_pointwise, {.activation = MP_ACT_DRELU}},
    {"Gelu", {{"x"}}, {{"y"}}, kErf, emit_pointwise, {.activation = MP_ACT_GELU}, infer_same},
    {"GeluGrad", {{"dy"}, {"x"}}, {{"dx"}}, kErf, emit_pointwise, {.activation = MP_ACT_DGELU}},
    {"Silu", {{"x"}}, {{"y"}}, {}, emit_pointwise, {.activation = MP_ACT_SILU}, infer_same},
    {"SiluGrad", {{"dy"}, {"x"}}, {{"dx"}}, {}, emit_pointwise, {.activation = MP_ACT_DSILU}},
    {"Sigmoid", {{"x"}}, {{"y"}}, {}, emit_pointwise, {.activation = MP_ACT_SIGMOID}, infer_same},
    {"SigmoidGrad", {{"dy"}, {"x"}}, {{"dx"}}, {}, emit_pointwise, {.activation = MP_ACT_DSIGMOID}},
    {"Tanh", {{"x"}}, {{"y"}}, {}, emit_pointwise, {.activation = MP_ACT_TANH}, infer_same},
    {"TanhGrad", {{"dy"}, {"x"}}, {{"dx"}}, {}, emit_pointwise, {.activation = MP_ACT_DTANH}},
    {"Add", {{"a"}, {"b"}}, {{"y"}}, {}, emit_pointwise, {.variant = MP_POINTWISE_ADD},
     infer_binary, differentiate_add},
    {"Mul", {{"a"}, {"b"}}, {{"y"}}, {}, emit_pointwise, {.variant = MP_POINTWISE_MUL},
     infer_binary, differentiate_mul},
    {"MulGrad", {{"dy"}, {"b or a"}}, {{"da or db"}}, {}, emit_pointwise,
     {.variant = MP_POINTWISE_MUL}},
    {"Sub", {{"a"}, {"b"}}, {{"y"}}, {}, emit_pointwise, {.variant = MP_POINTWISE_SUB},
     infer_binary, differentiate_sub},
    {"SubGrad", {{"dy"}}, {{"db"}}, {}, emit_negative},
    {"Div", {{"a"}, {"b"}}, {{"y"}}, {}, emit_pointwise, {.variant = MP_POINTWISE_DIV},
     infer_binary, differentiate_div},
    {"DivGrad", {{"dy"}, {"b"}}, {{"da or db"}}, {}, emit_pointwise, {.variant = MP_POINTWISE_DIV}},
    {"LeakyRelu", {{"x"}}, {{"y"}}, kSlope, emit_pointwise, {.variant = MP_POINTWISE_LEAKY_RELU},
     infer_same},
    {"LeakyReluGrad", {{"dy"}, {"x"}}, {{"dx"}}, kSlope, emit_pointwise,
     {.variant = MP_POINTWISE_DLEAKY_RELU}},
    {"Clip", {{"x"}}, {{"y"}}, kRange, emit_pointwise, {.variant = MP_POINTWISE_CLIP}, infer_clip},
    {"ClipGrad", {{"dy"}, {"x"}}, {{"dx"}}, kRange, emit_pointwise,
     {.variant = MP_POINTWISE_DCLIP}},
    {"BiasAdd", {{"x"}, {"b", kFp32}}, {{"y"}}, {}, emit_pointwise, {.variant = MP_POINTWISE_ADD},
     infer_bias_add, differentiate_bias_add},
    {"RepeatGrad", {{"dy"}}, {{"db", kFp32}}, {}, emit_repeat_grad,
     {.flags = MP_NODE_FLAG_READS_EITHER}},
    {"Swiglu", {{"x"}}, {{"y"}}, {}, emit_glu, {.variant = MP_ACT_SILU}, infer_glu},
    {"SwigluGrad", {{"dy"}, {"x"}}, {{"dx"}}, {}, emit_glu, {.variant = MP_ACT_SILU}},
    {"Geglu", {{"x"}}, {{"y"}}, kErf, emit_glu, {.variant = MP_ACT_GELU}, infer_glu},
    {"GegluGrad", {{"dy"}, {"x"}}, {{"dx"}}, kErf, emit_glu, {.variant = MP_ACT_GELU}},
    {"Identity", {{"x"}}, {{"y"}}, {}, emit_pointwise,
     {.variant = MP_POINTWISE_COPY, .flags = kEitherType, .writes_as_it_reads = true}},
    {"Reshape", {{"x"}}, {{"y"}}, kReshape, nullptr, {.is_view = true}, infer_reshape},
    {"ReshapeGrad", {{"dy"}}, {{"dx"}}, kReshape, nullptr, {.is_view = true}}};
// clang-format on

}  // namespace

std::span<const Operation> pointwise_operations() {
  return kPointwise;
}

}  // namespace mp::graph
