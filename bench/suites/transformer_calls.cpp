// Calls of the layers of transformers.
#include <cmath>

#include "layer_data.h"

namespace mpbench {
namespace {

/// Packed ends are in device memory.
mp_attention_desc_t attention_desc(const LayerShape &shape, mp_dtype_t dtype) {
  const bool is_packed = shape.form == "packed";
  const int64_t longest = shape.length(shape["b"] - 1);
  mp_attention_desc_t desc =
      mp_attention_desc_default(static_cast<int32_t>(shape["b"]), static_cast<int32_t>(shape["h"]),
                                longest, longest, static_cast<int32_t>(shape["d"]), dtype);
  desc.kv_heads = static_cast<int32_t>(shape["kv"]);
  desc.head_dim_v = static_cast<int32_t>(shape["dv"]);
  if (is_packed) desc.q_rows = desc.kv_rows = shape.rows();
  if (shape.form != "full") desc.flags = MP_ATTENTION_FLAG_CAUSAL;
  if (shape.form == "window") {
    desc.flags |= MP_ATTENTION_FLAG_WINDOW;
    desc.window_left = kWindow;
  }
  return desc;
}

LayerCalls attention(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const mp_attention_desc_t desc = attention_desc(shape, dtype);
  const bool is_packed = desc.q_rows > 0;
  const int64_t rows = shape.rows(), q = rows * shape["h"] * shape["d"];
  const int64_t k = rows * shape["kv"] * shape["d"], v = rows * shape["kv"] * shape["dv"];
  const int64_t o = rows * shape["h"] * shape["dv"];
  std::vector<int32_t> ends;
  for (int64_t i = 0, end = 0; is_packed && i < shape["b"]; ++i)
    ends.push_back(static_cast<int32_t>(end += shape.length(i)));
  LayerCalls layer;
  layer.arrays = {{q, dtype, true},
                  {k, dtype, true},
                  {v, dtype, true},
                  {o, dtype},
                  {rows * shape["h"], MP_FP32},
                  {o, dtype, true, true},
                  {q, dtype, false, true},
                  {k, dtype, false, true},
                  {v, dtype, false, true},
                  {static_cast<int64_t>(ends.size()), MP_INT32, false, false, ends}};
  // o is a mean of v, |v| <= 1, with weights that sum to 1.  An error e of all scores changes each
  // weight by a factor of at most exp(2 e).  Weights are rounded to the type once, o once.
  const double scale = 1 / std::sqrt(static_cast<double>(shape["d"])), u = unit_roundoff(dtype);
  const double of_scores = scale * tolerance_of_sums(shape["d"], MP_FP32).absolute;
  if (shape.is_forward)
    layer.compared = {kO, {.absolute = 2 * (u + std::expm1(2 * of_scores)), .relative = 2 * u}};
  if (!shape.is_forward)
    layer.workspace_bytes =
        bytes_from(mp_attention_backward_workspace_size, machine.context(), &desc);
  layer.enqueue = [&machine, desc, is_packed](bool is_forward, const std::vector<void *> &a,
                                              const Buffer &workspace) {
    mp_attention_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.q = a[kQ];
    t.k = a[kK];
    t.v = a[kV];
    t.o = a[kO];
    t.lse = static_cast<float *>(a[kLse]);
    if (is_packed) t.q_ends = t.kv_ends = static_cast<int32_t *>(a[kEnds]);
    if (is_forward) return machine.call(mp_attention_forward, &desc, &t);
    t.d_o = a[kDO];
    t.dq = a[kDq];
    t.dk = a[kDk];
    t.dv = a[kDv];
    machine.call(mp_attention_backward, &desc, &t, workspace);
  };
  return layer;
}

LayerCalls norm(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const bool is_layer_norm = shape.form.starts_with("layer"), has_residual = shape.has_residual();
  const int64_t columns = shape["c"], vectors = shape["n"] * shape["g"], elems = vectors * columns;
  mp_norm_desc_t desc =
      mp_norm_desc_default(is_layer_norm ? MP_NORM_LAYER : MP_NORM_RMS, shape["n"], columns, dtype);
  desc.groups = static_cast<int32_t>(shape["g"]);
  enum : size_t { kX, kResidual, kSum, kY, kGamma, kBeta, kMean, kRstd, kDy, kDsum, kDx, kDgamma };
  const int64_t beside = has_residual ? elems : 0;
  LayerCalls layer;
  layer.arrays = {{elems, dtype, true},
                  {beside, dtype, true},
                  {beside, dtype},
                  {elems, dtype},
                  {columns, MP_FP32, true},
                  {columns, MP_FP32, true},
                  {is_layer_norm ? vectors : 0, MP_FP32},
                  {vectors, MP_FP32},
                  {elems, dtype, true, true},
                  {beside, dtype, true, true},
                  {elems, dtype, false, true},
                  {is_layer_norm ? 2 * columns : columns, MP_FP32, false, true}};
  if (!shape.is_forward)
    layer.workspace_bytes = bytes_from(mp_norm_backward_workspace_size, machine.context(), &desc);
  layer.enqueue = [=, &machine](bool is_forward, const std::vector<void *> &a,
                                const Buffer &workspace) {
    const auto floats = [&](size_t array) { return static_cast<float *>(a[array]); };
    mp_norm_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = a[kX];
    if (has_residual) t.sum = a[kSum];
    t.gamma = floats(kGamma);
    t.rstd = floats(kRstd);
    if (is_layer_norm) t.mean = floats(kMean);
    if (is_forward) {
      if (has_residual) t.residual = a[kResidual];
      if (is_layer_norm) t.beta = floats(kBeta);
      t.y = a[kY];
      return machine.call(mp_norm_forward, &desc, &t);
    }
    // Without dropout, the gradients of x and of the residual are equal: one array is written.
    t.dy = a[kDy];
    if (has_residual) {
      t.dsum = a[kDsum];
      t.dresidual = a[kDx];
    } else {
      t.dx = a[kDx];
    }
    t.dgamma = floats(kDgamma);
    if (is_layer_norm) t.dbeta = t.dgamma + columns;
    machine.call(mp_norm_backward, &desc, &t, workspace);
  };
  return layer;
}

LayerCalls linear_xent(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const int64_t rows = shape["n"], width = shape["w"], classes = shape["c"];
  const mp_linear_xent_desc_t desc = mp_linear_xent_desc_default(rows, width, classes, dtype);
  enum : size_t { kX, kW, kLabels, kLosses, kDx, kDw };
  LayerCalls layer;
  layer.arrays = {{rows * width, dtype, true},
                  {classes * width, dtype, true},
                  {rows, MP_INT32, false, false, random_labels(rows, classes)},
                  {rows + 1, MP_FP32},
                  {rows * width, dtype, false, true},
                  {classes * width, MP_FP32, false, true}};
  layer.workspace_bytes = bytes_from(mp_linear_xent_workspace_size, machine.context(), &desc);
  layer.enqueue = [=, &machine](bool is_forward, const std::vector<void *> &a,
                                const Buffer &workspace) {
    mp_xent_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = a[kX];
    t.w = a[kW];
    t.labels = a[kLabels];
    t.row_loss = static_cast<float *>(a[kLosses]);
    t.loss = t.row_loss + rows;
    if (!is_forward) {
      t.dx = a[kDx];
      t.dw = static_cast<float *>(a[kDw]);
    }
    machine.call(mp_linear_xent, &desc, &t, workspace);
  };
  return layer;
}

/// A product and a gated unit: forward x [gate | up], then the unit; backward the gradient of the
/// unit from a product of the next layer's gradient.
LayerCalls gated(const Machine &machine, const LayerShape &shape, mp_dtype_t dtype) {
  const int64_t n = shape["n"], f = shape["f"], k = shape["k"];
  const bool is_forward_shape = shape.is_forward;
  const mp_gemm_desc_t gemm =
      mp_gemm_desc_default(n, is_forward_shape ? 2 * f : f, k, dtype, dtype);
  const mp_glu_desc_t glu =
      mp_glu_desc_default(shape.form == "swiglu" ? MP_ACT_SILU : MP_ACT_GELU_ERF, n, f, dtype);
  // kHalves: [gate | up], written by the forward product; kUnits: the result, or its gradient.
  enum : size_t { kX, kW, kHalves, kUnits, kGrads };
  LayerCalls layer;
  layer.arrays = {{n * k, dtype, true},
                  {k * gemm.n, dtype, true},
                  {2 * n * f, dtype, true},
                  {n * f, dtype},
                  {2 * n * f, dtype, false, true}};
  layer.workspace_bytes = bytes_from(mp_gemm_workspace_size, machine.context(), &gemm, nullptr);
  const auto multiply = [=, &machine](const std::vector<void *> &a, const Buffer &workspace) {
    machine.call(mp_gemm, &gemm, a[kX], a[kW], nullptr, a[is_forward_shape ? kHalves : kUnits],
                 nullptr, workspace);
  };
  layer.multiply = multiply;
  layer.enqueue = [=, &machine](bool is_forward, const std::vector<void *> &a,
                                const Buffer &workspace) {
    if (is_forward != is_forward_shape) return;  // the backward pass reads random halves
    multiply(a, workspace);
    if (is_forward)
      machine.call(mp_glu_forward, &glu, a[kHalves], a[kUnits]);
    else
      machine.call(mp_glu_backward, &glu, a[kHalves], a[kUnits], a[kGrads], nullptr);
  };
  return layer;
}

}  // namespace

LayerCalls make_transformer_layer(const Machine &machine, const LayerShape &shape,
                                  mp_dtype_t dtype) {
  const auto make = shape.suite == "attention" ? attention
                    : shape.suite == "norm"    ? norm
                    : shape.suite == "gated"   ? gated
                                               : linear_xent;
  return make(machine, shape, dtype);
}

}  // namespace mpbench
