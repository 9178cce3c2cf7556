// Losses and external gradients: the start of the backward pass.
#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

/// Returns the node whose outputs are the loss: backward computes it with its gradient.
const Node &forward_of(const Graph &g, const Node &n) {
  return n.is_backward ? g.node(n.forward) : n;
}

constexpr Attribute kXent[] = {
    real("weight", 1, -3e38, 3e38), real("label_smoothing", 0, 0, 0.99999994),
    integer("ignore_label", -100, -kMaxInt32 - 1, kMaxInt32), real("z_loss", 0, 0, 3e38)};

enum : size_t { kX };                         // first input: logits, or the input of the product
enum : size_t { kLoss, kRowLoss, kCorrect };  // outputs, forward
enum : size_t { kGradX, kGradW, kGradBias };  // outputs, backward

/// Inputs of SoftmaxXent or LinearXent, in both passes.
struct XentInputs {
  size_t w, bias, labels, count;
};
constexpr XentInputs kSoftmaxXent = {kAbsent, kAbsent, 1, 2}, kLinearXent = {1, 2, 3, 4};
enum : int32_t { kOfLogits, kOfProduct };  // variants

XentInputs inputs_of(const Node &n) {
  return n.operation->traits.variant == kOfProduct ? kLinearXent : kSoftmaxXent;
}

void infer_xent(Graph &g, const Node &n) {
  constexpr int64_t kMaxWidth = 65536, kMaxClasses = int64_t{1} << 22;
  const Tensor &x = require_floats(g, n, kX);
  const XentInputs in = inputs_of(n);
  if (n.has_input(in.w)) {
    const Tensor &w = require_floats(g, n, in.w, 2);
    if (w.columns() != x.columns())
      fail_at(n, "x = ", x.name, " has ", x.columns(), " features, but w = ", w.name, " expects ",
              w.columns());
    if (w.columns() > kMaxWidth || w.extent[0] > kMaxClasses)
      fail_at(n, "w = ", w.name, " has shape ", text_of(w.extent), ", but can have at most ",
              kMaxClasses, " rows and ", kMaxWidth, " columns");
    require_vector(g, n, in.bias, w.extent[0]);
  }
  require_integers(g, n, in.labels);
  require_extent(g, n, in.labels, Extent(x.extent.begin(), x.extent.end() - 1));
  if (n.has_input(in.count)) {
    const Tensor &count = require_floats(g, n, in.count, 0);
    if (count.role != Role::input || count.dtype != MP_FP32)
      fail_at(n, "count = ", count.name, " must be an input of type MP_FP32");
  }
  set_extent(g, n, kLoss, {});
  set_extent(g, n, kRowLoss, {x.rows()});
  set_extent(g, n, kCorrect, {sizeof(int64_t)});
  if (n.has_output(kCorrect)) g.tensor(n.outputs[kCorrect]).dtype = MP_DTYPE_NONE;
}

/// Sets the fields that mp_xent_desc_t and mp_linear_xent_desc_t share.
template <class Desc>
Desc with_attributes(Desc desc, const Node &n) {
  desc.weight = static_cast<float>(n.attributes[0].real);
  desc.label_smoothing = static_cast<float>(n.attributes[1].real);
  desc.ignore_label = n.attributes[2].integer;
  desc.z_loss = static_cast<float>(n.attributes[3].real);
  return desc;
}

void emit_xent(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  const Node &forward = forward_of(g, n);
  const XentInputs in = inputs_of(n);
  const Tensor &x = g.in(n, kX);
  const mp_dtype_t dtype = g.dtype_read(n.inputs[kX]);
  const bool is_backward = n.is_backward, is_product = n.has_input(in.w);
  const auto xent = with_attributes(mp_xent_desc_default(x.rows(), x.columns(), dtype), n);
  mp_linear_xent_desc_t linear = {};
  if (is_product) {
    linear = with_attributes(
        mp_linear_xent_desc_default(x.rows(), x.columns(), g.in(n, in.w).extent[0], dtype), n);
    e.needs_workspace_of(mp_linear_xent_workspace_size, &linear);
  }
  const AddressIndex loss = e.out(forward, kLoss), row_loss = e.out(forward, kRowLoss),
                     correct = e.out(forward, kCorrect);
  if (forward.has_output(kCorrect))  // the loss adds to it
    e.append(
        "mp_memset",
        [=](const LaunchArgs &run) {
          if (run.in(in.labels) == nullptr) return MP_SUCCESS;
          return mp_memset(run.context, run.at(correct), 0, sizeof(int64_t), run.stream);
        },
        kCorrect);
  e.append(is_product ? "mp_linear_xent" : "mp_softmax_xent", [=](const LaunchArgs &run) {
    if (run.in(in.labels) == nullptr) return MP_SUCCESS;  // inference without labels: no loss
    auto t = zero_struct<mp_xent_tensors_t>();
    t.x = run.in(kX);
    t.labels = run.in(in.labels);
    t.loss_scale = is_backward ? run.loss_scale : nullptr;
    t.count = run.floats_in(in.count);
    t.row_loss = run.floats_at(row_loss);
    t.loss = run.floats_at(loss);
    t.correct = static_cast<int64_t *>(run.at(correct));
    t.dx = is_backward ? run.out(kGradX) : nullptr;
    if (!is_product) return mp_softmax_xent(run.context, &xent, &t, run.stream);
    t.w = run.in(in.w);
    t.bias = run.in(in.bias);
    if (is_backward) {
      t.dw = run.floats_out(kGradW);
      t.dbias = run.floats_out(kGradBias);
      t.stats = run.stats;
    }
    return mp_linear_xent(run.context, &linear, &t, run.workspace, run.workspace_bytes, run.stream);
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
  append_gradient_node(d, n);
}

/// Emits the loss of the row's variant, an mp_loss_kind_t.
void emit_elements(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  mp_loss_desc_t desc =
      mp_loss_desc_default(static_cast<mp_loss_kind_t>(n.operation->traits.variant),
                           g.in(n, kPrediction).numel(), g.dtype_read(n.inputs[kPrediction]));
  desc.dtype_target = g.dtype_read(n.inputs[kTarget]);
  desc.weight = static_cast<float>(n.attributes[0].real);
  e.needs_workspace_of(mp_loss_workspace_size, &desc);
  const bool is_backward = n.is_backward, has_weight = n.has_input(kWeight);
  const AddressIndex loss = e.out(forward_of(g, n), kLoss);
  e.append("mp_loss", [=, name = n.name](const LaunchArgs &run) {
    if (run.in(kTarget) == nullptr) return MP_SUCCESS;  // inference without target: no loss
    MP_REQUIRE(!has_weight || run.in(kWeight) != nullptr, MP_ERROR_INVALID_ARGUMENT,
               "the weight of ", name, " is not bound; call mp_graph_bind");
    auto t = zero_struct<mp_loss_tensors_t>();
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
    return mp_pointwise(run.context, &scaled, run.in(0), run.loss_scale, run.out(0), &run.stats,
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

constexpr Port kLabelsPort = {"labels", kUnbound | kTriggers};
constexpr Port kCountPort = {"count", kOptional | kUnbound | kFp32};
constexpr Port kLossPort = {"loss", kFp32}, kCorrectPort = {"correct", kOptional | kFp32};
constexpr Port kRowLossPort = {"row_loss", kOptional | kKept | kFp32};
constexpr Port kTargetPort = {"target", kUnbound | kTriggers};
constexpr Port kWeightPort = {"weight", kOptional | kUnbound | kFp32};

// clang-format off
constexpr Operation kLosses[] = {
    {"SoftmaxXent", {{"logits"}, kLabelsPort, kCountPort}, {kLossPort, kRowLossPort, kCorrectPort},
     kXent, emit_xent, loss_traits(kOfLogits), infer_xent},
    {"SoftmaxXentGrad", {{"logits"}, {"labels"}, kCountPort}, {{"dlogits"}}, kXent, emit_xent,
     grad_traits(kOfLogits)},
    {"LinearXent", {{"x"}, {"w"}, {"b", kOptional}, kLabelsPort, kCountPort},
     {kLossPort, kRowLossPort, kCorrectPort}, kXent, emit_xent,
     {.variant = kOfProduct, .depth = Depth::columns, .is_loss = true}, infer_xent},
    {"LinearXentGrad", {{"x"}, {"w"}, {"b", kOptional}, {"labels"}, kCountPort},
     {{"dx", kOptional}, {"dw", kOptional | kFp32}, {"db", kOptional | kFp32}}, kXent, emit_xent,
     {.variant = kOfProduct, .depth = Depth::columns}},
    {"MSE", {{"prediction"}, kTargetPort, kWeightPort}, {{"loss", kFp32}}, kElements, emit_elements,
     loss_traits(MP_LOSS_MSE), infer_elements, differentiate_elements},
    {"MSEGrad", {{"prediction"}, {"target"}, {"weight", kOptional | kFp32}}, {{"dprediction"}},
     kElements, emit_elements, grad_traits(MP_LOSS_MSE)},
    {"L1", {{"prediction"}, kTargetPort, kWeightPort}, {{"loss", kFp32}}, kElements, emit_elements,
     loss_traits(MP_LOSS_L1), infer_elements, differentiate_elements},
    {"L1Grad", {{"prediction"}, {"target"}, {"weight", kOptional | kFp32}}, {{"dprediction"}},
     kElements, emit_elements, grad_traits(MP_LOSS_L1)},
    {"BCEWithLogits", {{"prediction"}, kTargetPort, kWeightPort}, {{"loss", kFp32}}, kElements,
     emit_elements, loss_traits(MP_LOSS_BCE_WITH_LOGITS), infer_elements, differentiate_elements},
    {"BCEWithLogitsGrad", {{"prediction"}, {"target"}, {"weight", kOptional | kFp32}},
     {{"dprediction"}}, kElements, emit_elements, grad_traits(MP_LOSS_BCE_WITH_LOGITS)},
    {"SeedGradient", {{"gradient", kFp32}}, {{"scaled gradient"}}, {}, emit_seed,
     {.flags = MP_NODE_FLAG_NO_LOW}}};
// clang-format on

}  // namespace

std::span<const Operation> loss_operations() {
  return kLosses;
}

}  // namespace mp::graph
