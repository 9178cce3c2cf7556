#include "layer.h"

#include <cmath>

namespace mpdemo {
namespace {

void upload(mp_context_t context, const Buffer &to, const std::vector<float> &values) {
  check(mp_memcpy(context, to.data(), values.data(), values.size() * sizeof(float), kStream));
}

std::vector<float> uniform_values(Random &random, int64_t count, double bound) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) value = static_cast<float>(bound * (2 * random.uniform01() - 1));
  return values;
}

}  // namespace

void fill(mp_context_t context, const Buffer &tensor, float value) {
  const size_t numel = static_cast<size_t>(tensor.bytes()) / sizeof(float);
  upload(context, tensor, std::vector<float>(numel, value));
}

Layer::Layer(const Setup &setup, int64_t out)
    : setup_(setup),
      out_(out),
      y_(make_buffer(setup.context, setup.max_rows * out, setup.dtype)),
      dy_(make_buffer(setup.context, setup.max_rows * out, setup.dtype)) {}

void Layer::add_memory(Memory &memory) const {
  memory.activations += y_.bytes();
  memory.activation_gradients += dy_.bytes();
}

mp_epilogue_t Layer::dx_epilogue(const Layer &below, const Pass &pass) {
  mp_epilogue_t epilogue = below.dy_epilogue();
  epilogue.found_inf = pass.found_inf;
  return epilogue;
}

Weight::Weight(const Setup &setup, int64_t numel)
    : setup_(setup),
      numel_(numel),
      master_(make_buffer(setup.context, numel, MP_FP32)),
      grad_(make_buffer(setup.context, numel, setup.dtype)) {
  if (setup.dtype != MP_FP32) model_ = make_buffer(setup.context, numel, setup.dtype);
}

void Weight::initialise(Random &random, int64_t fan_in) {
  // Uniform with variance 2 / fan_in keeps the size of activations through relu.
  initialise_uniform(random, std::sqrt(6.0 / static_cast<double>(fan_in)));
}

void Weight::initialise_uniform(Random &random, double bound) {
  upload(setup_.context, master_, uniform_values(random, numel_, bound));
  if (model_.data() == nullptr) return;
  check(mp_cast(setup_.context, master_.data(), MP_FP32, model_.data(), setup_.dtype, numel_,
                kStream));
}

Parameter Weight::parameter() const {
  return {numel_, master_.as<float>(), model_.data(), grad_.data(), setup_.dtype, true};
}

Channels::Channels(const Setup &setup, int64_t numel, float initial)
    : context_(setup.context),
      numel_(numel),
      initial_(initial),
      master_(make_buffer(setup.context, numel, MP_FP32)),
      grad_(make_buffer(setup.context, numel, MP_FP32)) {}

void Channels::initialise_uniform(Random &random, double bound) {
  upload(context_, master_, uniform_values(random, numel_, bound));
}

Parameter Channels::parameter() const {
  return {numel_, data(), nullptr, grad_.data(), MP_FP32, false};
}

}  // namespace mpdemo
