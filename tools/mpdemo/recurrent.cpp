// Three calls per training step.
#include "recurrent.h"

#include <algorithm>
#include <cmath>

namespace mpdemo {
namespace {

constexpr int64_t kGates = 4;

}  // namespace

Lstm::Lstm(const Setup &setup, int32_t in, int32_t hidden)
    : Layer(setup, hidden),
      in_(in),
      w_ih_(setup, kGates * hidden * in),
      w_hh_(setup, kGates * hidden * hidden),
      b_ih_(setup, kGates * hidden, 0.0f),
      b_hh_(setup, kGates * hidden, 0.0f) {}

void Lstm::initialise(Random &random) {
  // As torch.nn.LSTM does it, which gives the forget gate no bias of its own.
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden()));
  w_ih_.initialise_uniform(random, bound);
  w_hh_.initialise_uniform(random, bound);
  b_ih_.initialise_uniform(random, bound);
  b_hh_.initialise_uniform(random, bound);
}

std::vector<Parameter> Lstm::parameters() const {
  return {w_ih_.parameter(), w_hh_.parameter(), b_ih_.parameter(), b_hh_.parameter()};
}

mp_rnn_desc_t Lstm::desc(int64_t sequences, int32_t steps) const {
  return mp_rnn_desc_default(MP_RNN_LSTM, static_cast<int32_t>(sequences), steps, in_, hidden(),
                             dtype());
}

mp_rnn_sizes_t Lstm::sizes(const mp_rnn_desc_t &desc) const {
  mp_rnn_sizes_t sizes;
  MP_INIT_STRUCT(&sizes);
  check(mp_rnn_get_sizes(context(), &desc, &sizes));
  return sizes;
}

void Lstm::make_reserve(const mp_rnn_desc_t &desc) {
  reserve_ = Buffer(context(), static_cast<int64_t>(sizes(desc).reserve_bytes));
}

mp_rnn_weights_t Lstm::weights() const {
  return {w_ih_.data(), w_hh_.data(), b_ih_.data(), b_hh_.data()};
}

mp_rnn_tensors_t Lstm::tensors(const void *x) const {
  mp_rnn_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.num_weights = 1;
  t.x = x;
  t.reserve = reserve_.data();
  t.reserve_bytes = static_cast<size_t>(reserve_.bytes());
  return t;
}

void Lstm::call_forward(const mp_rnn_desc_t &desc, mp_rnn_tensors_t t, const Pass &pass) const {
  const mp_rnn_weights_t w = weights();
  t.weights = &w;
  const auto forward = pass.is_training ? mp_rnn_forward_training : mp_rnn_forward_inference;
  check(forward(context(), &desc, &t, pass.workspace.data(),
                static_cast<size_t>(pass.workspace.bytes()), kStream));
}

void Lstm::call_backward(const mp_rnn_desc_t &desc, mp_rnn_tensors_t t, const Layer *below,
                         const Pass &pass) const {
  const mp_rnn_weights_t w = weights();
  const mp_rnn_weight_grads_t grads = {w_ih_.grad(), w_hh_.grad(), b_ih_.grad(), b_hh_.grad()};
  const size_t workspace_bytes = static_cast<size_t>(pass.workspace.bytes());
  t.weights = &w;
  t.weight_grads = &grads;
  t.dx = below != nullptr ? below->dy().data() : nullptr;
  t.found_inf = pass.found_inf;
  check(
      mp_rnn_backward_data(context(), &desc, &t, pass.workspace.data(), workspace_bytes, kStream));
  check(mp_rnn_backward_weights(context(), &desc, &t, pass.workspace.data(), workspace_bytes,
                                kStream));
}

LastStepLstm::LastStepLstm(const Setup &setup, int32_t steps, int32_t in, int32_t hidden)
    : Lstm(setup, in, hidden),
      steps_(steps),
      sequence_(make_buffer(setup.context, setup.max_rows * steps * hidden, setup.dtype)),
      no_gradient_(make_buffer(setup.context, setup.max_rows * steps * hidden, setup.dtype)) {
  make_reserve(row_major(setup.max_rows));
}

mp_rnn_desc_t LastStepLstm::row_major(int64_t rows) const {
  mp_rnn_desc_t d = desc(rows, steps_);
  d.x_step = in();
  d.x_row = int64_t{steps_} * in();
  return d;
}

void LastStepLstm::forward(const void *x, const Pass &pass) {
  mp_rnn_tensors_t t = tensors(x);
  t.y = sequence_.data();
  t.hn = y().data();
  call_forward(row_major(pass.rows), t, pass);
}

void LastStepLstm::backward(const void *x, const Layer *below, const Pass &pass) {
  mp_rnn_tensors_t t = tensors(x);
  t.dy = no_gradient_.data();
  t.dhn = dy().data();
  call_backward(row_major(pass.rows), t, below, pass);
}

size_t LastStepLstm::workspace_bytes() const {
  // A smaller batch may be divided among the device in another way, and need more.
  size_t most = 0;
  for (int64_t rows = 1; rows <= max_rows(); ++rows)
    most = std::max(most, sizes(row_major(rows)).workspace_bytes);
  return most;
}

void LastStepLstm::add_memory(Memory &memory) const {
  Layer::add_memory(memory);
  memory.activations += sequence_.bytes() + reserve().bytes();
  memory.activation_gradients += no_gradient_.bytes();
}

WindowLstm::WindowLstm(const Setup &setup, int32_t steps, int32_t in, int32_t hidden)
    : Lstm(setup, in, hidden), largest_(desc(setup.max_rows / steps, steps)) {
  make_reserve(largest_);
  for (State &state : states_) {
    state.h = make_buffer(setup.context, int64_t{largest_.batch} * hidden, setup.dtype);
    state.c = make_buffer(setup.context, int64_t{largest_.batch} * hidden, MP_FP32);
  }
}

mp_rnn_tensors_t WindowLstm::tensors_of(const void *x, const Window &window) const {
  const State &last = states_[latest_];
  const State &first = states_[1 - latest_];
  mp_rnn_tensors_t t = tensors(x);
  t.lengths = window.lengths;
  t.h0 = window.continues ? first.h.data() : nullptr;
  t.c0 = window.continues ? first.c.as<float>() : nullptr;
  t.hn = last.h.data();
  t.cn = last.c.as<float>();
  return t;
}

void WindowLstm::forward(const void *x, const Pass &pass) {
  latest_ = 1 - latest_;
  mp_rnn_tensors_t t = tensors_of(x, pass.window);
  t.y = y().data();
  call_forward(desc(pass.window.sequences, pass.window.steps), t, pass);
}

void WindowLstm::backward(const void *x, const Layer *below, const Pass &pass) {
  mp_rnn_tensors_t t = tensors_of(x, pass.window);
  t.dy = dy().data();
  call_backward(desc(pass.window.sequences, pass.window.steps), t, below, pass);
}

size_t WindowLstm::workspace_bytes() const {
  // A text is written step by step, one sequence alone.
  return std::max(sizes(largest_).workspace_bytes, sizes(desc(1, 1)).workspace_bytes);
}

void WindowLstm::add_memory(Memory &memory) const {
  Layer::add_memory(memory);
  memory.activations += reserve().bytes();
  for (const State &state : states_) memory.activations += state.h.bytes() + state.c.bytes();
}

}  // namespace mpdemo
