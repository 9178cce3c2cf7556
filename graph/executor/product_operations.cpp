// Products, forward and backward: Linear and Conv2D, with epilogues, and MatMul.
#include <algorithm>
#include <vector>

#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

/// Epilogue whose pointers are known only when it runs.
struct Epilogue {
  mp_epilogue_t fixed = mp_epilogue_default();
  AddressIndex bias = 0, aux = 0, dbias = 0;
  bool has_pointers = false;
  bool raises_found_inf = false;

  Epilogue() = default;
  Epilogue(const Emitter &e, const Node &node, size_t own_bias)
      : has_pointers(true), raises_found_inf(node.is_backward) {
    const Fused &f = node.fused;
    const Input b =
        f.bias.tensor == kNone && node.has_input(own_bias) ? node.inputs[own_bias] : f.bias;
    bias = e.index(b);
    aux = f.aux_out != kNone ? e.index({f.aux_out}) : e.index(f.aux);
    dbias = e.index({f.dbias});
    fixed.activation = f.activation;
    if (b.tensor != kNone) fixed.dtype_bias = e.graph().dtype_read(b);
  }

  /// Returns the epilogue for a workspace query, in which any address stands for data.
  mp_epilogue_t for_query(const Emitter &e) const {
    alignas(16) static float data[4];
    const AddressIndex null = e.index({});
    return with([&](AddressIndex index) { return index != null ? data : nullptr; },
                {data, nullptr});
  }
  mp_epilogue_t at(const LaunchArgs &run) const {
    return with([&](AddressIndex index) { return run.floats_at(index); }, run.stats);
  }

 private:
  /// @param address  (AddressIndex) -> float *
  template <class Address>
  mp_epilogue_t with(const Address &address, const mp_grad_stats_t &stats) const {
    mp_epilogue_t epilogue = fixed;
    if (!has_pointers) return epilogue;
    epilogue.bias = address(bias);
    epilogue.aux = address(aux);
    epilogue.dbias = address(dbias);
    if (raises_found_inf) epilogue.stats = stats;
    return epilogue;
  }
};

/// @param output  output of the node that is D
void emit_gemm(Emitter &e, size_t output, const mp_gemm_desc_t &desc, AddressIndex a,
               AddressIndex b, const Epilogue &epilogue) {
  const mp_epilogue_t query = epilogue.for_query(e);
  e.needs_workspace_of(mp_gemm_workspace_size, &desc, &query);
  const Call call = [=](const LaunchArgs &run) {
    const mp_epilogue_t at = epilogue.at(run);
    return mp_gemm(run.context, &desc, run.at(a), run.at(b), nullptr, run.out(output), &at,
                   run.workspace, run.workspace_bytes, run.stream);
  };
  e.append("mp_gemm", call, output);
}

/// Sums the rows of the last input to the last output: a product with a row of ones, accumulated
/// and stored in fp32.
void emit_row_sum(Emitter &e, const Node &n) {
  const size_t dy = n.inputs.size() - 1;
  const Tensor &t = e.graph().in(n, dy);
  const mp_dtype_t dtype = e.graph().dtype_read(n.inputs[dy]);
  emit_gemm(e, n.outputs.size() - 1, mp_gemm_desc_default(1, t.columns(), t.rows(), dtype, MP_FP32),
            e.ones(dtype, t.rows()), e.in(n, dy), Epilogue());
}

/// Appends a node for the gradients of weight and bias, and one for the gradient of the input.
void differentiate_product(Gradients &d, const Node &n, std::string_view weight_type,
                           std::string_view input_type) {
  const int32_t dw = d.new_if_wanted(n, 1), db = d.new_if_wanted(n, 2);
  if (dw != kNone || db != kNone)
    d.append(n, weight_type, "grad_w", {n.input(0), d.of(n, 0)}, {dw, db});
  d.contribute(n, 1, dw);
  d.contribute(n, 2, db);
  d.append_gradient(n, 0, input_type, "grad_x", {n.input(1)});
}

// ---------------------------------------------------------------------------- Linear

constexpr Attribute kLinear[] = {integer("transposed", 0, 0, 1)};

bool is_transposed(const Node &n) {
  return n.attributes[0].integer != 0;
}

void infer_linear(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0);
  const Tensor &w = require_floats(g, n, 1, 2);
  const int64_t in = w.extent[is_transposed(n) ? 1 : 0];
  const int64_t out = w.extent[is_transposed(n) ? 0 : 1];
  if (x.columns() != in)
    fail_at(n, "x = ", x.name, " has ", x.columns(), " features, but w = ", w.name, " expects ",
            in);
  require_vector(g, n, 2, out);
  Extent y = x.extent;
  y.back() = out;
  set_extent(g, n, 0, y);
}

void differentiate_linear(Gradients &d, const Node &n) {
  differentiate_product(d, n, "LinearBackpropWeight", "LinearBackpropInput");
}

/// Emits y = x w + b, or dx = dy w^T.
void emit_linear(Emitter &e, const Node &n) {
  const Tensor &y = e.graph().out(n, 0);
  mp_gemm_desc_t desc =
      mp_gemm_desc_default(y.rows(), y.columns(), e.graph().in(n, 0).columns(), n.dtype, y.dtype);
  if (is_transposed(n) != n.is_backward) {
    desc.op_b = MP_OP_T;
    desc.ld_b = desc.k;
  }
  emit_gemm(e, 0, desc, e.in(n, 0), e.in(n, 1), Epilogue(e, n, n.is_backward ? kAbsent : 2));
}

/// Emits dw = x^T dy, or its transpose, and db.
void emit_linear_weight(Emitter &e, const Node &n) {
  if (n.has_output(1)) emit_row_sum(e, n);
  if (!n.has_output(0)) return;
  const size_t a = is_transposed(n) ? 1 : 0;
  const Tensor &dw = e.graph().out(n, 0);
  mp_gemm_desc_t desc = mp_gemm_desc_default(dw.extent[0], dw.extent[1], e.graph().in(n, 0).rows(),
                                             n.dtype, dw.dtype);
  desc.op_a = MP_OP_T;
  desc.ld_a = desc.m;
  emit_gemm(e, 0, desc, e.in(n, a), e.in(n, 1 - a), Epilogue());
}

// ---------------------------------------------------------------------------- MatMul

constexpr Attribute kMatMul[] = {integer("transposed_a", 0, 0, 1),
                                 integer("transposed_b", 0, 0, 1)};

/// Batch and sizes of y = op(a) op(b).
struct MatMulSizes {
  bool is_transposed_a, is_transposed_b;
  Extent batch;
  int64_t m, n, k, k_of_b;

  MatMulSizes(const Node &node, const Extent &a, const Extent &b)
      : is_transposed_a(node.attributes[0].integer != 0),
        is_transposed_b(node.attributes[1].integer != 0),
        batch(a.begin(), a.end() - 2),
        m(a.rbegin()[is_transposed_a ? 0 : 1]),
        n(b.rbegin()[is_transposed_b ? 1 : 0]),
        k(a.rbegin()[is_transposed_a ? 1 : 0]),
        k_of_b(b.rbegin()[is_transposed_b ? 0 : 1]) {}
};

void infer_matmul(Graph &g, const Node &n) {
  const Tensor &a = require_floats(g, n, 0), &b = require_floats(g, n, 1);
  const bool are_matrices = a.extent.size() >= 2 && a.extent.size() == b.extent.size();
  if (!are_matrices || !std::equal(a.extent.begin(), a.extent.end() - 2, b.extent.begin()))
    fail_at(n, "a = ", a.name, " has shape ", text_of(a.extent), " and b = ", b.name, " ",
            text_of(b.extent), ", but both must be matrices with equal leading dimensions");
  const MatMulSizes s(n, a.extent, b.extent);
  if (s.k != s.k_of_b)
    fail_at(n, "a = ", a.name, " has inner dimension ", s.k, ", but b = ", b.name, " has ",
            s.k_of_b);
  if (a.numel() / (s.m * s.k) > kMaxInt32)
    fail_at(n, "a = ", a.name, " has more than 2^31 - 1 matrices");
  Extent y = s.batch;
  y.insert(y.end(), {s.m, s.n});
  set_extent(g, n, 0, y);
}

/// Both gradients are products, with the transposition of the other operand reversed.
void differentiate_matmul(Gradients &d, const Node &n) {
  const int64_t is_transposed[] = {n.attributes[0].integer, n.attributes[1].integer};
  for (const size_t i : {0, 1}) {
    const int32_t gradient = d.new_if_wanted(n, i);
    if (gradient == kNone) continue;
    const size_t other = 1 - i;
    // The gradient of a is dy op(b)^T, that of b op(a)^T dy; a transposed operand reverses both.
    const int64_t of_dy = is_transposed[i];
    const int64_t of_other = of_dy != 0 ? is_transposed[other] : 1 - is_transposed[other];
    const bool dy_is_first = (of_dy != 0) == (i == 1);
    Node product = n;
    product.attributes[0].integer = dy_is_first ? of_dy : of_other;
    product.attributes[1].integer = dy_is_first ? of_other : of_dy;
    const int32_t dy = d.of(n, 0), x = n.input(other);
    d.append(product, "MatMul", i == 0 ? "grad_a" : "grad_b",
             dy_is_first ? std::vector{dy, x} : std::vector{x, dy}, {gradient});
    d.contribute(n, i, gradient);
  }
}

void emit_matmul(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  const MatMulSizes s(n, g.in(n, 0).extent, g.in(n, 1).extent);
  mp_gemm_desc_t desc = mp_gemm_desc_default(s.m, s.n, s.k, n.dtype, g.out(n, 0).dtype);
  if (s.is_transposed_a) {
    desc.op_a = MP_OP_T;
    desc.ld_a = s.m;
  }
  if (s.is_transposed_b) {
    desc.op_b = MP_OP_T;
    desc.ld_b = s.k;
  }
  desc.batch_count = narrow(g.out(n, 0).numel() / (s.m * s.n));
  desc.stride_a = s.m * s.k;
  desc.stride_b = s.k * s.n;
  desc.stride_c = desc.stride_d = s.m * s.n;
  emit_gemm(e, 0, desc, e.in(n, 0), e.in(n, 1), Epilogue(e, n, kAbsent));
}

// ---------------------------------------------------------------------------- Conv2D

constexpr Attribute kConv[] = {integer("stride", 1, 1, kMaxInt32), integer("pad", 0, 0, kMaxInt32),
                               integer("dilation", 1, 1, kMaxInt32),
                               integer("groups", 1, 1, kMaxInt32)};

mp_conv2d_desc_t conv_desc(const Node &n, const Extent &x, const Extent &filter, mp_dtype_t dtype,
                           mp_dtype_t dtype_out) {
  const auto attribute = [&](size_t i) { return narrow(n.attributes[i].integer); };
  mp_conv2d_desc_t d =
      mp_conv2d_desc_default(narrow(x[0]), narrow(x[1]), narrow(x[2]), narrow(x[3]),
                             narrow(filter[0]), narrow(filter[1]), narrow(filter[2]), dtype);
  d.dtype_out = dtype_out;
  d.stride_h = d.stride_w = attribute(0);
  d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = attribute(1);
  d.dilation_h = d.dilation_w = attribute(2);
  d.groups = attribute(3);
  return d;
}

void infer_conv(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0, 4);
  const Tensor &filter = require_floats(g, n, 1, 4);
  for (const Tensor *const t : {&x, &filter}) require_narrow(n, *t);
  const mp_conv2d_desc_t desc = conv_desc(n, x.extent, filter.extent, MP_FP32, MP_FP32);
  if (filter.extent[3] * desc.groups != x.extent[3])
    fail_at(n, "x = ", x.name, " has ", x.extent[3], " channels, but w = ", filter.name,
            " expects ", filter.extent[3], " in each of ", desc.groups, " groups");
  int32_t p = 0, q = 0;
  if (mp_conv2d_get_output_size(&desc, &p, &q) != MP_SUCCESS) fail_at(n, mp_last_error());
  if (p == 0 || q == 0)
    fail_at(n, "filter w = ", filter.name, " exceeds the padded height or width of x = ", x.name);
  require_vector(g, n, 2, filter.extent[0]);
  set_extent(g, n, 0, {x.extent[0], p, q, filter.extent[0]});
}

void differentiate_conv(Gradients &d, const Node &n) {
  differentiate_product(d, n, "Conv2DBackpropFilter", "Conv2DBackpropInput");
}

/// Emits the pass of the row's variant, an mp_conv_op_t.
void emit_conv(Emitter &e, const Node &n) {
  const Graph &g = e.graph();
  const auto op = static_cast<mp_conv_op_t>(n.operation->traits.variant);
  const bool is_wgrad = op == MP_CONV_WGRAD;
  if (is_wgrad && n.has_output(1)) emit_row_sum(e, n);
  if (!n.has_output(0)) return;
  const Tensor &x = op == MP_CONV_DGRAD ? g.out(n, 0) : g.in(n, 0);
  const Tensor &filter = is_wgrad ? g.out(n, 0) : g.in(n, 1);
  const auto desc = conv_desc(n, x.extent, filter.extent, n.dtype, g.out(n, 0).dtype);
  const auto epilogue = is_wgrad ? Epilogue() : Epilogue(e, n, op == MP_CONV_FPROP ? 2 : kAbsent);
  const auto call = op == MP_CONV_FPROP   ? mp_conv2d_fprop
                    : op == MP_CONV_DGRAD ? mp_conv2d_dgrad
                                          : mp_conv2d_wgrad;
  const char *const name = op == MP_CONV_FPROP   ? "mp_conv2d_fprop"
                           : op == MP_CONV_DGRAD ? "mp_conv2d_dgrad"
                                                 : "mp_conv2d_wgrad";
  const mp_epilogue_t query = epilogue.for_query(e);
  e.needs_workspace_of(mp_conv2d_workspace_size, &desc, op, &query);
  const Call launch = [=](const LaunchArgs &run) {
    const mp_epilogue_t at = epilogue.at(run);
    return call(run.context, &desc, run.in(0), run.in(1), run.out(0), &at, run.workspace,
                run.workspace_bytes, run.stream);
  };
  e.append(name, launch, 0);
}

// ---------------------------------------------------------------------------- the table

// clang-format off
constexpr Operation kProducts[] = {
    {"Linear", {{"x"}, {"w"}, {"b", kOptional | kFp32}}, {{"y"}}, kLinear, emit_linear,
     {.flags = MP_NODE_FLAG_WRITES_EITHER, .depth = Depth::columns, .fusion = Fusion::product},
     infer_linear, differentiate_linear},
    {"LinearBackpropInput", {{"dy"}, {"w"}}, {{"dx"}}, kLinear, emit_linear,
     {.flags = MP_NODE_FLAG_WRITES_EITHER, .depth = Depth::columns,
      .fusion = Fusion::input_gradient}},
    {"LinearBackpropWeight", {{"x"}, {"dy"}}, {{"dw"}, {"db", kFp32}}, kLinear, emit_linear_weight,
     {.flags = MP_NODE_FLAG_WRITES_EITHER, .depth = Depth::rows, .fusion = Fusion::bias_gradient}},
    {"BiasAddGrad", {{"dy"}}, {{"db", kFp32}}, {}, emit_row_sum,
     {.flags = MP_NODE_FLAG_READS_EITHER, .depth = Depth::rows, .fusion = Fusion::bias_gradient}},
    {"MatMul", {{"a"}, {"b"}}, {{"y"}}, kMatMul, emit_matmul,
     {.flags = MP_NODE_FLAG_WRITES_EITHER, .depth = Depth::inner},
     infer_matmul, differentiate_matmul},
    {"Conv2D", {{"x"}, {"w"}, {"b", kOptional | kFp32}}, {{"y"}}, kConv, emit_conv,
     {.variant = MP_CONV_FPROP, .flags = MP_NODE_FLAG_WRITES_EITHER, .depth = Depth::filter,
      .fusion = Fusion::product}, infer_conv, differentiate_conv},
    {"Conv2DBackpropInput", {{"dy"}, {"w"}}, {{"dx"}}, kConv, emit_conv,
     {.variant = MP_CONV_DGRAD, .flags = MP_NODE_FLAG_WRITES_EITHER,
      .fusion = Fusion::input_gradient}},
    {"Conv2DBackpropFilter", {{"x"}, {"dy"}}, {{"dw"}, {"db", kFp32}}, kConv, emit_conv,
     {.variant = MP_CONV_WGRAD, .flags = MP_NODE_FLAG_WRITES_EITHER, .depth = Depth::rows,
      .fusion = Fusion::bias_gradient}}};
// clang-format on

}  // namespace

std::span<const Operation> product_operations() {
  return kProducts;
}

}  // namespace mp::graph
