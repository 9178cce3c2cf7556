#include "network.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "architectures.h"
#include "verses.h"

namespace mpdemo {
namespace {

std::vector<float> initial_values(const Variable &variable, Random &random) {
  const Initial &initial = variable.initial;
  std::vector<float> values(static_cast<size_t>(variable.numel), initial.value);
  if (initial.bound > 0)
    for (float &value : values)
      value = static_cast<float>(initial.bound * (2 * random.uniform01() - 1));
  if (initial.deviation > 0)
    for (float &value : values) value = static_cast<float>(initial.deviation * random.normal());
  return values;
}

int64_t numel(const mp_graph_tensor_t &tensor) {
  return std::accumulate(tensor.extent, tensor.extent + tensor.rank, int64_t{1},
                         std::multiplies<>());
}

mp::autocast make_policy(mp_dtype_t dtype) {
  mp_autocast_config_t config = mp_autocast_config_default(dtype);
  config.flags |= MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;  // measures accuracy and memory on a CPU too
  mp::autocast policy = mp::autocast::create(config);
  policy.set_nodes("*.residual*", MP_OP_CLASS_DENY);  // small terms would be lost in 16 bits
  return policy;
}

/// Sharpens the distribution: likely characters are sampled more often, with fewer misspellings.
constexpr double kTemperature = 0.7;

int32_t draw(const std::vector<float> &logits, Random &random) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> shares;
  double sum = 0;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<double>(logit - most) / kTemperature));
    sum += shares.back();
  }
  double left = random.uniform01() * sum;
  for (size_t symbol = 0; symbol < shares.size(); ++symbol)
    if ((left -= shares[symbol]) < 0) return static_cast<int32_t>(symbol);
  return kLineEnd;  // reached only if the network predicts NaN
}

}  // namespace

Network::Network(mp_context_t context, const Architecture &architecture, const Form &form)
    : context_(context), dtype_(form.dtype), description_(context, form) {
  architecture.describe(description_);
  mp::autocast policy;
  if (form.dtype != MP_FP32) {
    policy = make_policy(form.dtype);
    description_.graph.autocast(policy);
  }
  description_.graph.compile();
  for (const Carried &each : description_.carried)
    carried_.push_back(make_buffer(context, each.numel, MP_FP32));
}

void Network::initialise(Random &random) {
  for (const Variable &variable : description_.variables)
    description_.graph.write(variable.tensor, initial_values(variable, random).data());
}

void Network::copy_from(const Network &trained) {
  for (size_t i = 0; i < description_.variables.size(); ++i)
    description_.graph.write(description_.variables[i].tensor,
                             trained.data_of<float>(trained.description_.variables[i].tensor));
}

// ---------------------------------------------------------------------------- a step

void Network::forward(const Batch &batch, mp_graph_mode_t mode) {
  const mp::graph &graph = description_.graph;
  bind_carried(batch.continues);
  graph.set_batch(batch.size);
  graph.bind(description_.x, batch.x);
  graph.bind(description_.labels, batch.labels);
  if (description_.lengths != Description::kNone) graph.bind(description_.lengths, batch.lengths);
  graph.forward(mode);
}

void Network::backward(mp_scaler_t scaler) {
  description_.graph.backward(scaler);
}

void Network::bind_carried(bool continues) {
  for (size_t i = 0; i < carried_.size(); ++i) {
    const Carried &each = description_.carried[i];
    if (continues) {
      // Copied because backward() still reads it after the next state overwrites the buffer.
      const mp_graph_tensor_t last = description_.graph.get_tensor(each.to_next);
      check(mp_cast(context_, last.data, last.dtype, carried_[i].data(), MP_FP32, numel(last),
                    kStream));
    }
    description_.graph.bind(each.from_before, continues ? carried_[i].data() : nullptr);
  }
}

// ---------------------------------------------------------------------------- what there is of it

Memory Network::memory() const {
  const mp_graph_memory_t graph = description_.graph.get_memory();
  Memory memory = {.parameters = graph.parameters,
                   .copies = graph.copies,
                   .gradients = graph.gradients,
                   .optimizer_state = 0,
                   .states = graph.states,
                   .activations = graph.activations,
                   .workspace = graph.workspace};
  for (const Buffer &each : carried_) memory.states += each.bytes();
  return memory;
}

std::string Network::explanation(mp_autocast_format_t form) const {
  return dtype_ == MP_FP32 ? std::string() : std::string(description_.graph.explain(form));
}

std::vector<float> Network::masters_sync() const {
  std::vector<float> all;
  for (const Variable &variable : description_.variables) {
    if (!variable.is_trained) continue;
    const std::vector<float> host =
        download_sync(context_, data_of<float>(variable.tensor), variable.numel);
    all.insert(all.end(), host.begin(), host.end());
  }
  return all;
}

std::vector<float> Network::logits_sync(int64_t row) const {
  const mp_graph_tensor_t logits = description_.graph.get_tensor(description_.logits);
  const int64_t columns = logits.extent[logits.rank - 1];
  const Buffer wide = make_buffer(context_, numel(logits), MP_FP32);
  check(mp_cast(context_, logits.data, logits.dtype, wide.data(), MP_FP32, numel(logits), kStream));
  return download_sync(context_, wide.as<float>() + row * columns, columns);
}

std::vector<float> Network::weight_gradients_sync() const {
  std::vector<float> all;
  for (const Variable &variable : description_.variables)
    if (variable.is_trained && variable.rank > 1) append_gradient(variable.tensor, all);
  return all;
}

std::vector<float> Network::activation_gradients_sync() const {
  std::vector<float> all;
  for (const int32_t tensor : description_.observed) append_gradient(tensor, all);
  return all;
}

void Network::append_gradient(int32_t tensor, std::vector<float> &all) const {
  const mp_graph_tensor_t info = description_.graph.get_tensor(tensor);
  const std::vector<float> host =
      download_sync(context_, static_cast<const float *>(info.grad), numel(info));
  all.insert(all.end(), host.begin(), host.end());
}

// ---------------------------------------------------------------------------- generated text

std::string write_text(mp_context_t context, Network &network, int64_t steps, int64_t characters,
                       Random random) {
  const Buffer input(context, steps * static_cast<int64_t>(sizeof(int32_t)));
  Batch batch = {input.data(), nullptr, 1, 0};
  std::vector<int32_t> read = {kLineEnd};
  std::string text;
  while (static_cast<int64_t>(text.size()) < characters) {
    check(mp_memcpy(context, input.data(), read.data(), read.size() * sizeof read[0], kStream));
    network.forward(batch, MP_GRAPH_MODE_INFERENCE);
    const auto last = static_cast<int64_t>(read.size()) - 1;
    const int32_t symbol = draw(network.logits_sync(last), random);
    text += character_of(symbol);
    if (last + 1 == steps) read.erase(read.begin());
    read.push_back(symbol);
    batch.continues = true;
  }
  return text;
}

}  // namespace mpdemo
