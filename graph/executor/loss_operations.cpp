// Losses and external gradients: the start of the backward pass.
#include <string>
#include <utility>

#include "graph/executor/emitter.h"
#include "graph/executor/families.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

constexpr Attribute kXent[] = {real("weight", 1, -3e38, 3e38),
                               real("label_smoothing", 0, 0, 0.99999994),
                               integer("ignore_label", -100, -kMaxInt32 - 1, kMaxInt32)};

enum : size_t { kLogits, kLabels };           // inputs
enum : size_t { kLoss, kRowLoss, kCorrect };  // outputs

/// Emits the calls of the forward node or, with dlogits, of the backward node.
void emit_xent(Emitter &e, const Node &n, const Node &forward, Place dlogits) {
  const Graph &g = e.graph();
  const Tensor &logits = g.in(n, kLogits);
  const mp_dtype_t dtype = g.dtype_read(n.inputs[kLogits]);
  mp_xent_desc_t desc = mp_xent_desc_default(logits.rows(), logits.columns(), dtype);
  desc.weight = static_cast<float>(n.attributes[0].real);
  desc.label_smoothing = static_cast<float>(n.attributes[1].real);
  desc.ignore_label = n.attributes[2].integer;
  const bool is_backward = n.is_backward;
  const Place x = e.in(n, kLogits), labels = e.in(n, kLabels), loss = e.out(forward, kLoss),
              row_loss = e.out(forward, kRowLoss), correct = e.out(forward, kCorrect);
  if (forward.has_output(kCorrect))  // mp_softmax_xent adds to it
    e.append(
        "mp_memset",
        [=](const Run &run) {
          if (run.at(labels) == nullptr) return MP_SUCCESS;
          return mp_memset(run.context, run.at(correct), 0, sizeof(int64_t), run.stream);
        },
        kCorrect);
  e.append("mp_softmax_xent", [=](const Run &run) {
    if (run.at(labels) == nullptr) return MP_SUCCESS;  // inference without labels computes no loss
    mp_xent_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = run.at(x);
    t.labels = run.at(labels);
    t.loss_scale = is_backward ? run.loss_scale : nullptr;
    t.row_loss = run.floats_at(row_loss);
    t.loss = run.floats_at(loss);
    t.correct = static_cast<int64_t *>(run.at(correct));
    t.dx = run.at(dlogits);
    return mp_softmax_xent(run.context, &desc, &t, run.stream);
  });
}

class SoftmaxXent final : public Operation {
 public:
  SoftmaxXent() : Operation("SoftmaxXent", {2, 2}, {1, 3}) {}
  bool may_be_unbound(size_t i) const override { return i == kLabels; }
  bool idles_without(size_t i) const override { return i == kLabels; }
  bool is_loss() const override { return true; }
  std::span<const Attribute> attributes() const override { return kXent; }
  uint16_t flags() const override { return MP_NODE_FLAG_READS_EITHER; }
  uint8_t output_slot(size_t) const override { return MP_AUTOCAST_SLOT_FP32; }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &logits = require_floats(g, n, kLogits, "logits");
    require_integers(g, n, kLabels, "labels");
    require_extent(g, n, kLabels, "labels", Extent(logits.extent.begin(), logits.extent.end() - 1));
    set_extent(g, n, kLoss, {});
    set_extent(g, n, kRowLoss, {logits.rows()});
    set_extent(g, n, kCorrect, {sizeof(int64_t)});
    if (n.has_output(kCorrect)) g.tensor(n.outputs[kCorrect]).dtype = MP_DTYPE_NONE;
  }

  void keep(Graph &g, Node &n) const override {
    if (!n.has_output(kRowLoss)) {  // mp_softmax_xent always writes it
      Tensor row_loss;
      row_loss.name = n.name + "/row_loss";
      row_loss.extent = {g.in(n, kLogits).rows()};
      row_loss.producer = g.out(n, kLoss).producer;
      n.outputs.resize(kRowLoss, kNone);
      n.outputs.push_back(g.add(std::move(row_loss)));
    }
    for (const int32_t output : n.outputs) g.tensor(output).is_output = true;
  }

  void differentiate(Gradients &d, const Node &n) const override {
    if (!d.is_wanted(n, kLogits)) return;
    const int32_t dlogits = d.make(n, kLogits);
    d.append(n, "SoftmaxXentGrad", "grad_logits", {n.input(kLogits), n.input(kLabels)}, {dlogits});
    d.contribute(n, kLogits, dlogits);
  }

  void emit(Emitter &e, const Node &n) const override { emit_xent(e, n, n, e.nowhere()); }
};

class SoftmaxXentGrad final : public BackwardOperation {
 public:
  SoftmaxXentGrad() : BackwardOperation("SoftmaxXentGrad") {}
  std::span<const Attribute> attributes() const override { return kXent; }
  uint16_t flags() const override { return MP_NODE_FLAG_READS_EITHER | MP_NODE_FLAG_WRITES_EITHER; }
  bool writes_as_it_reads() const override { return true; }

  void emit(Emitter &e, const Node &n) const override {
    emit_xent(e, n, e.graph().node(n.forward), e.out(n, 0));
  }
};

// ---------------------------------------------------------------------------- element-wise losses

constexpr Attribute kElements[] = {real("weight", 1, -3e38, 3e38)};

enum : size_t { kPrediction, kTarget, kWeight };  // inputs; the only output is kLoss

struct ElementKind {
  std::string_view type, grad;
  mp_loss_kind_t kind;
};

constexpr ElementKind kElementKinds[] = {
    {"MSE", "MSEGrad", MP_LOSS_MSE},
    {"L1", "L1Grad", MP_LOSS_L1},
    {"BCEWithLogits", "BCEWithLogitsGrad", MP_LOSS_BCE_WITH_LOGITS}};

/// Emits the call of the forward node or, with dprediction, of the backward node.
void emit_elements(Emitter &e, const Node &n, const Node &forward, mp_loss_kind_t kind,
                   Place dprediction) {
  const Graph &g = e.graph();
  mp_loss_desc_t desc =
      mp_loss_desc_default(kind, g.in(n, kPrediction).numel(), g.dtype_read(n.inputs[kPrediction]));
  desc.dtype_target = g.dtype_read(n.inputs[kTarget]);
  desc.weight = static_cast<float>(n.attributes[0].real);
  size_t bytes = 0;
  require_success(mp_loss_workspace_size(e.context(), &desc, &bytes));
  e.needs_workspace(bytes);
  const bool is_backward = n.is_backward;
  const Place x = e.in(n, kPrediction), target = e.in(n, kTarget), weights = e.in(n, kWeight),
              loss = e.out(forward, kLoss);
  e.append("mp_loss", [=, nowhere = e.nowhere(), name = n.name](const Run &run) {
    if (run.at(target) == nullptr) return MP_SUCCESS;  // inference without target computes no loss
    MP_REQUIRE(weights == nowhere || run.at(weights) != nullptr, MP_ERROR_INVALID_ARGUMENT,
               "the weight of ", name, " is not bound; call mp_graph_bind");
    mp_loss_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.prediction = run.at(x);
    t.target = run.at(target);
    t.weights = run.floats_at(weights);
    t.loss_scale = is_backward ? run.loss_scale : nullptr;
    t.loss = run.floats_at(loss);
    t.dprediction = run.at(dprediction);
    return mp_loss(run.context, &desc, &t, run.workspace, run.workspace_bytes, run.stream);
  });
}

class ElementLoss final : public Operation {
 public:
  explicit ElementLoss(const ElementKind &kind)
      : Operation(kind.type, {2, 3}, {1, 1}), kind(kind) {}
  bool may_be_unbound(size_t i) const override { return i != kPrediction; }
  bool idles_without(size_t i) const override { return i == kTarget; }
  bool is_loss() const override { return true; }
  std::span<const Attribute> attributes() const override { return kElements; }
  uint16_t flags() const override { return MP_NODE_FLAG_READS_EITHER; }
  uint8_t input_slot(size_t i) const override { return i == kWeight ? MP_AUTOCAST_SLOT_FP32 : 0; }
  uint8_t output_slot(size_t) const override { return MP_AUTOCAST_SLOT_FP32; }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &prediction = require_floats(g, n, kPrediction, "prediction");
    require_floats(g, n, kTarget, "target");
    require_extent(g, n, kTarget, "target", prediction.extent);
    if (n.has_input(kWeight)) {
      const Tensor &weight = require_floats(g, n, kWeight, "weight");
      require_extent(g, n, kWeight, "weight", prediction.extent);
      if (weight.role == Role::input && weight.dtype != MP_FP32)
        fail_at(n, "weight = ", weight.name, " must be fp32, not ", mp_dtype_name(weight.dtype));
    }
    set_extent(g, n, kLoss, {});
  }

  void keep(Graph &g, Node &n) const override { g.tensor(n.outputs[kLoss]).is_output = true; }

  void differentiate(Gradients &d, const Node &n) const override {
    for (const auto &[input, name] : {std::pair{kTarget, "target"}, std::pair{kWeight, "weight"}})
      if (d.is_wanted(n, input))
        fail_at(n, name, " = ", d.graph().in(n, input).name,
                " must not depend on a parameter: its gradient is not computed");
    if (!d.is_wanted(n, kPrediction)) return;
    const int32_t dx = d.make(n, kPrediction);
    d.append(
        n, kind.grad, "grad_prediction",
        {n.input(kPrediction), n.input(kTarget), n.has_input(kWeight) ? n.input(kWeight) : kNone},
        {dx});
    d.contribute(n, kPrediction, dx);
  }

  void emit(Emitter &e, const Node &n) const override {
    emit_elements(e, n, n, kind.kind, e.nowhere());
  }

  const ElementKind &kind;
};

class ElementLossGrad final : public BackwardOperation {
 public:
  explicit ElementLossGrad(const ElementKind &kind) : BackwardOperation(kind.grad), kind(kind) {}
  std::span<const Attribute> attributes() const override { return kElements; }
  uint16_t flags() const override { return MP_NODE_FLAG_READS_EITHER | MP_NODE_FLAG_WRITES_EITHER; }
  uint8_t input_slot(size_t i) const override { return i == kWeight ? MP_AUTOCAST_SLOT_FP32 : 0; }
  bool writes_as_it_reads() const override { return true; }

  void emit(Emitter &e, const Node &n) const override {
    emit_elements(e, n, e.graph().node(n.forward), kind.kind, e.out(n, 0));
  }

  const ElementKind &kind;
};

// ---------------------------------------------------------------------------- external gradients

/// Input: an fp32 gradient, which is multiplied by the loss scale S.
class SeedGradient final : public BackwardOperation {
 public:
  SeedGradient() : BackwardOperation("SeedGradient") {}
  uint16_t flags() const override { return MP_NODE_FLAG_NO_LOW; }
  uint8_t input_slot(size_t) const override { return MP_AUTOCAST_SLOT_FP32; }

  void emit(Emitter &e, const Node &n) const override {
    // S is passed as a bias of one column.
    auto desc =
        mp_pointwise_desc_default(MP_POINTWISE_MUL, e.graph().out(n, 0).numel(), 1, MP_FP32);
    desc.ld_b = 0;
    const Place seed = e.in(n, 0), gradient = e.out(n, 0);
    e.append("mp_pointwise", [=](const Run &run) {
      mp_pointwise_desc_t scaled = desc;
      if (run.loss_scale == nullptr) scaled.op = MP_POINTWISE_COPY;
      return mp_pointwise(run.context, &scaled, run.at(seed), run.loss_scale, run.at(gradient),
                          nullptr, run.stream);
    });
  }
};

const SoftmaxXent softmax_xent;
const SoftmaxXentGrad softmax_xent_grad;
const ElementLoss mse(kElementKinds[0]), l1(kElementKinds[1]), bce_with_logits(kElementKinds[2]);
const ElementLossGrad mse_grad(kElementKinds[0]), l1_grad(kElementKinds[1]),
    bce_with_logits_grad(kElementKinds[2]);
const SeedGradient seed_gradient;

}  // namespace

std::span<const Operation *const> loss_operations() {
  static const Operation *const all[] = {&softmax_xent, &softmax_xent_grad,    &mse,
                                         &l1,           &bce_with_logits,      &mse_grad,
                                         &l1_grad,      &bce_with_logits_grad, &seed_gradient};
  return all;
}

}  // namespace mp::graph
