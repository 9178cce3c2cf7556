// Losses and external gradients: the start of the backward pass.
#include <string>
#include <utility>

#include "graph/executor/emitter.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

/// Returns the node whose outputs are the loss: backward computes it with its gradient.
const Node &forward_of(const Graph &g, const Node &n) {
  return n.is_backward ? g.node(n.forward) : n;
}

constexpr Attribute kXent[] = {real("weight", 1, -3e38, 3e38),
                               real("label_smoothing", 0, 0, 0.99999994),
                               integer("ignore_label", -100, -kMaxInt32 - 1, kMaxInt32)};

enum : size_t { kLogits, kLabels };           // inputs
enum : size_t { kLoss, kRowLoss, kCorrect };  // outputs

void infer_xent(Graph &g, const Node &n) {
  const Tensor &logits = require_floats(g, n, kLogits);
  require_integers(g, n, kLabels);
  require_extent(g, n, kLabels, Extent(logits.extent.begin(), logits.extent.end() - 1));
  set_extent(g, n, kLoss, {});
  set_extent(g, n, kRowLoss, {logits.rows()});
  set_extent(g, n, kCorrect, {sizeof(int64_t)});
  if (n.has_output(kCorrect)) g.tensor(n.outputs[kCorrect]).dtype = MP_DTYPE_NONE;
}

void differentiate_xent(Gradients &d, const Node &n) {
  if (!d.is_wanted(n, kLogits)) return;
  const int32_t dlogits = d.make(n, kLogits);
  d.append(n, "SoftmaxXentGrad", "grad_logits", {n.input(kLogits), n.input(kLabels)}, {dlogits});
  d.contribute(n, kLogits, dlogits);
}

void emit_xent(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  const Node &forward = forward_of(g, n);
  const Tensor &logits = g.in(n, kLogits);
  const mp_dtype_t dtype = g.dtype_read(n.inputs[kLogits]);
  mp_xent_desc_t desc = mp_xent_desc_default(logits.rows(), logits.columns(), dtype);
  desc.weight = static_cast<float>(n.attributes[0].real);
  desc.label_smoothing = static_cast<float>(n.attributes[1].real);
  desc.ignore_label = n.attributes[2].integer;
  const bool is_backward = n.is_backward;
  const AddressIndex loss = e.out(forward, kLoss), row_loss = e.out(forward, kRowLoss),
                     correct = e.out(forward, kCorrect);
  if (forward.has_output(kCorrect))  // mp_softmax_xent adds to it
    e.append(
        "mp_memset",
        [=](const LaunchArgs &run) {
          if (run.in(kLabels) == nullptr) return MP_SUCCESS;
          return mp_memset(run.context, run.at(correct), 0, sizeof(int64_t), run.stream);
        },
        kCorrect);
  e.append("mp_softmax_xent", [=](const LaunchArgs &run) {
    if (run.in(kLabels) == nullptr) return MP_SUCCESS;  // inference without labels: no loss
    mp_xent_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = run.in(kLogits);
    t.labels = run.in(kLabels);
    t.loss_scale = is_backward ? run.loss_scale : nullptr;
    t.row_loss = run.floats_at(row_loss);
    t.loss = run.floats_at(loss);
    t.correct = static_cast<int64_t *>(run.at(correct));
    t.dx = is_backward ? run.out(0) : nullptr;
    return mp_softmax_xent(run.context, &desc, &t, run.stream);
  });
}

// ---------------------------------------------------------------------------- element-wise losses

constexpr Attribute kElements[] = {real("weight", 1, -3e38, 3e38)};

enum : size_t { kPrediction, kTarget, kWeight };  // inputs; the only output is kLoss

void infer_elements(Graph &g, const Node &n) {
  const Tensor &prediction = require_floats(g, n, kPrediction);
  require_floats(g, n, kTarget);
  require_extent(g, n, kTarget, prediction.extent);
  if (n.has_input(kWeight)) {
    const Tensor &weight = require_floats(g, n, kWeight);
    require_extent(g, n, kWeight, prediction.extent);
    if (weight.role == Role::input && weight.dtype != MP_FP32)
      fail_at(n, "weight = ", weight.name, " must be fp32, not ", mp_dtype_name(weight.dtype));
  }
  set_extent(g, n, kLoss, {});
}

void differentiate_elements(Gradients &d, const Node &n) {
  for (const size_t input : {kTarget, kWeight})
    if (d.is_wanted(n, input))
      fail_at(n, n.operation->inputs[input].name, " = ", d.graph().in(n, input).name,
              " must not depend on a parameter: its gradient is not computed");
  if (!d.is_wanted(n, kPrediction)) return;
  const int32_t dx = d.make(n, kPrediction);
  d.append(
      n, std::string(n.operation->type) + "Grad", "grad_prediction",
      {n.input(kPrediction), n.input(kTarget), n.has_input(kWeight) ? n.input(kWeight) : kNone},
      {dx});
  d.contribute(n, kPrediction, dx);
}

/// Emits the loss of the row's variant, an mp_loss_kind_t.
void emit_elements(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  mp_loss_desc_t desc =
      mp_loss_desc_default(static_cast<mp_loss_kind_t>(n.operation->traits.variant),
                           g.in(n, kPrediction).numel(), g.dtype_read(n.inputs[kPrediction]));
  desc.dtype_target = g.dtype_read(n.inputs[kTarget]);
  desc.weight = static_cast<float>(n.attributes[0].real);
  size_t bytes = 0;
  require_success(mp_loss_workspace_size(e.context(), &desc, &bytes));
  e.needs_workspace(bytes);
  const bool is_backward = n.is_backward, has_weight = n.has_input(kWeight);
  const AddressIndex loss = e.out(forward_of(g, n), kLoss);
  e.append("mp_loss", [=, name = n.name](const LaunchArgs &run) {
    if (run.in(kTarget) == nullptr) return MP_SUCCESS;  // inference without target: no loss
    MP_REQUIRE(!has_weight || run.in(kWeight) != nullptr, MP_ERROR_INVALID_ARGUMENT,
               "the weight of ", name, " is not bound; call mp_graph_bind");
    mp_loss_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.prediction = run.in(kPrediction);
    t.target = run.in(kTarget);
    t.weights = run.floats_in(kWeight);
    t.loss_scale = is_backward ? run.loss_scale : nullptr;
    t.loss = run.floats_at(loss);
    t.dprediction = is_backward ? run.out(0) : nullptr;
    return mp_loss(run.context, &desc, &t, run.workspace, run.workspace_bytes, run.stream);
  });
}

// ---------------------------------------------------------------------------- external gradients

/// Multiplies an fp32 gradient by the loss scale S, which is passed as a bias of one column.
void emit_seed(Emitter &e, const Node &n) {
  auto desc = mp_pointwise_desc_default(MP_POINTWISE_MUL, e.graph().out(n, 0).numel(), 1, MP_FP32);
  desc.ld_b = 0;
  e.append("mp_pointwise", [=](const LaunchArgs &run) {
    mp_pointwise_desc_t scaled = desc;
    if (run.loss_scale == nullptr) scaled.op = MP_POINTWISE_COPY;
    return mp_pointwise(run.context, &scaled, run.in(0), run.loss_scale, run.out(0), nullptr,
                        run.stream);
  });
}

// ---------------------------------------------------------------------------- the table

constexpr Traits loss_traits(int32_t variant) {
  return {.variant = variant, .flags = MP_NODE_FLAG_READS_EITHER, .is_loss = true};
}

constexpr Traits grad_traits(int32_t variant) {
  return {.variant = variant,
          .flags = MP_NODE_FLAG_READS_EITHER | MP_NODE_FLAG_WRITES_EITHER,
          .writes_as_it_reads = true};
}

constexpr Port kTargetPort = {"target", kUnbound | kTriggers};
constexpr Port kWeightPort = {"weight", kOptional | kUnbound | kFp32};

// clang-format off
constexpr Operation kLosses[] = {
    {"SoftmaxXent", {{"logits"}, {"labels", kUnbound | kTriggers}},
     {{"loss", kFp32}, {"row_loss", kOptional | kKept | kFp32}, {"correct", kOptional | kFp32}},
     kXent, infer_xent, differentiate_xent, emit_xent, loss_traits(0)},
    {"SoftmaxXentGrad", {{"logits"}, {"labels"}}, {{"dlogits"}}, kXent,
     nullptr, nullptr, emit_xent, grad_traits(0)},
    {"MSE", {{"prediction"}, kTargetPort, kWeightPort}, {{"loss", kFp32}}, kElements,
     infer_elements, differentiate_elements, emit_elements, loss_traits(MP_LOSS_MSE)},
    {"MSEGrad", {{"prediction"}, {"target"}, {"weight", kOptional | kFp32}},
     {{"dprediction"}}, kElements, nullptr, nullptr, emit_elements, grad_traits(MP_LOSS_MSE)},
    {"L1", {{"prediction"}, kTargetPort, kWeightPort}, {{"loss", kFp32}}, kElements,
     infer_elements, differentiate_elements, emit_elements, loss_traits(MP_LOSS_L1)},
    {"L1Grad", {{"prediction"}, {"target"}, {"weight", kOptional | kFp32}},
     {{"dprediction"}}, kElements, nullptr, nullptr, emit_elements, grad_traits(MP_LOSS_L1)},
    {"BCEWithLogits", {{"prediction"}, kTargetPort, kWeightPort}, {{"loss", kFp32}}, kElements,
     infer_elements, differentiate_elements, emit_elements, loss_traits(MP_LOSS_BCE_WITH_LOGITS)},
    {"BCEWithLogitsGrad", {{"prediction"}, {"target"}, {"weight", kOptional | kFp32}},
     {{"dprediction"}}, kElements, nullptr, nullptr, emit_elements,
     grad_traits(MP_LOSS_BCE_WITH_LOGITS)},
    {"SeedGradient", {{"gradient", kFp32}}, {{"scaled gradient"}}, {},
     nullptr, nullptr, emit_seed, {.flags = MP_NODE_FLAG_NO_LOW}}};
// clang-format on

}  // namespace

std::span<const Operation> loss_operations() {
  return kLosses;
}

}  // namespace mp::graph
