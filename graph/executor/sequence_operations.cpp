// Embedding and dropout.
#include "graph/executor/emitter.h"
#include "graph/executor/families.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

// ---------------------------------------------------------------------------- Embedding

mp_embedding_desc_t embedding_desc(int64_t rows, const Extent &table, mp_dtype_t dtype) {
  return mp_embedding_desc_default(rows, narrow(table[0]), table[1], dtype);
}

class Embedding final : public Operation {
 public:
  Embedding() : Operation("Embedding", {2, 2}, {1, 1}) {}

  void infer(Graph &g, const Node &n) const override {
    const Tensor &table = require_floats(g, n, 0, "table", 2);
    require_narrow(n, table);
    Extent y = require_integers(g, n, 1, "indices").extent;
    y.push_back(table.extent[1]);
    set_extent(g, n, 0, y);
  }

  void differentiate(Gradients &d, const Node &n) const override {
    if (!d.is_wanted(n, 0)) return;
    const int32_t dtable = d.make(n, 0);
    d.append(n, "EmbeddingGrad", "grad_table", {n.input(1), d.of(n, 0)}, {dtable});
    d.contribute(n, 0, dtable);
  }

  void emit(Emitter &e, const Node &n) const override {
    const auto desc =
        embedding_desc(e.graph().out(n, 0).rows(), e.graph().in(n, 0).extent, n.dtype);
    const Place table = e.in(n, 0), indices = e.in(n, 1), y = e.out(n, 0);
    e.append("mp_embedding_forward", [=](const Run &run) {
      return mp_embedding_forward(run.context, &desc, run.at(table), run.integers_at(indices),
                                  run.at(y), run.stream);
    });
  }
};

/// Inputs: indices, dy.
class EmbeddingGrad final : public BackwardOperation {
 public:
  EmbeddingGrad() : BackwardOperation("EmbeddingGrad") {}
  uint16_t flags() const override { return MP_NODE_FLAG_WRITES_EITHER; }

  void emit(Emitter &e, const Node &n) const override {
    const Tensor &dtable = e.graph().out(n, 0);
    auto desc = embedding_desc(e.graph().in(n, 1).rows(), dtable.extent, n.dtype);
    desc.dtype_dtable = dtable.dtype;
    size_t bytes = 0;
    require_success(mp_embedding_workspace_size(e.context(), &desc, &bytes));
    e.needs_workspace(bytes);
    const Place indices = e.in(n, 0), dy = e.in(n, 1), out = e.out(n, 0);
    e.append("mp_embedding_backward", [=](const Run &run) {
      const mp_grad_stats_t stats{run.found_inf, nullptr};
      return mp_embedding_backward(run.context, &desc, run.integers_at(indices), run.at(dy),
                                   run.at(out), &stats, run.workspace, run.workspace_bytes,
                                   run.stream);
    });
  }
};

// ---------------------------------------------------------------------------- Dropout

constexpr Attribute kDropout[] = {real("p", 0.5, 0, 0.99999994),
                                  integer("seed", 0, INT64_MIN, INT64_MAX)};

/// Difference between the seeds of consecutive nodes (mpcore/graph.h).
constexpr uint64_t kSeedStep = 0x9E3779B97F4A7C15;

void emit_dropout(Emitter &e, const Node &n) {
  mp_dropout_desc_t desc = mp_dropout_desc_default(
      e.graph().out(n, 0).numel(), static_cast<float>(n.attributes[0].real), n.dtype);
  desc.seed = static_cast<uint64_t>(n.attributes[1].integer);
  const uint64_t own_seed = desc.seed + kSeedStep * static_cast<uint64_t>(n.number);
  const Place x = e.in(n, 0), offset = e.in(n, 1), y = e.out(n, 0), steps = e.steps();
  const size_t pass = phase_of(e.graph(), n) == Phase::forward ? 0 : 1;
  e.append("mp_dropout", [=](const Run &run) {
    mp_dropout_desc_t d = desc;
    if (!run.is_training) d.p = 0.0f;
    const auto *at = static_cast<const uint64_t *>(run.at(offset));
    if (at == nullptr) {
      d.seed = own_seed;
      at = static_cast<const uint64_t *>(run.at(steps)) + pass;
    }
    return mp_dropout(run.context, &d, at, run.at(x), run.at(y), nullptr, run.stream);
  });
}

class Dropout final : public Operation {
 public:
  Dropout() : Operation("Dropout", {1, 2}, {1, 1}) {}
  bool may_be_unbound(size_t i) const override { return i == 1; }
  std::span<const Attribute> attributes() const override { return kDropout; }

  void infer(Graph &g, const Node &n) const override {
    set_extent(g, n, 0, require_floats(g, n, 0, "x").extent);
    if (!n.has_input(1)) return;
    require_integers(g, n, 1, "offset");
    require_extent(g, n, 1, "offset", {});
  }

  void differentiate(Gradients &d, const Node &n) const override {
    if (!d.is_wanted(n, 0)) return;
    const int32_t dx = d.make(n, 0);
    d.append(n, "DropoutGrad", "grad_x", {d.of(n, 0), n.has_input(1) ? n.input(1) : kNone}, {dx});
    d.contribute(n, 0, dx);
  }

  void emit(Emitter &e, const Node &n) const override { emit_dropout(e, n); }
};

/// Applies the mask of the forward pass, which is a function of seed and offset.
class DropoutGrad final : public BackwardOperation {
 public:
  DropoutGrad() : BackwardOperation("DropoutGrad") {}
  bool may_be_unbound(size_t i) const override { return i == 1; }
  std::span<const Attribute> attributes() const override { return kDropout; }
  void emit(Emitter &e, const Node &n) const override { emit_dropout(e, n); }
};

const Embedding embedding;
const EmbeddingGrad embedding_grad;
const Dropout dropout;
const DropoutGrad dropout_grad;

}  // namespace

std::span<const Operation *const> sequence_operations() {
  static const Operation *const all[] = {&embedding, &embedding_grad, &dropout, &dropout_grad};
  return all;
}

}  // namespace mp::graph
