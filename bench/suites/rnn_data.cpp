#define MP_ENABLE_EXPERIMENTAL
#include "rnn_data.h"

#include <algorithm>
#include <cmath>

#include "runnable.h"

namespace mpbench {
namespace {

/// Passes before this pass in a training step.
std::vector<RnnPass> passes_before(RnnPass pass) {
  if (pass == RnnPass::kForward) return {};
  if (pass == RnnPass::kBackwardData) return {RnnPass::kForward};
  return {RnnPass::kForward, RnnPass::kBackwardData};
}

mp_rnn_sizes_t sizes_of(const Machine &machine, const mp_rnn_desc_t &desc) {
  mp_rnn_sizes_t sizes;
  MP_INIT_STRUCT(&sizes);
  check(mp_rnn_get_sizes(machine.context(), &desc, &sizes));
  return sizes;
}

double largest_of(const Values &values) {
  double largest = 0;
  for (const std::vector<float> &result : values)
    for (const float value : result) largest = std::max(largest, std::fabs(double{value}));
  return largest;
}

}  // namespace

RnnData::RnnData(const Machine &machine, const RnnShape &shape, const mp_rnn_desc_t &desc)
    : machine_(machine), shape_(shape), desc_(desc) {
  kernels_ = runnable_kernels([&](int32_t index, mp_kernel_info_t *info) {
               return mp_rnn_kernel_info(machine.context(), &desc, index, info);
             }).kernels;
  if (shape.is_training())
    reserve_bytes_ = static_cast<int64_t>(sizes_of(machine, desc).reserve_bytes);
  reserve_workspace(nullptr);

  // torch's initialization: with values in [-1, 1] the gradients of a long sequence would overflow
  // FP16.
  const float most = 1 / std::sqrt(static_cast<float>(shape.hidden));
  Pools pools{RandomPool(machine, desc.dtype), RandomPool(machine, desc.dtype, most),
              RandomPool(machine, MP_FP32, most)};
  const auto set_bytes = static_cast<int64_t>(min_bytes(shape, desc, reserve_bytes()));
  // Backward data consumes the results of forward: each batch needs an untimed call and a timed
  // one.
  const int64_t least = shape.call() == RnnPass::kForward || machine.is_counted() ? 1 : 2;
  const int64_t count = std::max(least, machine.sets_beyond_l2(set_bytes));
  for (int64_t i = 0; i < count; ++i) sets_.push_back(make_set(pools));
  machine.synchronize();
}

void *RnnData::take(int64_t count, mp_dtype_t dtype) {
  memory_.push_back(make_buffer(machine_.context(), count, dtype));
  return memory_.back().data();
}

RnnTensors RnnData::make_set(Pools &pools) {
  const mp_dtype_t dtype = desc_.dtype, dtype_dw = desc_.dtype_dw;
  const int64_t hidden = shape_.hidden, rows = shape_.gates() * hidden;
  const int64_t elems = shape_.timesteps * shape_.batch * hidden, states = shape_.batch * hidden;
  const RnnPass pass = shape_.call();
  const bool has_w_ih = (desc_.flags & MP_RNN_FLAG_SKIP_INPUT) == 0;
  const auto filled = [&](RandomPool &pool, int64_t count, mp_dtype_t of) {
    void *const data = take(count, of);
    pool.fill(data, count);
    return data;
  };
  RnnTensors set;
  set.x = filled(pools.values, elems, dtype);
  set.h0 = filled(pools.values, states, dtype);
  set.w_hh = filled(pools.weights, rows * hidden, dtype);
  if (has_w_ih) set.w_ih = filled(pools.weights, rows * hidden, dtype);
  set.b_ih = static_cast<float *>(filled(pools.biases, rows, MP_FP32));
  set.b_hh = static_cast<float *>(filled(pools.biases, rows, MP_FP32));
  set.y = take(elems, dtype);
  set.hn = take(states, dtype);
  memory_.emplace_back(machine_.context(), reserve_bytes());
  set.reserve = memory_.back().data();
  if (pass == RnnPass::kForward) return set;
  set.dy = filled(pools.values, elems, dtype);
  set.dx = take(elems, dtype);
  set.dh0 = take(states, dtype);
  if (pass == RnnPass::kBackwardData) return set;
  set.dw_hh = take(rows * hidden, dtype_dw);
  if (has_w_ih) set.dw_ih = take(rows * hidden, dtype_dw);
  set.db_ih = static_cast<float *>(take(rows, MP_FP32));
  set.db_hh = static_cast<float *>(take(rows, MP_FP32));
  return set;
}

void RnnData::reserve_workspace(const char *kernel) {
  const auto bytes =
      static_cast<int64_t>(sizes_of(machine_, with_kernel(desc_, kernel)).workspace_bytes);
  if (bytes > workspace_.bytes()) workspace_ = Buffer(machine_.context(), bytes);
}

void RnnData::enqueue(const char *kernel, RnnPass pass, const RnnTensors &set) const {
  const mp_rnn_desc_t forced = with_kernel(desc_, kernel);
  const mp_rnn_weights_t weights{
      sizeof(mp_rnn_weights_t), 0, set.w_ih, set.w_hh, set.b_ih, set.b_hh};
  const mp_rnn_weight_grads_t grads{
      sizeof(mp_rnn_weight_grads_t), 0, set.dw_ih, set.dw_hh, set.db_ih, set.db_hh};
  mp_rnn_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.num_weights = 1;
  t.weights = &weights;
  t.weight_grads = &grads;
  t.x = set.x;
  t.h0 = set.h0;
  t.y = set.y;
  t.hn = set.hn;
  t.reserve = set.reserve;
  t.reserve_bytes = static_cast<size_t>(reserve_bytes_);
  t.dy = set.dy;
  t.dx = set.dx;
  t.dh0 = set.dh0;
  const auto call = pass == RnnPass::kBackwardData      ? mp_rnn_backward_data
                    : pass == RnnPass::kBackwardWeights ? mp_rnn_backward_weights
                    : shape_.is_training()              ? mp_rnn_forward_training
                                                        : mp_rnn_forward_inference;
  machine_.call(call, &forced, &t, workspace_);
}

size_t RnnData::next_set() {
  const size_t set = next_;
  next_ = (next_ + 1) % sets_.size();
  return set;
}

Work RnnData::work_of(std::vector<RnnPass> passes, Enqueue enqueue) {
  const bool uses_up = std::count(passes.begin(), passes.end(), RnnPass::kBackwardData) > 0;
  const std::function<void()> prepare = [this, enqueue, before = passes_before(passes.front())] {
    for (size_t set = 0; set < sets_.size(); ++set)
      for (const RnnPass pass : before) enqueue(pass, set);
  };
  std::function<void()> call = [this, enqueue, passes = std::move(passes)] {
    const size_t set = next_set();
    for (const RnnPass pass : passes) enqueue(pass, set);
  };
  prepare();
  if (!uses_up) return call;
  return {std::move(call), prepare, std::max<int64_t>(2, sets())};
}

Work RnnData::own_passes(const char *kernel, std::vector<RnnPass> passes) {
  reserve_workspace(kernel);
  return work_of(std::move(passes),
                 [this, kernel](RnnPass pass, size_t set) { enqueue(kernel, pass, sets_[set]); });
}

Work RnnData::own(const char *kernel) {
  return own_passes(kernel, {shape_.call()});
}

Work RnnData::own_backward() {
  return own_passes(nullptr, {RnnPass::kBackwardData, RnnPass::kBackwardWeights});
}

Work RnnData::peer(const CudnnRnn &layer) {
  return work_of({shape_.call()}, [&layer](RnnPass pass, size_t set) { layer.enqueue(pass, set); });
}

Result RnnData::result() const {
  const RnnTensors &set = sets_.front();
  const RnnPass pass = shape_.call();
  const bool is_weights = pass == RnnPass::kBackwardWeights;
  const int64_t columns =
      is_weights ? shape_.gates() * shape_.hidden : shape_.timesteps * shape_.batch;
  // Gradients of weights start at 0 on both sides, because two types cannot start at the same
  // nonzero values.
  return {.data = is_weights                  ? set.dw_hh
                  : pass == RnnPass::kForward ? set.y
                                              : set.dx,
          .count = columns * shape_.hidden,
          .dtype = out_dtype(shape_, desc_),
          .is_added_to = false};
}

/// Rounding decides whether ReLU passes the gradient of a gate near 0.
bool RnnData::is_comparable() const {
  return shape_.call() == RnnPass::kForward || desc_.cell != MP_RNN_RELU;
}

std::string RnnData::difference_to(const CudnnRnn &layer) {
  const std::vector<Result> results = {result()};
  const bool is_weights = shape_.call() == RnnPass::kBackwardWeights;
  std::vector<RnnPass> passes = passes_before(shape_.call());
  passes.push_back(shape_.call());
  const Work own = [&] {
    if (is_weights)
      machine_.call(mp_memset, results[0].data, 0,
                    static_cast<size_t>(results[0].count * dtype_bytes(results[0].dtype)));
    for (const RnnPass pass : passes) enqueue(nullptr, pass, sets_.front());
  };
  const Work peer = [&] {
    if (is_weights) layer.clear_weight_grads(0);
    for (const RnnPass pass : passes) layer.enqueue(pass, 0);
    if (is_weights) layer.copy_weight_grads(0, desc_.dtype_dw);
  };
  const Values values = values_of(machine_, own, results);
  return difference(machine_, values, peer, results,
                    tolerance_of_rnn(shape_, desc_.dtype, largest_of(values)));
}

/// Rounding errors of the recurrence do not accumulate: with weights in [-1, 1] / sqrt(h) a step
/// shrinks them.  With equal inputs, FP16 and BF16 results of LSTM and GRU were within 2 roundings
/// of the largest element of the FP32 result for up to 150 steps (tests/tools/test_bench_rnn.cpp).
/// cuDNN may also round the sums of gates, which are a few times larger.  Sums in fp32 have another
/// order, and errors with random signs.
Tolerance tolerance_of_rnn(const RnnShape &shape, mp_dtype_t dtype, double largest) {
  constexpr double kRoundings = 16;
  const auto terms = static_cast<double>(shape.gemms().k);
  const double of_sums = 2 * std::sqrt(terms) * 0x1p-23;
  return {.absolute = (kRoundings * unit_roundoff(dtype) + of_sums) * largest, .relative = 0};
}

}  // namespace mpbench
