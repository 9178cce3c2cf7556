// Softmax cross-entropy: where backward starts.
#include "capi/graph/emitter.h"
#include "capi/graph/families.h"
#include "capi/graph/gradients.h"

namespace mp::graph {

namespace {

constexpr Attribute kXent[] = {{"weight", 1, -3e38, 3e38, false},
                               {"label_smoothing", 0, 0, 0.99999994, false},
                               {"ignore_label", -100, -2147483648.0, kMostWhole, true}};

enum : size_t { kLogits, kLabels };           // inputs
enum : size_t { kLoss, kRowLoss, kCorrect };  // outputs

/// Of the forward node and, with dlogits, of the backward node.
void emit_xent(Emitter &e, const Node &n, const Node &forward, Place dlogits) {
  const Graph &g = e.graph();
  const Tensor &logits = g.in(n, kLogits);
  const mp_dtype_t dtype = g.dtype_read(n.inputs[kLogits]);
  mp_xent_desc_t desc = mp_xent_desc_default(logits.rows(), logits.columns(), dtype);
  desc.weight = static_cast<float>(n.attributes[0]);
  desc.label_smoothing = static_cast<float>(n.attributes[1]);
  desc.ignore_label = static_cast<int32_t>(n.attributes[2]);
  const bool is_backward = n.is_backward;
  const Place x = e.in(n, kLogits), labels = e.in(n, kLabels), loss = e.out(forward, kLoss),
              row_loss = e.out(forward, kRowLoss), correct = e.out(forward, kCorrect);
  if (forward.has_output(kCorrect))  // which the loss adds to
    e.append(
        "mp_memset",
        [=](const Run &run) {
          if (run.at(labels) == nullptr) return MP_SUCCESS;
          return mp_memset(run.context, run.at(correct), 0, sizeof(int64_t), run.stream);
        },
        kCorrect);
  e.append("mp_softmax_xent", [=](const Run &run) {
    if (run.at(labels) == nullptr) return MP_SUCCESS;  // inference that is not asked for a loss
    return mp_softmax_xent(run.context, &desc, run.at(x), run.integers_at(labels),
                           is_backward ? run.loss_scale : nullptr, run.floats_at(row_loss),
                           run.floats_at(loss), static_cast<int64_t *>(run.at(correct)),
                           run.at(dlogits), run.stream);
  });
}

class SoftmaxXent final : public Operation {
 public:
  SoftmaxXent() : Operation("SoftmaxXent", {2, 2}, {1, 3}) {}
  bool may_be_unbound(size_t i) const override { return i == kLabels; }
  bool idles_without(size_t i) const override { return i == kLabels; }
  std::span<const Attribute> attributes() const override { return kXent; }
  uint16_t flags() const override { return MP_NODE_READS_EITHER; }
  uint8_t output_slot(size_t) const override { return MP_SLOT_FP32; }

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
    if (!n.has_output(kRowLoss)) {  // the call writes it in any case
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
  uint16_t flags() const override { return MP_NODE_READS_EITHER | MP_NODE_WRITES_EITHER; }
  bool writes_as_it_reads() const override { return true; }

  void emit(Emitter &e, const Node &n) const override {
    emit_xent(e, n, e.graph().node(n.forward), e.out(n, 0));
  }
};

const SoftmaxXent softmax_xent;
const SoftmaxXentGrad softmax_xent_grad;

}  // namespace

std::span<const Operation *const> loss_operations() {
  static const Operation *const all[] = {&softmax_xent, &softmax_xent_grad};
  return all;
}

}  // namespace mp::graph
