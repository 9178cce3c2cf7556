// Operations on sequences: attention, rotary position embeddings, embeddings, dropout.
#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

// ---------------------------------------------------------------------------- Attention

enum AttentionAttribute : size_t {
  kHeads,
  kKvHeads,
  kCausal,
  kWindowLeft,
  kWindowRight,
  kScale,
  kP
};
constexpr Attribute kAttention[] = {integer("heads", 1, 1, kMaxInt32),
                                    integer("kv_heads", 0, 0, kMaxInt32),
                                    integer("causal", 0, 0, 1),
                                    integer("window_left", -1, -1, kMaxInt32),
                                    integer("window_right", -1, -1, kMaxInt32),
                                    real("scale", 0, 0, 3e38),
                                    real("p", 0, 0, 0.998),
                                    integer("seed", 0, INT64_MIN, INT64_MAX)};

constexpr int64_t kMaxHeadDim = 256, kMaxLength = int64_t{1} << 30;

enum : size_t { kQ, kK, kV, kLengths, kSinks, kOffset, kQLengths };  // inputs, forward
enum : size_t { kO, kLse };                                          // outputs, forward
enum : size_t { kOIn = kQLengths + 1, kLseIn, kGradO };              // inputs, backward
enum : size_t { kGradQ, kGradK, kGradV, kGradSinks };                // outputs, backward

/// Heads of a node and their sizes.
struct HeadSizes {
  int64_t heads, kv_heads, dim, dim_v;
  bool is_packed;  ///< q is [q | k | v]

  HeadSizes(const Graph &g, const Node &n)
      : heads(n.attributes[kHeads].integer),
        kv_heads(n.attributes[kKvHeads].integer),
        is_packed(!n.has_input(kK)) {
    if (kv_heads == 0) kv_heads = heads;
    const Tensor &q = g.in(n, kQ);
    dim = q.columns() / (is_packed ? heads + 2 * kv_heads : heads);
    dim_v = is_packed ? dim : g.in(n, kV).columns() / kv_heads;
  }
};

void infer_attention(Graph &g, const Node &n) {
  if (n.has_input(kK) != n.has_input(kV)) fail_at(n, "k and v: both or none must be given");
  const Tensor &q = require_floats(g, n, kQ, 3);
  require_narrow(n, q);
  const HeadSizes s(g, n);
  if (s.heads % s.kv_heads != 0)
    fail_at(n, "kv_heads = ", s.kv_heads, " must divide heads = ", s.heads);
  const auto require_heads = [&](const Tensor &t, const char *name, int64_t heads, int64_t dim) {
    if (t.columns() != heads * dim || dim < 1 || dim > kMaxHeadDim)
      fail_at(n, name, " = ", t.name, " has ", t.columns(), " columns, but must have ", heads,
              " heads of 1 to ", kMaxHeadDim, " elements");
    if (t.extent[1] > kMaxLength)
      fail_at(n, name, " = ", t.name, " has more than 2^30 rows per sequence");
  };
  if (q.extent[0] * s.heads > kMaxInt32)
    fail_at(n, "heads = ", s.heads, " x the batch ", q.extent[0], " exceeds 2^31 - 1");
  require_heads(q, "q", s.is_packed ? s.heads + 2 * s.kv_heads : s.heads, s.dim);
  if (!s.is_packed) {
    const Tensor &k = require_floats(g, n, kK, 3), &v = require_floats(g, n, kV, 3);
    require_extent(g, n, kK, {q.extent[0], k.extent[1], s.kv_heads * s.dim});
    require_extent(g, n, kV, {q.extent[0], k.extent[1], v.columns()});
    require_heads(k, "k", s.kv_heads, s.dim);
    require_heads(v, "v", s.kv_heads, s.dim_v);
  } else if (n.has_input(kQLengths)) {
    fail_at(n, "q_lengths = ", g.in(n, kQLengths).name, " requires k and v");
  }
  for (const size_t i : {kLengths, kQLengths})
    if (n.has_input(i)) require_integers(g, n, i);
  for (const size_t i : {kLengths, kQLengths}) require_extent(g, n, i, {q.extent[0]});
  if (n.has_input(kOffset)) require_integers(g, n, kOffset);
  require_extent(g, n, kOffset, {});
  require_vector(g, n, kSinks, s.heads);
  set_extent(g, n, kO, {q.extent[0], q.extent[1], s.heads * s.dim_v});
  set_extent(g, n, kLse, {q.extent[0], s.heads, q.extent[1]});
}

/// Arguments of both passes.
class AttentionCall {
 public:
  AttentionCall(Emitter &e, const Node &n) {
    const HeadSizes s(e.graph(), n);
    const Extent &q = e.graph().in(n, kQ).extent;
    const int64_t kv_len = s.is_packed ? q[1] : e.graph().in(n, kK).extent[1];
    desc_ = mp_attention_desc_default(narrow(q[0]), narrow(s.heads), q[1], kv_len, narrow(s.dim),
                                      n.dtype);
    desc_.kv_heads = narrow(s.kv_heads);
    desc_.head_dim_v = narrow(s.dim_v);
    desc_.scale = static_cast<float>(n.attributes[kScale].real);
    desc_.window_left = narrow(n.attributes[kWindowLeft].integer);
    desc_.window_right = narrow(n.attributes[kWindowRight].integer);
    if (n.attributes[kCausal].integer != 0) desc_.flags |= MP_ATTENTION_FLAG_CAUSAL;
    if (desc_.window_left >= 0 || desc_.window_right >= 0) desc_.flags |= MP_ATTENTION_FLAG_WINDOW;
    if (n.attributes[kP].real > 0) mask_ = DropoutMask(e, n, kOffset, kAttentionSeedStep);
    if (s.is_packed) {
      desc_.q.row = desc_.k.row = desc_.v.row = q[2];
      k_offset_ = static_cast<size_t>(s.heads * s.dim) * mp_dtype_size(n.dtype);
      v_offset_ = static_cast<size_t>((s.heads + s.kv_heads) * s.dim) * mp_dtype_size(n.dtype);
    }
  }

  const mp_attention_desc_t &desc() const { return desc_; }
  mp_attention_desc_t desc_at(const LaunchArgs &run) const {
    const MaskArgs dropout = mask_.at(run);
    mp_attention_desc_t d = desc_;
    d.dropout = dropout.p;
    d.dropout_seed = dropout.seed;
    return d;
  }
  mp_attention_tensors_t tensors_at(const LaunchArgs &run) const {
    auto t = zero_struct<mp_attention_tensors_t>();
    t.q = run.in(kQ);
    t.k = part(run.in(kK), run.in(kQ), k_offset_);
    t.v = part(run.in(kV), run.in(kQ), v_offset_);
    t.kv_lengths = run.integers_in(kLengths);
    t.q_lengths = run.integers_in(k_offset_ > 0 ? kLengths : kQLengths);
    t.sinks = run.floats_in(kSinks);
    t.dropout_offset = mask_.at(run).offset;
    return t;
  }
  void set_gradients(mp_attention_tensors_t &t, const LaunchArgs &run) const {
    t.dq = run.out(kGradQ);
    t.dk = part(run.out(kGradK), t.dq, k_offset_);
    t.dv = part(run.out(kGradV), t.dq, v_offset_);
    t.dsinks = run.floats_out(kGradSinks);
  }

 private:
  /// Returns a separate tensor, or the part of the packed one at an offset in bytes.
  static void *part(void *own, void *packed, size_t offset) {
    return offset > 0 ? static_cast<char *>(packed) + offset : own;
  }

  mp_attention_desc_t desc_;
  DropoutMask mask_;
  size_t k_offset_ = 0, v_offset_ = 0;  ///< 0 if q, k and v are separate tensors
};

void emit_attention(Emitter &e, const Node &n) {
  const AttentionCall call(e, n);
  e.append("mp_attention_forward", [=](const LaunchArgs &run) {
    const mp_attention_desc_t d = call.desc_at(run);
    mp_attention_tensors_t t = call.tensors_at(run);
    t.o = run.out(kO);
    t.lse = run.floats_out(kLse);
    return mp_attention_forward(run.context, &d, &t, run.stream);
  });
}

void emit_attention_grad(Emitter &e, const Node &n) {
  const AttentionCall call(e, n);
  e.needs_workspace_of(mp_attention_backward_workspace_size, &call.desc());
  e.append("mp_attention_backward", [=](const LaunchArgs &run) {
    const mp_attention_desc_t d = call.desc_at(run);
    mp_attention_tensors_t t = call.tensors_at(run);
    call.set_gradients(t, run);
    t.o = run.in(kOIn);
    t.lse = run.floats_in(kLseIn);
    t.d_o = run.in(kGradO);
    t.stats = run.stats;
    return mp_attention_backward(run.context, &d, &t, run.workspace, run.workspace_bytes,
                                 run.stream);
  });
}

// ---------------------------------------------------------------------------- RotaryEmbedding

enum RopeAttribute : size_t { kAllHeads, kRotatedHeads, kRotaryDim, kBase, kInterleaved };
constexpr Attribute kRope[] = {integer("heads", 1, 1, kMaxInt32),
                               integer("rotated_heads", 0, 0, kMaxInt32),
                               integer("rotary_dim", 0, 0, 512), real("base", 10000, 1e-30, 3e38),
                               integer("interleaved", 0, 0, 1)};

mp_rope_desc_t rope_desc(const Node &n, const Tensor &x) {
  const int64_t heads = n.attributes[kAllHeads].integer;
  const int64_t rotated = n.attributes[kRotatedHeads].integer;
  mp_rope_desc_t d = mp_rope_desc_default(x.rows(), narrow(rotated != 0 ? rotated : heads),
                                          narrow(x.columns() / heads), n.dtype);
  if (n.attributes[kRotaryDim].integer != 0)
    d.rotary_dim = narrow(n.attributes[kRotaryDim].integer);
  d.x_row = x.columns();
  d.base = static_cast<float>(n.attributes[kBase].real);
  if (n.attributes[kInterleaved].integer != 0) d.flags |= MP_ROPE_FLAG_INTERLEAVED;
  if (n.is_backward) d.flags |= MP_ROPE_FLAG_INVERSE;
  if (x.extent.size() > 2) d.period = x.extent[x.extent.size() - 2];
  return d;
}

void infer_rope(Graph &g, const Node &n) {
  constexpr int64_t kMaxRotaryDim = 512;
  infer_same(g, n);
  const Tensor &x = g.in(n, 0);
  const int64_t heads = n.attributes[kAllHeads].integer;
  if (x.columns() % heads != 0 || x.columns() / heads > kMaxInt32)
    fail_at(n, "heads = ", heads, " must divide the ", x.columns(), " columns of x = ", x.name);
  if (n.attributes[kRotatedHeads].integer > heads)
    fail_at(n, "rotated_heads = ", n.attributes[kRotatedHeads].integer, " exceeds heads = ", heads);
  const int64_t head_dim = x.columns() / heads, given = n.attributes[kRotaryDim].integer;
  const int64_t rotary_dim = given != 0 ? given : head_dim;
  if (rotary_dim % 2 != 0 || rotary_dim > std::min(head_dim, kMaxRotaryDim))
    fail_at(n, "rotary_dim = ", rotary_dim, " must be even and at most ",
            std::min(head_dim, kMaxRotaryDim));
  if (!n.has_input(1)) return;
  require_integers(g, n, 1);
  require_extent(g, n, 1, Extent(x.extent.begin(), x.extent.end() - 1));
}

/// Copies the heads that are not rotated.
void emit_rope(Emitter &e, const Node &n) {
  const Tensor &x = e.graph().in(n, 0);
  const mp_rope_desc_t desc = rope_desc(n, x);
  const int64_t rotated = int64_t{desc.heads} * desc.head_dim;
  if (rotated < x.columns()) {
    mp_strided_copy_desc_t rest = mp_strided_copy_desc_default(n.dtype);
    append_dim(rest, x.rows(), x.columns(), x.columns());
    append_dim(rest, x.columns() - rotated, 1, 1);
    emit_copy(e, rest, e.in(n, 0), rotated, e.out(n, 0), rotated);
  }
  e.append("mp_rope", [=](const LaunchArgs &run) {
    return mp_rope(run.context, &desc, run.integers_in(1), nullptr, run.in(0), run.out(0),
                   &run.stats, run.stream);
  });
}

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
    {"Attention",
     {{"q"}, {"k", kOptional}, {"v", kOptional}, {"lengths", kOptional | kUnbound},
      {"sinks", kOptional | kFp32}, {"offset", kOptional | kUnbound},
      {"q_lengths", kOptional | kUnbound}}, {{"o"}, {"lse", kKept | kFp32}}, kAttention,
     emit_attention, {}, infer_attention},
    {"AttentionGrad",
     {{"q"}, {"k", kOptional}, {"v", kOptional}, {"lengths", kOptional | kUnbound},
      {"sinks", kOptional | kFp32}, {"offset", kOptional | kUnbound},
      {"q_lengths", kOptional | kUnbound}, {"o"}, {"lse", kFp32}, {"do"}},
     {{"dq"}, {"dk"}, {"dv"}, {"dsinks", kOptional | kFp32}}, kAttention, emit_attention_grad},
    {"RotaryEmbedding", {{"x"}, {"positions", kOptional | kUnbound}}, {{"y"}}, kRope, emit_rope, {},
     infer_rope},
    {"RotaryEmbeddingGrad", {{"dy"}, {"positions", kOptional | kUnbound}}, {{"dx"}}, kRope,
     emit_rope},
    {"Embedding", {{"table"}, {"indices"}}, {{"y"}}, {}, emit_embedding, {}, infer_embedding},
    {"EmbeddingGrad", {{"indices"}, {"dy"}}, {{"dtable"}}, {}, emit_embedding_grad,
     {.flags = MP_NODE_FLAG_WRITES_EITHER}},
    {"Dropout", {{"x"}, {"offset", kOptional | kUnbound}}, {{"y"}}, kDropout, emit_dropout, {},
     infer_dropout},
    {"DropoutGrad", {{"dy"}, {"offset", kOptional | kUnbound}}, {{"dx"}}, kDropout, emit_dropout}};
// clang-format on

}  // namespace

std::span<const Operation> sequence_operations() {
  return kSequences;
}

}  // namespace mp::graph
