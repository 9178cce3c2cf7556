// Ties the network's parameters to an mpcore optimizer: one tensor list per role.
#include "update.h"

#include <algorithm>
#include <vector>

namespace mpdemo {
namespace {

constexpr float kMomentum = 0.9f;

/// One role (gradients, masters...) of all parameters, in parameter order.
struct Role {
  std::vector<void *> data;
  std::vector<mp_dtype_t> dtypes;

  void add(void *tensor, mp_dtype_t dtype) {
    data.push_back(tensor);
    dtypes.push_back(dtype);
  }
};

TensorList make_list(mp_context_t context, const Role &role, const std::vector<int64_t> &numel) {
  mp_tensor_list_desc_t desc;
  MP_INIT_STRUCT(&desc);
  desc.count = static_cast<uint32_t>(numel.size());
  desc.data = role.data.data();
  desc.numel = numel.data();
  desc.dtypes = role.dtypes.data();
  mp_tensor_list_t list = nullptr;
  check(mp_tensor_list_create(&list, context, &desc));
  return TensorList(list);
}

}  // namespace

Update::Update(mp_context_t context, const Network &network, mp_optimizer_kind_t kind,
               float loss_weight, const std::optional<mp_scaler_config_t> &scaler)
    : kind_(kind), loss_weight_(loss_weight) {
  const bool is_mixed = network.dtype() != MP_FP32;
  std::vector<int64_t> numel;
  Role grads, master, model, m, v;
  for (const Parameter &p : network.parameters()) {
    const auto add_state = [&](Role &role) {
      state_.push_back(make_buffer(context, p.numel, MP_FP32));
      role.add(state_.back().data(), MP_FP32);
    };
    numel.push_back(p.numel);
    grads.add(p.grad, p.grad_dtype);
    master.add(p.master, MP_FP32);
    model.add(p.model, network.dtype());  // NULL where it is read in fp32
    add_state(m);
    if (kind == MP_OPT_ADAM) add_state(v);
  }
  grads_ = make_list(context, grads, numel);
  master_ = make_list(context, master, numel);
  if (is_mixed) model_ = make_list(context, model, numel);
  m_ = make_list(context, m, numel);
  if (kind == MP_OPT_ADAM) v_ = make_list(context, v, numel);

  const mp_hyper_t group = hyper(0.0f);  // step() brings the learning rate
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(kind);
  desc.groups = &group;
  desc.grads = grads_.get();
  desc.master = master_.get();
  desc.model = model_.get();
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

/// loss_weight is a power of two, so that it cancels exactly: a step of SGD is linear in the gradient, one of
/// Adam the same for gradients and eps that are all larger or smaller.
mp_hyper_t Update::hyper(float lr) const {
  if (kind_ == MP_OPT_ADAM) {
    mp_hyper_t h = mp_hyper_default(MP_OPT_ADAM, lr);
    h.eps *= loss_weight_;
    return h;
  }
  mp_hyper_t h = mp_hyper_default(MP_OPT_SGD, lr / loss_weight_);
  h.beta1 = kMomentum;
  return h;
}

void Update::all_reduce(const mp_comm_t &comm) {
  check(mp_grad_all_reduce(grads_.get(), &comm, 1.0f, 1.0f, kStream));
}

void Update::step(float lr, const mp_comm_t &comm) {
  const mp_hyper_t group = hyper(lr);
  check(mp_optimizer_set_hyper(optimizer_.get(), 0, &group, kStream));
  // The gradients are the same on all ranks, but an activation gradient may overflow on one alone.
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
