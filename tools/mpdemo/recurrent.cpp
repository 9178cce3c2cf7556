// Three calls per training step; the gradient of the last h enters as dhn.
#include "recurrent.h"

#include <algorithm>
#include <cmath>

namespace mpdemo {
namespace {

constexpr int64_t kGates = 4;

}  // namespace

Lstm::Lstm(const Setup &setup, int32_t steps, int32_t in, int32_t hidden)
    : Layer(setup, hidden),
      steps_(steps),
      in_(in),
      hidden_(hidden),
      w_ih_(setup, kGates * hidden * in),
      w_hh_(setup, kGates * hidden * hidden),
      b_ih_(setup, kGates * hidden, 0.0f),
      b_hh_(setup, kGates * hidden, 0.0f),
      sequence_(make_buffer(setup.context, setup.max_rows * steps * hidden, setup.dtype)),
      no_gradient_(make_buffer(setup.context, setup.max_rows * steps * hidden, setup.dtype)) {
  reserve_ = Buffer(setup.context, static_cast<int64_t>(sizes(setup.max_rows).reserve_bytes));
}

void Lstm::initialise(Random &random) {
  // As torch.nn.LSTM does it, which gives the forget gate no bias of its own.
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden_));
  w_ih_.initialise_uniform(random, bound);
  w_hh_.initialise_uniform(random, bound);
  b_ih_.initialise_uniform(random, bound);
  b_hh_.initialise_uniform(random, bound);
}

mp_rnn_desc_t Lstm::desc(int64_t rows) const {
  mp_rnn_desc_t d =
      mp_rnn_desc_default(MP_RNN_LSTM, static_cast<int32_t>(rows), steps_, in_, hidden_, dtype());
  d.x_step = in_;
  d.x_row = int64_t{steps_} * in_;
  return d;
}

mp_rnn_sizes_t Lstm::sizes(int64_t rows) const {
  const mp_rnn_desc_t d = desc(rows);
  mp_rnn_sizes_t sizes;
  MP_INIT_STRUCT(&sizes);
  check(mp_rnn_get_sizes(context(), &d, &sizes));
  return sizes;
}

mp_rnn_weights_t Lstm::weights() const {
  return {w_ih_.data(), w_hh_.data(), b_ih_.data(), b_hh_.data()};
}

mp_rnn_tensors_t Lstm::tensors(const void *x, const mp_rnn_weights_t &weights) const {
  mp_rnn_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.num_weights = 1;
  t.weights = &weights;
  t.x = x;
  t.reserve = reserve_.data();
  t.reserve_bytes = static_cast<size_t>(reserve_.bytes());
  return t;
}

void Lstm::forward(const void *x, const Pass &pass) {
  const mp_rnn_desc_t d = desc(pass.rows);
  const mp_rnn_weights_t w = weights();
  mp_rnn_tensors_t t = tensors(x, w);
  t.y = sequence_.data();
  t.hn = y().data();
  const auto forward = pass.is_training ? mp_rnn_forward_training : mp_rnn_forward_inference;
  check(forward(context(), &d, &t, pass.workspace.data(),
                static_cast<size_t>(pass.workspace.bytes()), kStream));
}

void Lstm::backward(const void *x, const Layer *below, const Pass &pass) {
  const mp_rnn_desc_t d = desc(pass.rows);
  const mp_rnn_weights_t w = weights();
  const mp_rnn_weight_grads_t grads = {w_ih_.grad(), w_hh_.grad(), b_ih_.grad(), b_hh_.grad()};
  const size_t workspace_bytes = static_cast<size_t>(pass.workspace.bytes());
  mp_rnn_tensors_t t = tensors(x, w);
  t.weight_grads = &grads;
  t.dy = no_gradient_.data();
  t.dhn = dy().data();
  t.dx = below != nullptr ? below->dy().data() : nullptr;
  t.found_inf = pass.found_inf;
  check(mp_rnn_backward_data(context(), &d, &t, pass.workspace.data(), workspace_bytes, kStream));
  check(
      mp_rnn_backward_weights(context(), &d, &t, pass.workspace.data(), workspace_bytes, kStream));
}

std::vector<Parameter> Lstm::parameters() const {
  return {w_ih_.parameter(), w_hh_.parameter(), b_ih_.parameter(), b_hh_.parameter()};
}

size_t Lstm::workspace_bytes() const {
  // A smaller batch may be divided among the device in another way, and need more.
  size_t most = 0;
  for (int64_t rows = 1; rows <= max_rows(); ++rows)
    most = std::max(most, sizes(rows).workspace_bytes);
  return most;
}

void Lstm::add_memory(Memory &memory) const {
  Layer::add_memory(memory);
  memory.activations += sequence_.bytes() + reserve_.bytes();
  memory.activation_gradients += no_gradient_.bytes();
}

}  // namespace mpdemo
