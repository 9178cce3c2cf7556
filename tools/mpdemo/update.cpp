// Connects the network's lists of parameters to an mpcore optimizer.
#include "update.h"

#include <vector>

namespace mpdemo {
namespace {

constexpr float kMomentum = 0.9f;

/// Creates an fp32 tensor per parameter, stored in `memory`.
TensorList make_state(mp_context_t context, const std::vector<int64_t> &numel,
                      std::vector<Buffer> &memory) {
  std::vector<void *> data;
  for (const int64_t count : numel)
    data.push_back(memory.emplace_back(make_buffer(context, count, MP_FP32)).data());
  const std::vector<mp_dtype_t> dtypes(numel.size(), MP_FP32);
  mp_tensor_list_desc_t desc;
  MP_INIT_STRUCT(&desc);
  desc.count = static_cast<uint32_t>(numel.size());
  desc.data = data.data();
  desc.numel = numel.data();
  desc.dtypes = dtypes.data();
  mp_tensor_list_t list = nullptr;
  check(mp_tensor_list_create(&list, context, &desc));
  return TensorList(list);
}

}  // namespace

Update::Update(mp_context_t context, const Network &network, mp_optimizer_kind_t kind,
               float loss_weight, const std::optional<mp_scaler_config_t> &scaler)
    : kind_(kind), loss_weight_(loss_weight) {
  const std::vector<int64_t> numel = network.parameter_sizes();
  m_ = make_state(context, numel, state_);
  if (kind == MP_OPT_ADAM) v_ = make_state(context, numel, state_);

  const mp_param_group_t group = param_group(0.0f);  // step() sets the learning rate
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(kind);
  desc.groups = &group;
  const mp::graph_lists lists = network.lists();
  desc.grads = lists.grads;
  desc.master = lists.master;
  desc.model = lists.model;
  desc.m = m_.get();
  desc.v = v_.get();
  mp_optimizer_t optimizer = nullptr;
  check(mp_optimizer_create(&optimizer, context, &desc));
  optimizer_.reset(optimizer);

  if (!scaler) return;
  mp_scaler_t handle = nullptr;
  check(mp_scaler_create(&handle, context, &*scaler));
  scaler_.reset(handle);
}

/// loss_weight is a power of two and cancels exactly: a step of SGD is linear in the gradient, and
/// a step of Adam does not change if gradients and eps are scaled together.
mp_param_group_t Update::param_group(float lr) const {
  if (kind_ == MP_OPT_ADAM) {
    mp_param_group_t h = mp_param_group_default(MP_OPT_ADAM, lr);
    h.eps *= loss_weight_;
    return h;
  }
  mp_param_group_t h = mp_param_group_default(MP_OPT_SGD, lr / loss_weight_);
  h.beta1 = kMomentum;
  return h;
}

void Update::step(float lr, const mp_comm_t &comm) {
  const mp_param_group_t group = param_group(lr);
  check(mp_optimizer_set_group(optimizer_.get(), 0, &group, kStream));
  // The gradients are equal on all ranks, but an activation gradient may overflow on one rank only.
  mp_step_options_t options = mp_step_options_default();
  options.comm = &comm;
  check(mp_scale_step(optimizer_.get(), scaler_.get(), &options, kStream));
}

void Update::add_memory(Memory &memory) const {
  for (const Buffer &state : state_) memory.optimizer_state += state.bytes();
}

std::optional<mp_scaler_state_t> Update::scaler_state_sync() const {
  if (!scaler_) return std::nullopt;
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  check(mp_scaler_get_state_sync(scaler_.get(), &state, kStream));
  return state;
}

}  // namespace mpdemo
