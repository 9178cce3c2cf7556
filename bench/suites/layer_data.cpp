#include "layer_data.h"

#include <cmath>
#include <random>

namespace mpbench {
namespace {

mp_batchnorm_desc_t batch_norm_desc(const LayerShape &shape, mp_dtype_t dtype) {
  return mp_batchnorm_desc_default(shape.n * shape.h * shape.w, static_cast<int32_t>(shape.c),
                                   dtype);
}

mp_pool2d_desc_t pool_desc(const LayerShape &shape, mp_dtype_t dtype) {
  const mp_pool_mode_t mode =
      shape.layer == Layer::kMaxPool ? MP_POOL_MAX : MP_POOL_AVG_INCLUDE_PAD;
  mp_pool2d_desc_t desc =
      mp_pool2d_desc_default(mode, static_cast<int32_t>(shape.n), static_cast<int32_t>(shape.h),
                             static_cast<int32_t>(shape.w), static_cast<int32_t>(shape.c),
                             shape.window, shape.window, dtype);
  desc.pad_top = desc.pad_bottom = desc.pad_left = desc.pad_right = shape.pad;
  desc.stride_h = desc.stride_w = shape.stride;
  return desc;
}

}  // namespace

LayerData::LayerData(const Machine &machine, RandomPool &pool, const LayerShape &shape,
                     mp_dtype_t dtype)
    : machine_(machine), shape_(shape), dtype_(dtype) {
  if (shape.layer == Layer::kBatchNorm) {
    const mp_batchnorm_desc_t desc = batch_norm_desc(shape, dtype);
    size_t bytes = 0;
    check(mp_batchnorm_workspace_size(machine.context(), &desc, &bytes));
    workspace_ = Buffer(machine.context(), static_cast<int64_t>(bytes));
  }
  const auto set_bytes = static_cast<int64_t>(shape.min_bytes(dtype));
  sets_.resize(static_cast<size_t>(machine.sets_beyond_l2(set_bytes)));
  for (LayerTensors &set : sets_) fill(pool, set);
  machine.synchronize();
}

template <typename T>
T *LayerData::take(int64_t count, int64_t elem_bytes) {
  memory_.emplace_back(machine_.context(), count * elem_bytes);
  return memory_.back().as<T>();
}

/// Runs the forward pass before a backward pass, which reads its results.
void LayerData::fill(RandomPool &pool, LayerTensors &set) {
  const int64_t elem_bytes = dtype_bytes(dtype_), x = shape_.x_elems(), y = shape_.y_elems();
  set.x = take<void>(x, elem_bytes);
  pool.fill(set.x, x);
  if (shape_.layer == Layer::kSoftmaxXent) {
    if (shape_.pass == LayerPass::kBackward) set.dx = take<void>(x, elem_bytes);
    set.labels = take<int32_t>(shape_.n, sizeof(int32_t));
    set.losses = take<float>(shape_.n, sizeof(float));
    std::mt19937 bits(1);
    std::vector<int32_t> labels(static_cast<size_t>(shape_.n));
    for (int32_t &label : labels) label = static_cast<int32_t>(bits() % shape_.c);
    check(mp_memcpy(machine_.context(), set.labels, labels.data(), labels.size() * sizeof(int32_t),
                    machine_.stream()));
    machine_.synchronize();  // `labels` is about to be freed
    return;
  }
  set.y = take<void>(y, elem_bytes);
  if (shape_.layer == Layer::kBatchNorm) {
    RandomPool channels(machine_, MP_FP32);
    for (float *LayerTensors::*field :
         {&LayerTensors::gamma, &LayerTensors::beta, &LayerTensors::running_mean,
          &LayerTensors::running_var, &LayerTensors::saved_mean, &LayerTensors::saved_inv_std,
          &LayerTensors::dgamma, &LayerTensors::dbeta}) {
      set.*field = take<float>(shape_.c, sizeof(float));
      channels.fill(set.*field, shape_.c);
    }
  }
  if (shape_.pass == LayerPass::kForward) return;
  set.dy = take<void>(y, elem_bytes);
  set.dx = take<void>(x, elem_bytes);
  pool.fill(set.dy, y);
  enqueue(LayerPass::kForward, set);
}

void LayerData::enqueue(LayerPass pass, const LayerTensors &set) const {
  if (shape_.layer == Layer::kSoftmaxXent) return enqueue_softmax(pass, set);
  if (shape_.layer == Layer::kBatchNorm) return enqueue_batch_norm(pass, set);
  enqueue_pool(pass, set);
}

void LayerData::enqueue_softmax(LayerPass, const LayerTensors &set) const {
  const mp_xent_desc_t desc = mp_xent_desc_default(shape_.n, shape_.c, dtype_);
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = set.x;
  t.labels = set.labels;
  t.row_loss = set.losses;
  t.dx = set.dx;
  check(mp_softmax_xent(machine_.context(), &desc, &t, machine_.stream()));
}

void LayerData::enqueue_batch_norm(LayerPass pass, const LayerTensors &set) const {
  const mp_batchnorm_desc_t desc = batch_norm_desc(shape_, dtype_);
  mp_batchnorm_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = set.x;
  t.gamma = set.gamma;
  t.beta = set.beta;
  t.saved_mean = set.saved_mean;
  t.saved_inv_std = set.saved_inv_std;
  const auto bytes = static_cast<size_t>(workspace_.bytes());
  if (pass == LayerPass::kForward) {
    t.running_mean = set.running_mean;
    t.running_var = set.running_var;
    t.y = set.y;
    check(mp_batchnorm_forward_training(machine_.context(), &desc, &t, workspace_.data(), bytes,
                                        machine_.stream()));
    return;
  }
  t.dy = set.dy;
  t.dx = set.dx;
  t.dgamma = set.dgamma;
  t.dbeta = set.dbeta;
  check(mp_batchnorm_backward(machine_.context(), &desc, &t, workspace_.data(), bytes,
                              machine_.stream()));
}

void LayerData::enqueue_pool(LayerPass pass, const LayerTensors &set) const {
  const mp_pool2d_desc_t desc = pool_desc(shape_, dtype_);
  check(pass == LayerPass::kForward
            ? mp_pool2d_forward(machine_.context(), &desc, set.x, set.y, machine_.stream())
            : mp_pool2d_backward(machine_.context(), &desc, set.x, set.dy, set.dx, nullptr,
                                 machine_.stream()));
}

const LayerTensors &LayerData::next_set() {
  const LayerTensors &set = sets_[next_];
  next_ = (next_ + 1) % sets_.size();
  return set;
}

Work LayerData::own() {
  return [this] { enqueue(shape_.pass, next_set()); };
}

Work LayerData::peer(const CudnnLayer &layer) {
  return [this, &layer] { layer.enqueue(next_set()); };
}

/// False for softmax, which computes no loss, and for the backward pass of max pooling: ties are
/// frequent in 16 bits and cuDNN may select another maximum.
bool LayerData::is_comparable() const {
  const bool has_ties = shape_.layer == Layer::kMaxPool && shape_.pass == LayerPass::kBackward;
  return shape_.layer != Layer::kSoftmaxXent && !has_ties;
}

/// Maxima are exact.  A mean of w w values has an error of w w roundings of fp32.  Statistics of N
/// values have an error of sqrt(N) roundings in either direction, multiplied by at most gamma
/// inv_std = sqrt(3) and xhat = sqrt(3), in up to three terms: less than 32 of them for two
/// results.
Tolerance LayerData::tolerance() const {
  if (shape_.layer == Layer::kMaxPool) return {.absolute = 0, .relative = 0};
  const double absolute =
      shape_.layer == Layer::kAvgPool
          ? shape_.window * shape_.window * 0x1p-23
          : 32 * std::sqrt(static_cast<double>(shape_.n * shape_.h * shape_.w)) * 0x1p-24;
  return {.absolute = absolute, .relative = 2 * unit_roundoff(dtype_)};
}

std::string LayerData::difference_to(const CudnnLayer &layer) const {
  const LayerTensors &set = sets_.front();
  const bool is_forward = shape_.pass == LayerPass::kForward;
  const std::vector<Result> results = {{.data = is_forward ? set.y : set.dx,
                                        .count = is_forward ? shape_.y_elems() : shape_.x_elems(),
                                        .dtype = dtype_,
                                        .is_added_to = false}};
  const Values own = values_of(
      machine_, [&] { enqueue(shape_.pass, set); }, results);
  return difference(
      machine_, own, [&] { layer.enqueue(set); }, results, tolerance());
}

}  // namespace mpbench
