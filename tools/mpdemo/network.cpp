#include "network.h"

#include <algorithm>

namespace mpdemo {

Network::Network(const Setup &setup, Layers layers) : setup_(setup), layers_(std::move(layers)) {
  size_t most = 0;
  for (const auto &layer : layers_) most = std::max(most, layer->workspace_bytes());
  workspace_ = Buffer(setup.context, static_cast<int64_t>(most));
}

void Network::initialise(Random &random) {
  for (const auto &layer : layers_) layer->initialise(random);
}

void Network::forward(const Batch &batch, bool is_training) {
  const Pass pass = {batch.rows, batch.window, is_training, workspace_, nullptr};
  const void *x = batch.x;
  for (const auto &layer : layers_) {
    layer->forward(x, pass);
    x = layer->y().data();
  }
}

void Network::backward(const Batch &batch, float *found_inf) {
  const Pass pass = {batch.rows, batch.window, true, workspace_, found_inf};
  for (size_t l = layers_.size(); l-- > 1;)
    layers_[l]->backward(layers_[l - 1]->y().data(), layers_[l - 1].get(), pass);
  layers_.front()->backward(batch.x, nullptr, pass);
}

std::vector<Parameter> Network::parameters() const {
  std::vector<Parameter> all;
  for (const auto &layer : layers_)
    for (const Parameter &parameter : layer->parameters()) all.push_back(parameter);
  return all;
}

std::vector<float> Network::masters_sync() const {
  std::vector<float> all;
  for (const Parameter &parameter : parameters()) {
    const std::vector<float> host =
        download_sync(setup_.context, parameter.master, parameter.numel);
    all.insert(all.end(), host.begin(), host.end());
  }
  return all;
}

std::vector<float> Network::logits_sync(int64_t rows) const {
  std::vector<float> all;
  append_as_fp32(logits(), rows * classes(), all);
  return all;
}

std::vector<float> Network::weight_gradients_sync() const {
  std::vector<float> all;
  for (const Parameter &parameter : parameters())
    if (parameter.is_weight) append_as_fp32(parameter.grad, parameter.numel, all);
  return all;
}

std::vector<float> Network::activation_gradients_sync(int64_t rows) const {
  std::vector<float> all;
  for (const auto &layer : layers_) append_as_fp32(layer->dy().data(), rows * layer->out(), all);
  return all;
}

void Network::append_as_fp32(const void *tensor, int64_t numel, std::vector<float> &all) const {
  const Buffer wide = make_buffer(setup_.context, numel, MP_FP32);
  check(mp_cast(setup_.context, tensor, dtype(), wide.data(), MP_FP32, numel, kStream));
  const std::vector<float> host = download_sync(setup_.context, wide.as<float>(), numel);
  all.insert(all.end(), host.begin(), host.end());
}

Memory Network::memory() const {
  const auto bytes = [](int64_t numel, mp_dtype_t dtype) {
    return numel * static_cast<int64_t>(mp_dtype_size(dtype));
  };
  Memory memory;
  for (const Parameter &p : parameters()) {
    const bool has_model = p.model != nullptr;
    memory.weights += bytes(p.numel, has_model ? dtype() : MP_FP32);
    if (has_model) memory.masters += bytes(p.numel, MP_FP32);
    memory.gradients += bytes(p.numel, p.grad_dtype);
  }
  for (const auto &layer : layers_) layer->add_memory(memory);
  memory.workspace += workspace_.bytes();
  return memory;
}

}  // namespace mpdemo
