#include "tests/fuzz/usual_objects.h"

#include <array>

namespace fuzz {

namespace {

constexpr uint32_t kTensors = 2;
constexpr int64_t kElements[kTensors] = {24, 3};

void succeed(mp_status_t status) {
  if (status != MP_SUCCESS) found("usual objects", mp_last_error());
}

mp_tensor_list_t make_list(World &world, mp_context_t context, mp_dtype_t dtype, uint32_t place) {
  void *data[kTensors];
  for (uint32_t i = 0; i < kTensors; ++i) data[i] = World::good_device(place + i);
  mp_tensor_list_desc_t desc;
  MP_INIT_STRUCT(&desc);
  desc.dtype = dtype;
  desc.count = kTensors;
  desc.data = data;
  desc.numel = kElements;
  mp_tensor_list_t list = nullptr;
  succeed(mp_tensor_list_create(&list, context, &desc));
  world.has_created(list, mp_tensor_list_destroy);
  return list;
}

void make_optimizer(World &world, mp_context_t context) {
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_ADAM);
  const mp_param_group_t group = mp_param_group_default(MP_OPT_ADAM, 1e-3f);
  desc.groups = &group;
  desc.grads = make_list(world, context, MP_FP16, 2);
  desc.master = make_list(world, context, MP_FP32, 4);
  desc.m = make_list(world, context, MP_FP32, 6);
  desc.v = make_list(world, context, MP_FP32, 8);
  for (mp_tensor_list_t list : {desc.grads, desc.master, desc.m, desc.v}) world.uses(list);
  mp_optimizer_t optimizer = nullptr;
  succeed(mp_optimizer_create(&optimizer, context, &desc));
  world.has_created(optimizer, mp_optimizer_destroy);
}

void make_scaler(World &world, mp_context_t context) {
  const mp_scaler_config_t backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  mp_scaler_t scaler = nullptr;
  succeed(mp_scaler_create(&scaler, context, &backoff));
  world.has_created(scaler, mp_scaler_destroy);
}

/// A perceptron with one layer and its loss; compiled if `is_compiled`.
void make_graph(World &world, mp_context_t context, bool is_compiled) {
  mp_graph_t graph = nullptr;
  succeed(mp_graph_create(&graph, context));
  world.has_created(graph, mp_graph_destroy);
  const std::array<int64_t, 2> x_extent = {4, 8}, w_extent = {8, 3};
  int32_t x = -1, labels = -1, w = -1, b = -1, logits = -1, loss = -1;
  succeed(mp_graph_add_input(graph, "x", MP_FP32, 2, x_extent.data(), &x));
  succeed(mp_graph_add_input(graph, "labels", MP_DTYPE_NONE, 1, x_extent.data(), &labels));
  succeed(mp_graph_add_parameter(graph, "w", 2, w_extent.data(), &w));
  succeed(mp_graph_add_parameter(graph, "b", 1, &w_extent[1], &b));
  const std::array<int32_t, 3> linear = {x, w, b};
  succeed(mp_graph_add_node(graph, "Linear", "fc", linear.data(), linear.size(), nullptr, 0,
                            &logits, 1));
  const std::array<int32_t, 2> xent = {logits, labels};
  succeed(mp_graph_add_node(graph, "SoftmaxXent", "loss", xent.data(), xent.size(), nullptr, 0,
                            &loss, 1));
  succeed(mp_graph_set_loss(graph, loss));
  mp_autocast_t policy = nullptr;
  succeed(mp_autocast_create(&policy, nullptr));
  world.has_created(policy, mp_autocast_destroy);
  if (!is_compiled) return;
  succeed(mp_graph_set_autocast(graph, policy));
  succeed(mp_graph_compile(graph));
  succeed(mp_graph_bind(graph, x, World::good_device(0)));
  succeed(mp_graph_bind(graph, labels, World::good_device(0)));
}

}  // namespace

void make_usual_objects(World &world) {
  const mp_allocator_t allocator = {sizeof allocator, 0, World::allocate, World::release, &world};
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  config.allocator = &allocator;
  mp_context_t context = nullptr;
  succeed(mp_context_create(&context, &config));
  world.has_created(context, mp_context_destroy);

  const uint32_t kinds = world.index_below(32);
  const auto make = [&](uint32_t kind, const auto &function) {
    world.begin_call();
    world.uses(context);
    if (kinds & kind) function(world, context);
  };
  make(1, [](World &w, mp_context_t c) { make_list(w, c, MP_FP32, 0); });
  make(2, make_optimizer);
  make(4, [=](World &w, mp_context_t c) { make_graph(w, c, (kinds & 8) == 0); });
  make(16, make_scaler);
  world.let_memory_run_out();
}

}  // namespace fuzz
