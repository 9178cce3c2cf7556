// Element-wise operations, and views, which emit no calls.
#include "graph/executor/emitter.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

/// Emits mp_pointwise of the inputs of a node.
void emit_pointwise(Emitter &e, const mp_pointwise_desc_t &desc) {
  e.append("mp_pointwise", [=](const LaunchArgs &run) {
    return mp_pointwise(run.context, &desc, run.in(0), run.in(1), run.out(0), nullptr, run.stream);
  });
}

mp_pointwise_desc_t desc_of(const Emitter &e, const Node &n, mp_pointwise_op_t op) {
  const Tensor &y = e.graph().out(n, 0);
  return mp_pointwise_desc_default(op, y.rows(), y.columns(), n.dtype);
}

// ---------------------------------------------------------------------------- activations

constexpr Attribute kErf[] = {integer("erf", 0, 0, 1)};

/// Returns the type of the gradient of an operation.
std::string gradient_of(const Node &n) {
  return std::string(n.operation->type) + "Grad";
}

/// The derivative of ReLU reads y: relu'(z) = relu'(relu(z)); the others read z.
void differentiate_activation(Gradients &d, const Node &n) {
  const bool reads_y = n.operation->traits.activation == MP_ACT_RELU;
  d.append_gradient(n, 0, gradient_of(n), "grad_x", {reads_y ? n.outputs[0] : n.input(0)});
}

void emit_activation(Emitter &e, const Node &n) {
  mp_pointwise_desc_t desc = desc_of(e, n, MP_POINTWISE_COPY);
  desc.activation = activation_of(n);
  emit_pointwise(e, desc);
}

// ---------------------------------------------------------------------------- binary operations

/// Infers the shape of an operation on two tensors of equal shape.
void infer_equal(Graph &g, const Node &n) {
  const Tensor &a = require_floats(g, n, 0);
  require_floats(g, n, 1);
  require_extent(g, n, 1, a.extent);
  set_extent(g, n, 0, a.extent);
}

void differentiate_add(Gradients &d, const Node &n) {
  for (const size_t i : {0, 1}) d.contribute(n, i, d.of(n, 0));
}

void differentiate_mul(Gradients &d, const Node &n) {
  d.of(n, 0);  // sums the contributions before the gradients exist
  d.append_gradient(n, 0, "MulGrad", "grad_a", {n.input(1)});
  d.append_gradient(n, 1, "MulGrad", "grad_b", {n.input(0)});
}

/// Emits the row's variant, an mp_pointwise_op_t.
void emit_binary(Emitter &e, const Node &n) {
  emit_pointwise(e, desc_of(e, n, static_cast<mp_pointwise_op_t>(n.operation->traits.variant)));
}

/// Copies a gradient without a change of type.
void emit_identity(Emitter &e, const Node &n) {
  mp_pointwise_desc_t desc = desc_of(e, n, MP_POINTWISE_COPY);
  desc.dtype = e.graph().out(n, 0).dtype;
  emit_pointwise(e, desc);
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

void emit_bias_add(Emitter &e, const Node &n) {
  mp_pointwise_desc_t desc = desc_of(e, n, MP_POINTWISE_ADD);
  desc.dtype_b = e.graph().dtype_read(n.inputs[1]);
  desc.ld_b = 0;
  emit_pointwise(e, desc);
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

void differentiate_reshape(Gradients &d, const Node &n) {
  d.append_gradient(n, 0, "ReshapeGrad", "grad_x", {});
}

// ---------------------------------------------------------------------------- the table

// clang-format off
constexpr Operation kPointwise[] = {
    {"Relu", {{"x"}}, {{"y"}}, {}, infer_same, differentiate_activation, emit_activation,
     {.activation = MP_ACT_RELU}},
    {"ReluGrad", {{"dy"}, {"y"}}, {{"dx"}}, {}, nullptr, nullptr, emit_activation,
     {.activation = MP_ACT_DRELU}},
    {"Gelu", {{"x"}}, {{"y"}}, kErf, infer_same, differentiate_activation, emit_activation,
     {.activation = MP_ACT_GELU}},
    {"GeluGrad", {{"dy"}, {"x"}}, {{"dx"}}, kErf, nullptr, nullptr, emit_activation,
     {.activation = MP_ACT_DGELU}},
    {"Silu", {{"x"}}, {{"y"}}, {}, infer_same, differentiate_activation, emit_activation,
     {.activation = MP_ACT_SILU}},
    {"SiluGrad", {{"dy"}, {"x"}}, {{"dx"}}, {}, nullptr, nullptr, emit_activation,
     {.activation = MP_ACT_DSILU}},
    {"Sigmoid", {{"x"}}, {{"y"}}, {}, infer_same, differentiate_activation, emit_activation,
     {.activation = MP_ACT_SIGMOID}},
    {"SigmoidGrad", {{"dy"}, {"x"}}, {{"dx"}}, {}, nullptr, nullptr, emit_activation,
     {.activation = MP_ACT_DSIGMOID}},
    {"Tanh", {{"x"}}, {{"y"}}, {}, infer_same, differentiate_activation, emit_activation,
     {.activation = MP_ACT_TANH}},
    {"TanhGrad", {{"dy"}, {"x"}}, {{"dx"}}, {}, nullptr, nullptr, emit_activation,
     {.activation = MP_ACT_DTANH}},
    {"Add", {{"a"}, {"b"}}, {{"y"}}, {}, infer_equal, differentiate_add, emit_binary,
     {.variant = MP_POINTWISE_ADD}},
    {"Mul", {{"a"}, {"b"}}, {{"y"}}, {}, infer_equal, differentiate_mul, emit_binary,
     {.variant = MP_POINTWISE_MUL}},
    {"MulGrad", {{"dy"}, {"b or a"}}, {{"da or db"}}, {}, nullptr, nullptr, emit_binary,
     {.variant = MP_POINTWISE_MUL}},
    {"BiasAdd", {{"x"}, {"b", kFp32}}, {{"y"}}, {},
     infer_bias_add, differentiate_bias_add, emit_bias_add},
    {"Identity", {{"x"}}, {{"y"}}, {}, nullptr, nullptr, emit_identity,
     {.flags = MP_NODE_FLAG_READS_EITHER | MP_NODE_FLAG_WRITES_EITHER, .writes_as_it_reads = true}},
    {"Reshape", {{"x"}}, {{"y"}}, kReshape, infer_reshape, differentiate_reshape, nullptr,
     {.is_view = true}},
    {"ReshapeGrad", {{"dy"}}, {{"dx"}}, kReshape, nullptr, nullptr, nullptr, {.is_view = true}}};
// clang-format on

}  // namespace

std::span<const Operation> pointwise_operations() {
  return kPointwise;
}

}  // namespace mp::graph
