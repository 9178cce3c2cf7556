#include "tests/graph/described.h"

#include <algorithm>
#include <cmath>

namespace mptest {

PolicyHandle make_policy(mp_dtype_t low, mp_autocast_level_t level, uint32_t flags) {
  mp_autocast_config_t config = mp_autocast_config_default(low);
  config.level = level;
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE | flags;
  mp_autocast_t policy = nullptr;
  require_ok(mp_autocast_create(&policy, &config));
  return PolicyHandle(policy);
}

PolicyHandle allow_all(mp_dtype_t low) {
  if (low == MP_FP32) return nullptr;
  PolicyHandle policy = make_policy(low);
  require_ok(mp_autocast_set_nodes(policy.get(), "*", MP_OP_CLASS_ALLOW));
  return policy;
}

ScalerHandle make_scaler(mp_scaler_policy_t policy, float init_scale) {
  mp_scaler_config_t config = mp_scaler_config_default(policy);
  config.init_scale = init_scale;
  config.growth_interval = 4;
  return mptools::make_scaler(context(), config);
}

Floats32 random_values(Random &random, int64_t count, double bound) {
  Floats32 values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::round(random.real(-bound, bound) * 64) / 64));
  return values;
}

Floats32 random_weights(Random &random, int64_t count, int64_t fan_in) {
  Floats32 values;
  const double bound = std::sqrt(6.0 / static_cast<double>(fan_in));
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(random.real(-bound, bound)));
  return values;
}

std::vector<int32_t> Described::node_of(const char *op, const char *name,
                                        const std::vector<int32_t> &inputs, uint32_t num_outputs,
                                        const Attributes &attributes) const {
  GraphAttributes plain;
  for (const mp::attribute &attribute : attributes) plain.push_back(attribute.get());
  return outputs_of(op, name, inputs, plain, num_outputs);
}

int32_t Described::seed_gradient(int32_t tensor) {
  int32_t seed = -1;
  require_ok(mp_graph_seed_gradient(handle, tensor, &seed));
  return seed;
}

std::vector<int32_t> Described::xent(int32_t y, const std::vector<int32_t> &classes,
                                     uint32_t num_outputs) {
  const mp_graph_tensor_t logits = info(y);
  labels = input("labels", MP_DTYPE_NONE, {logits.extent, logits.extent + logits.rank - 1});
  if (!classes.empty()) feed(labels, classes);
  const std::vector<int32_t> outputs = node_of("SoftmaxXent", "loss", {y, labels}, num_outputs);
  loss(outputs[0]);
  return outputs;
}

void Described::compile(mp_autocast_t policy) {
  GraphBuilder::compile(policy);
  is_compiled_ = true;
  for (const Fed &each : fed_) bind(each.tensor, each.data);
}

void Described::feed(int32_t tensor, const void *data, const std::shared_ptr<void> &owner) {
  fed_.push_back({tensor, data, owner});
  if (is_compiled_) bind(tensor, data);
}

void Described::write(int32_t tensor, const Floats32 &values) {
  const DeviceBuffer<float> staging(values);
  require_ok(mp_graph_write(handle, tensor, staging.data(), kStream));
  require_ok(mp_stream_sync(context(), kStream));
}

void Described::write_random(Random &random, int64_t fan_in) {
  for (const int32_t parameter : parameters)
    write(parameter, random_weights(random, numel(parameter), fan_in));
}

void Described::step(mp_scaler_t scaler) {
  forward(MP_GRAPH_MODE_TRAINING);
  require_ok(mp_graph_backward(handle, scaler, kStream));
}

void Described::train(mp_scaler_t scaler) {
  if (optimizer_ == nullptr) {
    const mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.125f);
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_SGD);
    desc.groups = &group;
    require_ok(mp_graph_get_lists(handle, &desc.grads, &desc.master, &desc.model));
    optimizer_ = mptools::make_optimizer(caller().context(), desc);
  }
  step(scaler);
  require_ok(mp_scale_step(optimizer_.get(), scaler, nullptr, kStream));
}

mp_graph_memory_t Described::memory() const {
  auto memory = initialized<mp_graph_memory_t>();
  require_ok(mp_graph_get_memory(handle, &memory));
  return memory;
}

namespace {

template <class Write>
std::string text_of(const Write &write) {
  size_t bytes = 0;
  require_ok(write(nullptr, &bytes));
  std::string text(bytes, '\0');
  require_ok(write(text.data(), &bytes));
  text.resize(bytes - 1);
  return text;
}

std::vector<double> read_device(const void *data, mp_dtype_t dtype, int64_t count) {
  DeviceArray copy(dtype, count);
  require_ok(mp_memcpy(context(), copy.data(), data,
                       static_cast<size_t>(count) * mp_dtype_size(dtype), kStream));
  return copy.download();
}

}  // namespace

std::string Described::describe() const {
  return text_of([&](char *text, size_t *bytes) { return mp_graph_describe(handle, text, bytes); });
}

std::string Described::explain() const {
  return text_of([&](char *text, size_t *bytes) {
    return mp_graph_explain(handle, MP_AUTOCAST_FORMAT_TEXT, text, bytes);
  });
}

std::vector<double> Described::read(int32_t tensor) const {
  const mp_graph_tensor_t t = info(tensor);
  REQUIRE(t.data != nullptr);
  return read_device(t.data, t.dtype, numel_of(t));
}

std::vector<double> Described::gradient(int32_t tensor) const {
  const mp_graph_tensor_t t = info(tensor);
  REQUIRE(t.grad != nullptr);
  return read_device(t.grad, t.dtype_grad, numel_of(t));
}

std::vector<float> Described::masters() const {
  std::vector<float> all;
  for (const int32_t parameter : parameters)
    for (const double value : read(parameter)) all.push_back(static_cast<float>(value));
  return all;
}

void *CountedContext::alloc(size_t bytes, void *user) {
  auto &self = *static_cast<CountedContext *>(user);
  if (self.count++ == self.fails_at || bytes > static_cast<size_t>(self.limit)) return nullptr;
  void *ptr = nullptr;
  if (mp_malloc(context(), &ptr, bytes) != MP_SUCCESS) return nullptr;
  ++self.alive;
  self.largest = std::max(self.largest, static_cast<int64_t>(bytes));
  return ptr;
}

void CountedContext::free(void *ptr, size_t, void *user) {
  --static_cast<CountedContext *>(user)->alive;
  mp_free(context(), ptr);
}

CountedContext::CountedContext(int32_t sm_limit) {
  auto allocator = initialized<mp_allocator_t>();
  allocator.alloc = alloc;
  allocator.free = free;
  allocator.user = this;
  mp_context_config_t config = mp_context_config_default();
  config.device = on_host() ? MP_DEVICE_HOST : MP_DEVICE_CURRENT;
  config.sm_limit = sm_limit;
  config.allocator = &allocator;
  require_ok(mp_context_create(&context_, &config));
}

CountedContext::~CountedContext() {
  CHECK(alive == 0);
  mp_context_destroy(context_);
}

}  // namespace mptest
