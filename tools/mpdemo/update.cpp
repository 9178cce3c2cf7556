// Connects the network's lists of parameters to an mpcore optimizer, which allocates the moments.
#include "update.h"

#include <algorithm>
#include <vector>

namespace mpdemo {

Update::Update(mp_context_t context, const Network &network, const Recipe &recipe,
               float loss_weight, int64_t num_steps,
               const std::optional<mp_scaler_config_t> &scaler)
    : recipe_(recipe), loss_weight_(loss_weight), num_steps_(num_steps) {
  std::vector<uint32_t> tensor_group;  // only matrices decay
  for (const Variable &variable : network.variables()) {
    if (!variable.is_trained) continue;
    tensor_group.push_back(variable.rank > 1 ? 0 : 1);
    moment_bytes_ += (recipe.kind == MP_OPT_ADAM ? 2 : 1) * 4 * variable.numel;
  }
  const mp_param_group_t groups[] = {param_group(recipe.peak_lr, recipe.matrix_decay),
                                     param_group(recipe.peak_lr, 0)};
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(recipe.kind);
  if (recipe.matrix_decay > 0) desc.flags |= MP_OPT_FLAG_DECOUPLED_DECAY;
  desc.groups = groups;
  desc.num_groups = 2;
  desc.tensor_group = tensor_group.data();
  const mp::graph_lists lists = network.lists();
  desc.grads = lists.grads;
  desc.master = lists.master;
  desc.model = lists.model;
  optimizer_ = make_optimizer(context, desc);
  if (scaler) scaler_ = make_scaler(context, *scaler);
}

/// loss_weight is a power of two and cancels exactly: a step of SGD is linear in the gradient, and
/// a step of Adam does not change if gradients and eps are scaled together.  Clipping adds 1e-6 to
/// the norm, which does not cancel.
mp_param_group_t Update::param_group(float lr, float weight_decay) const {
  const bool is_adam = recipe_.kind == MP_OPT_ADAM;
  mp_param_group_t h = mp_param_group_default(recipe_.kind, is_adam ? lr : lr / loss_weight_);
  if (is_adam) {
    h.beta2 = recipe_.beta2;
    h.eps *= loss_weight_;
  }
  h.weight_decay = weight_decay;
  if (recipe_.warmup_steps > 0) {
    h.lr_schedule = MP_LR_COSINE;
    h.warmup_steps = recipe_.warmup_steps;
    h.decay_steps = static_cast<int32_t>(std::max<int64_t>(num_steps_ - h.warmup_steps, 1));
    h.lr_end = 0.1f * h.lr;
  }
  return h;
}

void Update::step(int64_t steps, const mp_comm_t &comm) {
  // MP_LR_POLYNOMIAL would compute these rates on the device, with other last bits than those of
  // the published results.
  if (recipe_.warmup_steps == 0) {
    const float remaining = 1.0f - static_cast<float>(steps) / static_cast<float>(num_steps_);
    const mp_param_group_t group = param_group(recipe_.peak_lr * remaining, 0);
    for (uint32_t i = 0; i < 2; ++i)
      check(mp_optimizer_set_group(optimizer_.get(), i, &group, kStream));
  }
  // The gradients are equal on all ranks, but an activation gradient may overflow on one rank only.
  mp_step_options_t options = mp_step_options_default();
  options.comm = &comm;
  options.max_grad_norm = recipe_.max_grad_norm * loss_weight_;
  check(mp_scale_step(optimizer_.get(), scaler_.get(), &options, kStream));
}

std::optional<mp_scaler_state_t> Update::scaler_state_sync() const {
  if (!scaler_) return std::nullopt;
  mp_scaler_state_t state;
  MP_INIT_STRUCT(&state);
  check(mp_scaler_get_state_sync(scaler_.get(), &state, kStream));
  return state;
}

}  // namespace mpdemo
