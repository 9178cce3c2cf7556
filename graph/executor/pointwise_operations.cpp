// Element-wise operations, and views, which emit no calls.
#include "graph/executor/emitter.h"
#include "graph/executor/families.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

void emit_pointwise(Emitter &e, const mp_pointwise_desc_t &desc, Place a, Place b, Place y) {
  e.append("mp_pointwise", [=](const Run &run) {
    return mp_pointwise(run.context, &desc, run.at(a), run.at(b), run.at(y), nullptr, run.stream);
  });
}

mp_pointwise_desc_t desc_of(const Emitter &e, const Node &n, mp_pointwise_op_t op) {
  const Tensor &y = e.graph().out(n, 0);
  return mp_pointwise_desc_default(op, y.rows(), y.columns(), n.dtype);
}

// ---------------------------------------------------------------------------- activations

/// Activation and its derivative.
struct Kind {
  std::string_view type, grad;
  mp_activation_t activation, derivative;
  bool derives_from_y;  ///< the derivative reads y: relu'(z) = relu'(relu(z)); otherwise z
};

constexpr Kind kKinds[] = {{"Relu", "ReluGrad", MP_ACT_RELU, MP_ACT_DRELU, true},
                           {"Gelu", "GeluGrad", MP_ACT_GELU, MP_ACT_DGELU, false},
                           {"Silu", "SiluGrad", MP_ACT_SILU, MP_ACT_DSILU, false},
                           {"Sigmoid", "SigmoidGrad", MP_ACT_SIGMOID, MP_ACT_DSIGMOID, false},
                           {"Tanh", "TanhGrad", MP_ACT_TANH, MP_ACT_DTANH, false}};

constexpr Attribute kErf[] = {integer("erf", 0, 0, 1)};

std::span<const Attribute> attributes_of(const Kind &kind) {
  return kind.activation == MP_ACT_GELU ? kErf : std::span<const Attribute>();
}

/// GELU with erf has separate enumerators.
bool is_erf(const Node &n) {
  return !n.attributes.empty() && n.attributes[0].integer != 0;
}

class Activation final : public Operation {
 public:
  explicit Activation(const Kind &kind) : Operation(kind.type, {1, 1}, {1, 1}), kind(kind) {}
  std::span<const Attribute> attributes() const override { return attributes_of(kind); }

  void infer(Graph &g, const Node &n) const override {
    set_extent(g, n, 0, require_floats(g, n, 0, "x").extent);
  }

  void differentiate(Gradients &d, const Node &n) const override {
    if (!d.is_wanted(n, 0)) return;
    const int32_t dx = d.make(n, 0);
    d.append(n, kind.grad, "grad_x", {d.of(n, 0), kind.derives_from_y ? n.outputs[0] : n.input(0)},
             {dx});
    d.contribute(n, 0, dx);
  }

  void emit(Emitter &e, const Node &n) const override {
    mp_pointwise_desc_t desc = desc_of(e, n, MP_POINTWISE_COPY);
    desc.activation = activation(n);
    emit_pointwise(e, desc, e.in(n, 0), e.nowhere(), e.out(n, 0));
  }

  mp_activation_t activation(const Node &n) const override {
    return is_erf(n) ? MP_ACT_GELU_ERF : kind.activation;
  }

  const Kind &kind;
};

/// Inputs: dy, and y or z for the derivative.
class ActivationGrad final : public BackwardOperation {
 public:
  explicit ActivationGrad(const Kind &kind) : BackwardOperation(kind.grad), kind(kind) {}
  std::span<const Attribute> attributes() const override { return attributes_of(kind); }

  void emit(Emitter &e, const Node &n) const override {
    mp_pointwise_desc_t desc = desc_of(e, n, MP_POINTWISE_COPY);
    desc.activation = activation(n);
    emit_pointwise(e, desc, e.in(n, 0), e.in(n, 1), e.out(n, 0));
  }

  mp_activation_t activation(const Node &n) const override {
    return is_erf(n) ? MP_ACT_DGELU_ERF : kind.derivative;
  }

  const Kind &kind;
};

// ---------------------------------------------------------------------------- binary operations

/// Infers the shape of an operation on two tensors of equal shape.
void infer_equal(Graph &g, const Node &n) {
  const Tensor &a = require_floats(g, n, 0, "a");
  require_floats(g, n, 1, "b");
  require_extent(g, n, 1, "b", a.extent);
  set_extent(g, n, 0, a.extent);
}

class Add final : public Operation {
 public:
  Add() : Operation("Add", {2, 2}, {1, 1}) {}

  void infer(Graph &g, const Node &n) const override { infer_equal(g, n); }

  void differentiate(Gradients &d, const Node &n) const override {
    for (const size_t i : {0, 1}) d.contribute(n, i, d.of(n, 0));
  }

  void emit(Emitter &e, const Node &n) const override {
    emit_pointwise(e, desc_of(e, n, MP_POINTWISE_ADD), e.in(n, 0), e.in(n, 1), e.out(n, 0));
  }
};

void emit_product(Emitter &e, const Node &n) {
  emit_pointwise(e, desc_of(e, n, MP_POINTWISE_MUL), e.in(n, 0), e.in(n, 1), e.out(n, 0));
}

/// Copies a gradient without a change of type.
class Identity final : public BackwardOperation {
 public:
  Identity() : BackwardOperation("Identity") {}
  uint16_t flags() const override { return MP_NODE_FLAG_READS_EITHER | MP_NODE_FLAG_WRITES_EITHER; }
  bool writes_as_it_reads() const override { return true; }

  void emit(Emitter &e, const Node &n) const override {
    mp_pointwise_desc_t desc = desc_of(e, n, MP_POINTWISE_COPY);
    desc.dtype = e.graph().out(n, 0).dtype;
    emit_pointwise(e, desc, e.in(n, 0), e.nowhere(), e.out(n, 0));
  }
};

class Mul final : public Operation {
 public:
  Mul() : Operation("Mul", {2, 2}, {1, 1}) {}

  void infer(Graph &g, const Node &n) const override { infer_equal(g, n); }

  void differentiate(Gradients &d, const Node &n) const override {
    const int32_t dy = d.of(n, 0);
    for (const size_t i : {0, 1}) {
      if (!d.is_wanted(n, i)) continue;
      const int32_t gradient = d.make(n, i);
      d.append(n, "MulGrad", i == 0 ? "grad_a" : "grad_b", {dy, n.input(1 - i)}, {gradient});
      d.contribute(n, i, gradient);
    }
  }

  void emit(Emitter &e, const Node &n) const override { emit_product(e, n); }
};

/// Inputs: dy and the other factor.
class MulGrad final : public BackwardOperation {
 public:
  MulGrad() : BackwardOperation("MulGrad") {}
  void emit(Emitter &e, const Node &n) const override { emit_product(e, n); }
};

class BiasAdd final : public Operation {
 public:
  BiasAdd() : Operation("BiasAdd", {2, 2}, {1, 1}) {}
  uint8_t input_slot(size_t i) const override { return i == 1 ? MP_AUTOCAST_SLOT_FP32 : 0; }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &x = require_floats(g, n, 0, "x");
    require_vector(g, n, 1, "b", x.columns());
    set_extent(g, n, 0, x.extent);
  }

  void differentiate(Gradients &d, const Node &n) const override {
    const int32_t dy = d.of(n, 0);
    if (d.is_wanted(n, 1)) {
      const int32_t db = d.make(n, 1);
      d.append(n, "BiasAddGrad", "grad_b", {dy}, {db});
      d.contribute(n, 1, db);
    }
    d.contribute(n, 0, dy);
  }

  void emit(Emitter &e, const Node &n) const override {
    mp_pointwise_desc_t desc = desc_of(e, n, MP_POINTWISE_ADD);
    desc.dtype_b = e.graph().dtype_read(n.inputs[1]);
    desc.ld_b = 0;
    emit_pointwise(e, desc, e.in(n, 0), e.in(n, 1), e.out(n, 0));
  }
};

// ---------------------------------------------------------------------------- Reshape

constexpr Attribute kReshape[] = {integers("extent", -1, int64_t{1} << 48)};

class Reshape final : public Operation {
 public:
  Reshape() : Operation("Reshape", {1, 1}, {1, 1}) {}
  bool is_view() const override { return true; }
  std::span<const Attribute> attributes() const override { return kReshape; }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &x = require_floats(g, n, 0, "x");
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

  void differentiate(Gradients &d, const Node &n) const override {
    if (!d.is_wanted(n, 0)) return;
    const int32_t dx = d.make(n, 0);
    d.append(n, "ReshapeGrad", "grad_x", {d.of(n, 0)}, {dx});
    d.contribute(n, 0, dx);
  }

  void emit(Emitter &, const Node &) const override {}
};

class ReshapeGrad final : public BackwardOperation {
 public:
  ReshapeGrad() : BackwardOperation("ReshapeGrad") {}
  bool is_view() const override { return true; }
  void emit(Emitter &, const Node &) const override {}
};

const Activation relu(kKinds[0]), gelu(kKinds[1]), silu(kKinds[2]), sigmoid(kKinds[3]),
    tanh_of(kKinds[4]);
const ActivationGrad relu_grad(kKinds[0]), gelu_grad(kKinds[1]), silu_grad(kKinds[2]),
    sigmoid_grad(kKinds[3]), tanh_grad(kKinds[4]);
const Add add;
const Identity identity;
const Mul mul;
const MulGrad mul_grad;
const BiasAdd bias_add;
const Reshape reshape;
const ReshapeGrad reshape_grad;

}  // namespace

std::span<const Operation *const> pointwise_operations() {
  static const Operation *const all[] = {
      &relu,      &gelu,      &silu,         &sigmoid,   &tanh_of,     &relu_grad,
      &gelu_grad, &silu_grad, &sigmoid_grad, &tanh_grad, &add,         &identity,
      &mul,       &mul_grad,  &bias_add,     &reshape,   &reshape_grad};
  return all;
}

}  // namespace mp::graph
