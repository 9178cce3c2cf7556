// Operations that surround convolutions: pooling and batch normalization.
#include "graph/executor/emitter.h"

namespace mp::graph {

namespace {

// ---------------------------------------------------------------------------- pools

constexpr Attribute kPool[] = {
    integer("window", 2, 1, kMaxInt32), integer("stride", 0, 0, kMaxInt32),
    integer("pad", 0, 0, kMaxInt32),    integer("dilation", 1, 1, kMaxInt32),
    integer("ceil_mode", 0, 0, 1),      integer("include_pad", 0, 0, 1)};
constexpr std::span<const Attribute> kMaxPool{kPool, 5};

/// @param x  shape of the input
mp_pool2d_desc_t pool_desc(const Node &n, const Extent &x, mp_dtype_t dtype) {
  const auto attribute = [&](size_t i) { return narrow(n.attributes[i].integer); };
  const bool includes_pad = n.attributes.size() > 5 && attribute(5) != 0;
  const auto mode = includes_pad ? MP_POOL_AVG_INCLUDE_PAD
                                 : static_cast<mp_pool_mode_t>(n.operation->traits.variant);
  const int32_t window = attribute(0), stride = attribute(1);
  mp_pool2d_desc_t d = mp_pool2d_desc_default(mode, narrow(x[0]), narrow(x[1]), narrow(x[2]),
                                              narrow(x[3]), window, window, dtype);
  if (stride != 0) d.stride_h = d.stride_w = stride;
  d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = attribute(2);
  d.dilation_h = d.dilation_w = attribute(3);
  if (attribute(4) != 0) d.flags |= MP_POOL_FLAG_CEIL;
  return d;
}

void infer_pool(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, 0, 4);
  require_narrow(n, x);
  const mp_pool2d_desc_t desc = pool_desc(n, x.extent, MP_FP32);
  int32_t p = 0, q = 0;
  if (mp_pool2d_get_output_size(&desc, &p, &q) != MP_SUCCESS) fail_at(n, mp_last_error());
  if (p == 0 || q == 0)
    fail_at(n, "window = ", n.attributes[0].integer,
            " exceeds the padded height or width of x = ", x.name);
  set_extent(g, n, 0, {x.extent[0], p, q, x.extent[3]});
}

/// Returns whether the positions of a max pool fit in a byte; windows are square.
bool keeps_index(const Node &n) {
  return n.operation->traits.variant == MP_POOL_MAX && n.attributes[0].integer <= 15;
}

/// AvgPoolGrad does not need x.  MaxPoolGrad reads the kept positions, or else x.
void differentiate_pool(Gradients &d, const Node &n) {
  if (n.operation->traits.variant != MP_POOL_MAX) return append_gradient_node(d, n);
  const bool has_index = keeps_index(n);
  d.append_gradient(n, 0, "MaxPoolGrad", "grad_x",
                    {has_index ? kNone : n.input(0), has_index ? n.outputs[1] : kNone});
}

void emit_pool(Emitter &e, const Node &n) {
  const mp_pool2d_desc_t desc = pool_desc(n, e.graph().in(n, 0).extent, n.dtype);
  const bool has_index = keeps_index(n) && n.has_output(1);
  e.size_output(n, 1, has_index ? static_cast<size_t>(e.graph().out(n, 0).numel()) : 0);
  e.append("mp_pool2d_forward", [=](const LaunchArgs &run) {
    return mp_pool2d_forward(run.context, &desc, run.in(0), run.out(0),
                             has_index ? static_cast<uint8_t *>(run.out(1)) : nullptr, run.stream);
  });
}

void emit_pool_grad(Emitter &e, const Node &n) {
  const mp_pool2d_desc_t desc = pool_desc(n, e.graph().out(n, 0).extent, n.dtype);
  e.append("mp_pool2d_backward", [=](const LaunchArgs &run) {
    return mp_pool2d_backward(run.context, &desc, run.in(1),
                              static_cast<const uint8_t *>(run.in(2)), run.in(0), run.out(0),
                              &run.stats, run.stream);
  });
}

// ---------------------------------------------------------------------------- BatchNorm

constexpr Attribute kBatchNorm[] = {real("epsilon", 1e-5, 0, 1e30), real("momentum", 0.1, 0, 1)};

enum : size_t { kX, kGamma, kBeta, kMean, kVariance };            // inputs, forward
enum : size_t { kY, kSavedMean, kSavedInvStd };                   // outputs, forward
enum : size_t { kGradX, kGradGamma, kGradBeta };                  // outputs, backward
enum : size_t { kSavedMeanIn = 3, kSavedInvStdIn = 4, kDy = 5 };  // inputs, backward, after beta

void infer_batch_norm(Graph &g, const Node &n) {
  const Tensor &x = require_floats(g, n, kX);
  require_narrow(n, x);
  for (const size_t i : {kGamma, kBeta, kMean, kVariance}) {
    require_vector(g, n, i, x.columns());
    if (i >= kMean && g.in(n, i).role != Role::state)
      fail_at(n, n.operation->inputs[i].name, " = ", g.in(n, i).name,
              " must be a tensor from mp_graph_add_state");
  }
  set_extent(g, n, kY, x.extent);
  for (const size_t i : {kSavedMean, kSavedInvStd}) set_extent(g, n, i, {x.columns()});
}

mp_batchnorm_desc_t batch_norm_desc(Emitter &e, const Node &n) {
  const Tensor &x = e.graph().in(n, kX);
  mp_batchnorm_desc_t d = mp_batchnorm_desc_default(x.rows(), narrow(x.columns()), n.dtype);
  d.activation = n.fused.activation;
  d.epsilon = static_cast<float>(n.attributes[0].real);
  d.momentum = static_cast<float>(n.attributes[1].real);
  e.needs_workspace_of(mp_batchnorm_workspace_size, &d);
  return d;
}

/// Returns the tensors that both passes read.
mp_batchnorm_tensors_t batch_norm_tensors(const LaunchArgs &run) {
  auto t = zero_struct<mp_batchnorm_tensors_t>();
  t.x = run.in(kX);
  t.gamma = run.floats_in(kGamma);
  t.beta = run.floats_in(kBeta);
  return t;
}

void emit_batch_norm(Emitter &e, const Node &n) {
  const mp_batchnorm_desc_t desc = batch_norm_desc(e, n);
  e.append("mp_batchnorm_forward", [=](const LaunchArgs &run) {
    mp_batchnorm_tensors_t t = batch_norm_tensors(run);
    t.running_mean = run.floats_in(kMean);
    t.running_var = run.floats_in(kVariance);
    t.y = run.out(kY);
    t.saved_mean = run.floats_out(kSavedMean);
    t.saved_inv_std = run.floats_out(kSavedInvStd);
    return run.is_training ? mp_batchnorm_forward_training(run.context, &desc, &t, run.workspace,
                                                           run.workspace_bytes, run.stream)
                           : mp_batchnorm_forward_inference(run.context, &desc, &t, run.stream);
  });
}

void emit_batch_norm_grad(Emitter &e, const Node &n) {
  const mp_batchnorm_desc_t desc = batch_norm_desc(e, n);
  e.append("mp_batchnorm_backward", [=](const LaunchArgs &run) {
    mp_batchnorm_tensors_t t = batch_norm_tensors(run);
    t.saved_mean = run.floats_in(kSavedMeanIn);
    t.saved_inv_std = run.floats_in(kSavedInvStdIn);
    t.dy = run.in(kDy);
    t.dx = run.out(kGradX);
    t.dgamma = run.floats_out(kGradGamma);
    t.dbeta = run.floats_out(kGradBeta);
    t.stats = run.stats;
    return mp_batchnorm_backward(run.context, &desc, &t, run.workspace, run.workspace_bytes,
                                 run.stream);
  });
}

// ---------------------------------------------------------------------------- the table

// clang-format off
constexpr Operation kImages[] = {
    {"MaxPool", {{"x"}}, {{"y"}, {"index", kKept | kBytes}}, kMaxPool, emit_pool,
     {.variant = MP_POOL_MAX}, infer_pool, differentiate_pool},
    {"MaxPoolGrad", {{"dy"}, {"x", kOptional}, {"index", kOptional}}, {{"dx"}}, kMaxPool,
     emit_pool_grad, {.variant = MP_POOL_MAX}},
    {"AvgPool", {{"x"}}, {{"y"}}, kPool, emit_pool, {.variant = MP_POOL_AVG_EXCLUDE_PAD},
     infer_pool, differentiate_pool},
    {"AvgPoolGrad", {{"dy"}}, {{"dx"}}, kPool, emit_pool_grad,
     {.variant = MP_POOL_AVG_EXCLUDE_PAD}},
    {"BatchNorm",
     {{"x"}, {"gamma", kOptional | kFp32}, {"beta", kOptional | kFp32}, {"mean", kFp32},
      {"variance", kFp32}},
     {{"y"}, {"saved_mean", kKept | kFp32}, {"saved_inv_std", kKept | kFp32}}, kBatchNorm,
     emit_batch_norm, {.fusion = Fusion::norm}, infer_batch_norm},
    {"BatchNormGrad",
     {{"x"}, {"gamma", kOptional | kFp32}, {"beta", kOptional | kFp32}, {"saved_mean", kFp32},
      {"saved_inv_std", kFp32}, {"dy"}}, {{"dx"}, {"dgamma", kFp32}, {"dbeta", kFp32}}, kBatchNorm,
     emit_batch_norm_grad, {.fusion = Fusion::norm_gradient}}};
// clang-format on

}  // namespace

std::span<const Operation> image_operations() {
  return kImages;
}

}  // namespace mp::graph
