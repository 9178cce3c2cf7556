#include "tests/fuzz/usual_objects.h"

#include "support/device.h"
#include "tests/support/calls/graph_builder.h"

namespace fuzz {

namespace {

mp_tensor_list_t make_list(World &world, mp_context_t context, mp_dtype_t dtype, uint32_t place) {
  mptools::TensorList list = mptools::make_list(
      context, dtype, {World::good_device(place), World::good_device(place + 1)}, {24, 3});
  world.has_created(list.get(), mp_tensor_list_destroy);
  return list.release();
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
  world.has_created(mptools::make_optimizer(context, desc).release(), mp_optimizer_destroy);
}

void make_scaler(World &world, mp_context_t context) {
  const mp_scaler_config_t backoff = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  world.has_created(mptools::make_scaler(context, backoff).release(), mp_scaler_destroy);
}

/// A perceptron with one layer and its loss; compiled if `is_compiled`.
void make_graph(World &world, mp_context_t context, bool is_compiled) {
  mptest::Caller caller(context);
  mptest::GraphBuilder graph(caller);
  world.has_created(graph.graph(), mp_graph_destroy);
  const int32_t x = graph.input("x", MP_FP32, {4, 8});
  const int32_t labels = graph.input("labels", MP_DTYPE_NONE, {4});
  const int32_t w = graph.parameter("w", {8, 3}), b = graph.parameter("b", {3});
  const int32_t logits = graph.node("Linear", "fc", {x, w, b});
  graph.loss(graph.node("SoftmaxXent", "loss", {logits, labels}));
  mp_autocast_t policy = nullptr;
  mptools::check(mp_autocast_create(&policy, nullptr));
  world.has_created(policy, mp_autocast_destroy);
  if (!is_compiled) return;
  graph.compile(policy);
  graph.bind(x, World::good_device(0));
  graph.bind(labels, World::good_device(0));
}

}  // namespace

void make_usual_objects(World &world) {
  const mp_allocator_t allocator = {sizeof allocator, 0, World::allocate, World::release, &world};
  mp_context_config_t config = mp_context_config_default();
  config.device = MP_DEVICE_HOST;
  config.allocator = &allocator;
  mp_context_t context = nullptr;
  mptools::check(mp_context_create(&context, &config));
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
