// Products with epilogues: Linear and Conv2D, forward and backward.
#include "graph/executor/emitter.h"
#include "graph/executor/families.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

/// Epilogue whose pointers are known only when it runs.
struct Epilogue {
  mp_epilogue_t fixed = mp_epilogue_default();
  Place bias = 0, aux = 0, dbias = 0;
  bool has_pointers = false;
  bool raises_found_inf = false;

  Epilogue() = default;
  Epilogue(const Emitter &e, const Node &node, size_t own_bias, bool raises_found_inf)
      : has_pointers(true), raises_found_inf(raises_found_inf) {
    const Fused &f = node.fused;
    const Input b =
        f.bias.tensor == kNone && node.has_input(own_bias) ? node.inputs[own_bias] : f.bias;
    bias = e.place(b);
    aux = f.aux_out != kNone ? e.place({f.aux_out}) : e.place(f.aux);
    dbias = e.place({f.dbias});
    fixed.activation = f.activation;
    if (b.tensor != kNone) fixed.dtype_bias = e.graph().dtype_read(b);
  }

  /// Returns the epilogue for a workspace query, in which any address stands for data.
  mp_epilogue_t for_query(const Emitter &e) const {
    mp_epilogue_t epilogue = fixed;
    if (!has_pointers) return epilogue;
    alignas(16) static float data[4];
    const auto pointer = [&](Place place) { return place != e.nowhere() ? data : nullptr; };
    epilogue.bias = pointer(bias);
    epilogue.aux = pointer(aux);
    epilogue.dbias = pointer(dbias);
    if (raises_found_inf) epilogue.stats.found_inf = data;
    return epilogue;
  }

  mp_epilogue_t at(const Run &run) const {
    mp_epilogue_t epilogue = fixed;
    if (!has_pointers) return epilogue;
    epilogue.bias = run.at(bias);
    epilogue.aux = run.at(aux);
    epilogue.dbias = run.floats_at(dbias);
    if (raises_found_inf) epilogue.stats.found_inf = run.found_inf;
    return epilogue;
  }
};

/// @param output  output of the node that is D
void emit_gemm(Emitter &e, const Node &n, size_t output, const mp_gemm_desc_t &desc, Place a,
               Place b, const Epilogue &epilogue) {
  const Place d = e.out(n, output);
  size_t bytes = 0;
  const mp_epilogue_t asked = epilogue.for_query(e);
  require_success(mp_gemm_workspace_size(e.context(), &desc, &asked, &bytes));
  e.needs_workspace(bytes);
  const Call call = [=](const Run &run) {
    const mp_epilogue_t at = epilogue.at(run);
    return mp_gemm(run.context, &desc, run.at(a), run.at(b), nullptr, run.at(d), &at, run.workspace,
                   run.workspace_bytes, run.stream);
  };
  e.append("mp_gemm", call, output);
}

/// Sums the rows of input `dy` as a product with a row of ones, accumulated and stored in fp32.
void emit_row_sum(Emitter &e, const Node &n, size_t dy, size_t output) {
  const Tensor &t = e.graph().in(n, dy);
  const mp_dtype_t dtype = e.graph().dtype_read(n.inputs[dy]);
  emit_gemm(e, n, output, mp_gemm_desc_default(1, t.columns(), t.rows(), dtype, MP_FP32),
            e.ones(dtype, t.rows()), e.in(n, dy), Epilogue());
}

/// Appends a node for the gradients of weight and bias: inputs x and dy, outputs dw and db.
void differentiate_weights(Gradients &d, const Node &n, std::string_view type) {
  const int32_t dw = d.new_if_wanted(n, 1), db = d.new_if_wanted(n, 2);
  if (dw != kNone || db != kNone) d.append(n, type, "grad_w", {n.input(0), d.of(n, 0)}, {dw, db});
  d.contribute(n, 1, dw);
  d.contribute(n, 2, db);
}

void differentiate_input(Gradients &d, const Node &n, std::string_view type) {
  if (!d.is_wanted(n, 0)) return;
  const int32_t dx = d.make(n, 0);
  d.append(n, type, "grad_x", {d.of(n, 0), n.input(1)}, {dx});
  d.contribute(n, 0, dx);
}

uint8_t slot_of_bias_grad(size_t output) {
  return output == 1 ? MP_AUTOCAST_SLOT_FP32 : 0;
}

// ---------------------------------------------------------------------------- Linear

constexpr Attribute kLinear[] = {integer("transposed", 0, 0, 1)};

bool is_transposed(const Node &n) {
  return n.attributes[0].integer != 0;
}

class Linear final : public Operation {
 public:
  Linear() : Operation("Linear", {2, 3}, {1, 1}) {}
  std::span<const Attribute> attributes() const override { return kLinear; }
  uint16_t flags() const override { return MP_NODE_FLAG_WRITES_EITHER; }
  uint8_t input_slot(size_t i) const override { return i == 2 ? MP_AUTOCAST_SLOT_FP32 : 0; }
  int64_t depth(const Graph &g, const Node &n) const override { return g.in(n, 0).columns(); }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &x = require_floats(g, n, 0, "x");
    const Tensor &w = require_floats(g, n, 1, "w", 2);
    const int64_t in = w.extent[is_transposed(n) ? 1 : 0];
    const int64_t out = w.extent[is_transposed(n) ? 0 : 1];
    if (x.columns() != in)
      fail_at(n, "x = ", x.name, " has ", x.columns(), " features, but w = ", w.name, " expects ",
              in);
    require_vector(g, n, 2, "b", out);
    Extent y = x.extent;
    y.back() = out;
    set_extent(g, n, 0, y);
  }

  void differentiate(Gradients &d, const Node &n) const override {
    differentiate_weights(d, n, "LinearBackpropWeight");
    differentiate_input(d, n, "LinearBackpropInput");
  }

  void emit(Emitter &e, const Node &n) const override {
    const Tensor &y = e.graph().out(n, 0);
    mp_gemm_desc_t desc =
        mp_gemm_desc_default(y.rows(), y.columns(), e.graph().in(n, 0).columns(), n.dtype, y.dtype);
    if (is_transposed(n)) {
      desc.op_b = MP_OP_T;
      desc.ld_b = desc.k;
    }
    emit_gemm(e, n, 0, desc, e.in(n, 0), e.in(n, 1), Epilogue(e, n, 2, false));
  }
};

/// dx = dy W^T
class LinearBackpropInput final : public BackwardOperation {
 public:
  LinearBackpropInput() : BackwardOperation("LinearBackpropInput") {}
  std::span<const Attribute> attributes() const override { return kLinear; }
  uint16_t flags() const override { return MP_NODE_FLAG_WRITES_EITHER; }
  int64_t depth(const Graph &g, const Node &n) const override { return g.in(n, 0).columns(); }

  void emit(Emitter &e, const Node &n) const override {
    const Tensor &dx = e.graph().out(n, 0);
    mp_gemm_desc_t desc = mp_gemm_desc_default(dx.rows(), dx.columns(),
                                               e.graph().in(n, 0).columns(), n.dtype, dx.dtype);
    if (!is_transposed(n)) {
      desc.op_b = MP_OP_T;
      desc.ld_b = desc.k;
    }
    emit_gemm(e, n, 0, desc, e.in(n, 0), e.in(n, 1), Epilogue(e, n, kAbsent, true));
  }
};

/// dW = x^T dy, or its transpose; db
class LinearBackpropWeight final : public BackwardOperation {
 public:
  LinearBackpropWeight() : BackwardOperation("LinearBackpropWeight") {}
  uint8_t output_slot(size_t i) const override { return slot_of_bias_grad(i); }
  std::span<const Attribute> attributes() const override { return kLinear; }
  uint16_t flags() const override { return MP_NODE_FLAG_WRITES_EITHER; }
  int64_t depth(const Graph &g, const Node &n) const override { return g.in(n, 0).rows(); }

  void emit(Emitter &e, const Node &n) const override {
    if (n.has_output(1)) emit_row_sum(e, n, 1, 1);
    if (!n.has_output(0)) return;
    const size_t a = is_transposed(n) ? 1 : 0;
    const Tensor &dw = e.graph().out(n, 0);
    mp_gemm_desc_t desc = mp_gemm_desc_default(dw.extent[0], dw.extent[1],
                                               e.graph().in(n, 0).rows(), n.dtype, dw.dtype);
    desc.op_a = MP_OP_T;
    desc.ld_a = desc.m;
    emit_gemm(e, n, 0, desc, e.in(n, a), e.in(n, 1 - a), Epilogue());
  }
};

class BiasAddGrad final : public BackwardOperation {
 public:
  BiasAddGrad() : BackwardOperation("BiasAddGrad") {}
  uint16_t flags() const override { return MP_NODE_FLAG_READS_EITHER; }
  uint8_t output_slot(size_t) const override { return MP_AUTOCAST_SLOT_FP32; }
  int64_t depth(const Graph &g, const Node &n) const override { return g.in(n, 0).rows(); }

  void emit(Emitter &e, const Node &n) const override { emit_row_sum(e, n, 0, 0); }
};

// ---------------------------------------------------------------------------- Conv2D

constexpr Attribute kConv[] = {integer("stride", 1, 1, kMaxInt32), integer("pad", 0, 0, kMaxInt32),
                               integer("dilation", 1, 1, kMaxInt32),
                               integer("groups", 1, 1, kMaxInt32)};

using ConvCall = mp_status_t (*)(mp_context_t, const mp_conv2d_desc_t *, const void *, const void *,
                                 void *, const mp_epilogue_t *, void *, size_t, mp_stream_t);

void emit_conv(Emitter &e, const Node &n, const char *name, ConvCall call, mp_conv_op_t op,
               const mp_conv2d_desc_t &desc, const Epilogue &epilogue) {
  size_t bytes = 0;
  const mp_epilogue_t asked = epilogue.for_query(e);
  require_success(mp_conv2d_workspace_size(e.context(), &desc, op, &asked, &bytes));
  e.needs_workspace(bytes);
  const Place first = e.in(n, 0), second = e.in(n, 1), out = e.out(n, 0);
  const Call launch = [=](const Run &run) {
    const mp_epilogue_t at = epilogue.at(run);
    return call(run.context, &desc, run.at(first), run.at(second), run.at(out), &at, run.workspace,
                run.workspace_bytes, run.stream);
  };
  e.append(name, launch, 0);
}

/// Attributes that the three passes share.
struct ConvShape {
  int64_t stride, pad, dilation, groups;

  mp_conv2d_desc_t desc(const Extent &x, const Extent &filter, mp_dtype_t dtype,
                        mp_dtype_t dtype_out) const {
    mp_conv2d_desc_t d =
        mp_conv2d_desc_default(narrow(x[0]), narrow(x[1]), narrow(x[2]), narrow(x[3]),
                               narrow(filter[0]), narrow(filter[1]), narrow(filter[2]), dtype);
    d.dtype_out = dtype_out;
    d.stride_h = d.stride_w = narrow(stride);
    d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = narrow(pad);
    d.dilation_h = d.dilation_w = narrow(dilation);
    d.groups = narrow(groups);
    return d;
  }
};

ConvShape conv_shape(const Node &n) {
  return {n.attributes[0].integer, n.attributes[1].integer, n.attributes[2].integer,
          n.attributes[3].integer};
}

int64_t filter_depth(const Tensor &filter) {
  return filter.numel() / filter.extent[0];
}

class Conv2D final : public Operation {
 public:
  Conv2D() : Operation("Conv2D", {2, 3}, {1, 1}) {}
  std::span<const Attribute> attributes() const override { return kConv; }
  uint16_t flags() const override { return MP_NODE_FLAG_WRITES_EITHER; }
  uint8_t input_slot(size_t i) const override { return i == 2 ? MP_AUTOCAST_SLOT_FP32 : 0; }
  int64_t depth(const Graph &g, const Node &n) const override { return filter_depth(g.in(n, 1)); }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &x = require_floats(g, n, 0, "x", 4);
    const Tensor &filter = require_floats(g, n, 1, "w", 4);
    for (const Tensor *const t : {&x, &filter}) require_narrow(n, *t);
    const int64_t groups = conv_shape(n).groups;
    if (filter.extent[3] * groups != x.extent[3])
      fail_at(n, "x = ", x.name, " has ", x.extent[3], " channels, but w = ", filter.name,
              " expects ", filter.extent[3], " in each of ", groups, " groups");
    const mp_conv2d_desc_t desc = conv_shape(n).desc(x.extent, filter.extent, MP_FP32, MP_FP32);
    int32_t p = 0, q = 0;
    if (mp_conv2d_get_output_size(&desc, &p, &q) != MP_SUCCESS) fail_at(n, mp_last_error());
    if (p == 0 || q == 0)
      fail_at(n, "filter w = ", filter.name, " exceeds the padded height or width of x = ", x.name);
    require_vector(g, n, 2, "b", filter.extent[0]);
    set_extent(g, n, 0, {x.extent[0], p, q, filter.extent[0]});
  }

  void differentiate(Gradients &d, const Node &n) const override {
    differentiate_weights(d, n, "Conv2DBackpropFilter");
    differentiate_input(d, n, "Conv2DBackpropInput");
  }

  void emit(Emitter &e, const Node &n) const override {
    const Graph &g = e.graph();
    const auto desc =
        conv_shape(n).desc(g.in(n, 0).extent, g.in(n, 1).extent, n.dtype, g.out(n, 0).dtype);
    emit_conv(e, n, "mp_conv2d_fprop", mp_conv2d_fprop, MP_CONV_FPROP, desc,
              Epilogue(e, n, 2, false));
  }
};

class Conv2DBackpropInput final : public BackwardOperation {
 public:
  Conv2DBackpropInput() : BackwardOperation("Conv2DBackpropInput") {}
  std::span<const Attribute> attributes() const override { return kConv; }
  uint16_t flags() const override { return MP_NODE_FLAG_WRITES_EITHER; }

  void emit(Emitter &e, const Node &n) const override {
    const Graph &g = e.graph();
    const auto desc =
        conv_shape(n).desc(g.out(n, 0).extent, g.in(n, 1).extent, n.dtype, g.out(n, 0).dtype);
    emit_conv(e, n, "mp_conv2d_dgrad", mp_conv2d_dgrad, MP_CONV_DGRAD, desc,
              Epilogue(e, n, kAbsent, true));
  }
};

class Conv2DBackpropFilter final : public BackwardOperation {
 public:
  Conv2DBackpropFilter() : BackwardOperation("Conv2DBackpropFilter") {}
  uint8_t output_slot(size_t i) const override { return slot_of_bias_grad(i); }
  std::span<const Attribute> attributes() const override { return kConv; }
  uint16_t flags() const override { return MP_NODE_FLAG_WRITES_EITHER; }
  int64_t depth(const Graph &g, const Node &n) const override { return g.in(n, 1).rows(); }

  void emit(Emitter &e, const Node &n) const override {
    const Graph &g = e.graph();
    if (n.has_output(1)) emit_row_sum(e, n, 1, 1);
    if (!n.has_output(0)) return;
    const auto desc =
        conv_shape(n).desc(g.in(n, 0).extent, g.out(n, 0).extent, n.dtype, g.out(n, 0).dtype);
    emit_conv(e, n, "mp_conv2d_wgrad", mp_conv2d_wgrad, MP_CONV_WGRAD, desc, Epilogue());
  }
};

const Linear linear;
const LinearBackpropInput linear_backprop_input;
const LinearBackpropWeight linear_backprop_weight;
const BiasAddGrad bias_add_grad;
const Conv2D conv2d;
const Conv2DBackpropInput conv2d_backprop_input;
const Conv2DBackpropFilter conv2d_backprop_filter;

}  // namespace

std::span<const Operation *const> product_operations() {
  static const Operation *const all[] = {
      &linear, &linear_backprop_input, &linear_backprop_weight, &bias_add_grad,
      &conv2d, &conv2d_backprop_input, &conv2d_backprop_filter};
  return all;
}

}  // namespace mp::graph
