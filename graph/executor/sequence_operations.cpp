// Embedding and dropout.
#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

// ---------------------------------------------------------------------------- Embedding

mp_embedding_desc_t embedding_desc(int64_t rows, const Extent &table, mp_dtype_t dtype) {
  return mp_embedding_desc_default(rows, narrow(table[0]), table[1], dtype);
}

void infer_embedding(Graph &g, const Node &n) {
  const Tensor &table = require_floats(g, n, 0, 2);
  require_narrow(n, table);
  Extent y = require_integers(g, n, 1).extent;
  y.push_back(table.extent[1]);
  set_extent(g, n, 0, y);
}

void emit_embedding(Emitter &e, const Node &n) {
  const auto desc = embedding_desc(e.graph().out(n, 0).rows(), e.graph().in(n, 0).extent, n.dtype);
  e.append("mp_embedding_forward", [=](const LaunchArgs &run) {
    return mp_embedding_forward(run.context, &desc, run.in(0), run.integers_in(1), run.out(0),
                                run.stream);
  });
}

void emit_embedding_grad(Emitter &e, const Node &n) {
  const Tensor &dtable = e.graph().out(n, 0);
  auto desc = embedding_desc(e.graph().in(n, 1).rows(), dtable.extent, n.dtype);
  desc.dtype_dtable = dtable.dtype;
  e.needs_workspace_of(mp_embedding_workspace_size, &desc);
  e.append("mp_embedding_backward", [=](const LaunchArgs &run) {
    return mp_embedding_backward(run.context, &desc, run.integers_in(0), run.in(1), run.out(0),
                                 &run.stats, run.workspace, run.workspace_bytes, run.stream);
  });
}

// ---------------------------------------------------------------------------- Dropout

constexpr Attribute kDropout[] = {real("p", 0.5, 0, 0.99999994),
                                  integer("seed", 0, INT64_MIN, INT64_MAX)};

void infer_dropout(Graph &g, const Node &n) {
  infer_same(g, n);
  if (!n.has_input(1)) return;
  require_integers(g, n, 1);
  require_extent(g, n, 1, {});
}

void emit_dropout(Emitter &e, const Node &n) {
  const mp_dropout_desc_t desc = mp_dropout_desc_default(e.graph().out(n, 0).numel(), 0, n.dtype);
  const DropoutMask mask(e, n, 1, kDropoutSeedStep);
  e.append("mp_dropout", [=](const LaunchArgs &run) {
    mp_dropout_desc_t d = desc;
    const MaskArgs args = mask.at(run);
    d.p = args.p;
    d.seed = args.seed;
    return mp_dropout(run.context, &d, args.offset, run.in(0), run.out(0), nullptr, run.stream);
  });
}

// ---------------------------------------------------------------------------- the table

// clang-format off
constexpr Operation kSequences[] = {
    {"Embedding", {{"table"}, {"indices"}}, {{"y"}}, {},
     infer_embedding, append_gradient_node, emit_embedding},
    {"EmbeddingGrad", {{"indices"}, {"dy"}}, {{"dtable"}}, {}, nullptr, nullptr,
     emit_embedding_grad, {.flags = MP_NODE_FLAG_WRITES_EITHER}},
    {"Dropout", {{"x"}, {"offset", kOptional | kUnbound}}, {{"y"}}, kDropout,
     infer_dropout, append_gradient_node, emit_dropout},
    {"DropoutGrad", {{"dy"}, {"offset", kOptional | kUnbound}}, {{"dx"}}, kDropout,
     nullptr, nullptr, emit_dropout}};
// clang-format on

}  // namespace

std::span<const Operation> sequence_operations() {
  return kSequences;
}

}  // namespace mp::graph
