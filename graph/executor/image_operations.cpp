// Operations that surround convolutions: pooling and batch normalization.
#include "graph/executor/emitter.h"
#include "graph/executor/families.h"
#include "graph/executor/gradients.h"

namespace mp::graph {

namespace {

// ---------------------------------------------------------------------------- pools

constexpr Attribute kPool[] = {
    integer("window", 2, 1, kMaxInt32), integer("stride", 0, 0, kMaxInt32),
    integer("pad", 0, 0, kMaxInt32),    integer("dilation", 1, 1, kMaxInt32),
    integer("ceil_mode", 0, 0, 1),      integer("include_pad", 0, 0, 1)};
constexpr std::span<const Attribute> kMaxPool{kPool, 5};

/// @param x  shape of the input
mp_pool2d_desc_t pool_desc(const Node &n, const Extent &x, bool is_max, mp_dtype_t dtype) {
  const auto window = narrow(n.attributes[0].integer);
  const auto stride = narrow(n.attributes[1].integer);
  const mp_pool_mode_t mode = is_max                         ? MP_POOL_MAX
                              : n.attributes[5].integer != 0 ? MP_POOL_AVG_INCLUDE_PAD
                                                             : MP_POOL_AVG_EXCLUDE_PAD;
  mp_pool2d_desc_t d = mp_pool2d_desc_default(mode, narrow(x[0]), narrow(x[1]), narrow(x[2]),
                                              narrow(x[3]), window, window, dtype);
  if (stride != 0) d.stride_h = d.stride_w = stride;
  d.pad_top = d.pad_bottom = d.pad_left = d.pad_right = narrow(n.attributes[2].integer);
  d.dilation_h = d.dilation_w = narrow(n.attributes[3].integer);
  if (n.attributes[4].integer != 0) d.flags |= MP_POOL_FLAG_CEIL;
  return d;
}

class Pool final : public Operation {
 public:
  Pool(std::string_view type, bool is_max) : Operation(type, {1, 1}, {1, 1}), is_max_(is_max) {}
  std::span<const Attribute> attributes() const override {
    return is_max_ ? kMaxPool : std::span<const Attribute>(kPool);
  }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &x = require_floats(g, n, 0, "x", 4);
    require_narrow(n, x);
    const mp_pool2d_desc_t desc = pool_desc(n, x.extent, is_max_, MP_FP32);
    int32_t p = 0, q = 0;
    if (mp_pool2d_get_output_size(&desc, &p, &q) != MP_SUCCESS) fail_at(n, mp_last_error());
    if (p == 0 || q == 0)
      fail_at(n, "window = ", n.attributes[0].integer,
              " exceeds the padded height or width of x = ", x.name);
    set_extent(g, n, 0, {x.extent[0], p, q, x.extent[3]});
  }

  void differentiate(Gradients &d, const Node &n) const override {
    if (!d.is_wanted(n, 0)) return;
    const int32_t dx = d.make(n, 0);
    // MaxPoolGrad searches x for the maximum again; AvgPoolGrad does not need x.
    d.append(n, is_max_ ? "MaxPoolGrad" : "AvgPoolGrad", "grad_x",
             {d.of(n, 0), is_max_ ? n.input(0) : kNone}, {dx});
    d.contribute(n, 0, dx);
  }

  void emit(Emitter &e, const Node &n) const override {
    const mp_pool2d_desc_t desc = pool_desc(n, e.graph().in(n, 0).extent, is_max_, n.dtype);
    const Place x = e.in(n, 0), y = e.out(n, 0);
    e.append("mp_pool2d_forward", [=](const Run &run) {
      return mp_pool2d_forward(run.context, &desc, run.at(x), run.at(y), run.stream);
    });
  }

 private:
  bool is_max_;
};

/// Inputs: dy, x.
class PoolGrad final : public BackwardOperation {
 public:
  PoolGrad(std::string_view type, bool is_max) : BackwardOperation(type), is_max_(is_max) {}
  std::span<const Attribute> attributes() const override {
    return is_max_ ? kMaxPool : std::span<const Attribute>(kPool);
  }

  void emit(Emitter &e, const Node &n) const override {
    const mp_pool2d_desc_t desc = pool_desc(n, e.graph().out(n, 0).extent, is_max_, n.dtype);
    const Place dy = e.in(n, 0), x = e.in(n, 1), dx = e.out(n, 0);
    e.append("mp_pool2d_backward", [=](const Run &run) {
      return mp_pool2d_backward(run.context, &desc, run.at(x), run.at(dy), run.at(dx), nullptr,
                                run.stream);
    });
  }

 private:
  bool is_max_;
};

// ---------------------------------------------------------------------------- BatchNorm

constexpr Attribute kBatchNorm[] = {real("epsilon", 1e-5, 0, 1e30), real("momentum", 0.1, 0, 1)};

enum : size_t { kX, kGamma, kBeta, kMean, kVariance };            // inputs, forward
enum : size_t { kY, kSavedMean, kSavedInvStd };                   // outputs, forward
enum : size_t { kGradX, kGradGamma, kGradBeta };                  // outputs, backward
enum : size_t { kSavedMeanIn = 3, kSavedInvStdIn = 4, kDy = 5 };  // inputs, backward, after beta

mp_batchnorm_desc_t batch_norm_desc(const Node &n, const Tensor &x) {
  mp_batchnorm_desc_t d = mp_batchnorm_desc_default(x.rows(), narrow(x.columns()), n.dtype);
  d.activation = n.fused.activation;
  d.epsilon = static_cast<float>(n.attributes[0].real);
  d.momentum = static_cast<float>(n.attributes[1].real);
  return d;
}

void need_workspace(Emitter &e, const mp_batchnorm_desc_t &desc) {
  size_t bytes = 0;
  require_success(mp_batchnorm_workspace_size(e.context(), &desc, &bytes));
  e.needs_workspace(bytes);
}

/// Places of the tensors that both passes read.
struct BatchNormPlaces {
  Place x, gamma, beta, saved_mean, saved_inv_std;

  mp_batchnorm_tensors_t tensors(const Run &run) const {
    mp_batchnorm_tensors_t t;
    MP_INIT_STRUCT(&t);
    t.x = run.at(x);
    t.gamma = run.floats_at(gamma);
    t.beta = run.floats_at(beta);
    t.saved_mean = run.floats_at(saved_mean);
    t.saved_inv_std = run.floats_at(saved_inv_std);
    return t;
  }
};

class BatchNorm final : public Operation {
 public:
  BatchNorm() : Operation("BatchNorm", {5, 5}, {1, 1}) {}
  bool may_be_absent(size_t i) const override { return i == kGamma || i == kBeta; }
  std::span<const Attribute> attributes() const override { return kBatchNorm; }
  uint8_t input_slot(size_t i) const override { return i == kX ? 0 : MP_AUTOCAST_SLOT_FP32; }
  uint8_t output_slot(size_t i) const override { return i == kY ? 0 : MP_AUTOCAST_SLOT_FP32; }

  void infer(Graph &g, const Node &n) const override {
    const Tensor &x = require_floats(g, n, kX, "x");
    require_narrow(n, x);
    const char *const names[] = {"x", "gamma", "beta", "mean", "variance"};
    for (const size_t i : {kGamma, kBeta, kMean, kVariance}) {
      require_vector(g, n, i, names[i], x.columns());
      if (i >= kMean && g.in(n, i).role != Role::state)
        fail_at(n, names[i], " = ", g.in(n, i).name, " must be a tensor from mp_graph_add_state");
    }
    set_extent(g, n, kY, x.extent);
    for (const size_t i : {kSavedMean, kSavedInvStd}) set_extent(g, n, i, {x.columns()});
  }

  void keep(Graph &g, Node &n) const override {
    if (!g.has_backward()) return;
    for (const char *const word : {"/saved_mean", "/saved_inv_std"}) {
      Tensor saved;
      saved.name = n.name + word;
      saved.extent = {g.in(n, kX).columns()};
      saved.producer = g.out(n, kY).producer;
      n.outputs.push_back(g.add(std::move(saved)));
    }
  }

  void differentiate(Gradients &d, const Node &n) const override {
    const int32_t dx = d.make(n, kX);
    const int32_t dgamma = n.has_input(kGamma) ? d.make(n, kGamma) : kNone;
    const int32_t dbeta = n.has_input(kBeta) ? d.make(n, kBeta) : kNone;
    d.append(n, "BatchNormGrad", "grad",
             {n.input(kX), n.input(kGamma), n.input(kBeta), n.outputs[kSavedMean],
              n.outputs[kSavedInvStd], d.of(n, kY)},
             {dx, dgamma, dbeta});
    d.contribute(n, kX, dx);
    d.contribute(n, kGamma, dgamma);
    d.contribute(n, kBeta, dbeta);
  }

  void emit(Emitter &e, const Node &n) const override {
    const mp_batchnorm_desc_t desc = batch_norm_desc(n, e.graph().in(n, kX));
    need_workspace(e, desc);
    const BatchNormPlaces places = {e.in(n, kX), e.in(n, kGamma), e.in(n, kBeta),
                                    e.out(n, kSavedMean), e.out(n, kSavedInvStd)};
    const Place mean = e.in(n, kMean), variance = e.in(n, kVariance), y = e.out(n, kY);
    e.append("mp_batchnorm_forward", [=](const Run &run) {
      mp_batchnorm_tensors_t t = places.tensors(run);
      t.running_mean = run.floats_at(mean);
      t.running_var = run.floats_at(variance);
      t.y = run.at(y);
      return run.is_training ? mp_batchnorm_forward_training(run.context, &desc, &t, run.workspace,
                                                             run.workspace_bytes, run.stream)
                             : mp_batchnorm_forward_inference(run.context, &desc, &t, run.stream);
    });
  }
};

class BatchNormGrad final : public BackwardOperation {
 public:
  BatchNormGrad() : BackwardOperation("BatchNormGrad") {}
  std::span<const Attribute> attributes() const override { return kBatchNorm; }
  uint8_t input_slot(size_t i) const override {
    return i == kX || i == kDy ? 0 : MP_AUTOCAST_SLOT_FP32;
  }
  uint8_t output_slot(size_t i) const override { return i == kGradX ? 0 : MP_AUTOCAST_SLOT_FP32; }

  void emit(Emitter &e, const Node &n) const override {
    const mp_batchnorm_desc_t desc = batch_norm_desc(n, e.graph().in(n, kX));
    need_workspace(e, desc);
    const BatchNormPlaces places = {e.in(n, kX), e.in(n, kGamma), e.in(n, kBeta),
                                    e.in(n, kSavedMeanIn), e.in(n, kSavedInvStdIn)};
    const Place dy = e.in(n, kDy), dx = e.out(n, kGradX), dgamma = e.out(n, kGradGamma),
                dbeta = e.out(n, kGradBeta);
    e.append("mp_batchnorm_backward", [=](const Run &run) {
      mp_batchnorm_tensors_t t = places.tensors(run);
      t.dy = run.at(dy);
      t.dx = run.at(dx);
      t.dgamma = run.floats_at(dgamma);
      t.dbeta = run.floats_at(dbeta);
      return mp_batchnorm_backward(run.context, &desc, &t, run.workspace, run.workspace_bytes,
                                   run.stream);
    });
  }
};

const Pool max_pool("MaxPool", true);
const Pool avg_pool("AvgPool", false);
const PoolGrad max_pool_grad("MaxPoolGrad", true);
const PoolGrad avg_pool_grad("AvgPoolGrad", false);
const BatchNorm batch_norm;
const BatchNormGrad batch_norm_grad;

}  // namespace

std::span<const Operation *const> image_operations() {
  static const Operation *const all[] = {&max_pool,      &avg_pool,   &max_pool_grad,
                                         &avg_pool_grad, &batch_norm, &batch_norm_grad};
  return all;
}

}  // namespace mp::graph
