// What the kernels of one optimizer step share: whether it is skipped, and what a run of 8 elements
// of a tensor needs to be updated.
#pragma once

#include <cmath>

#include "kernels/step/model_copy.h"
#include "kernels/step/schedule.h"
#include "kernels/step/update_rules.h"
#include "kernels/tensors/chunks.h"
#include "kernels/tensors/clip.h"

namespace mp::MP_TARGET {

struct StepArgs {
  OptimizerArgs optimizer;
  UpdateArgs update;
};

/// Read on the device, by every kernel of the step.  A scale that has sunk to 0 has no 1/S to unscale
/// with.  Where pass 1 has left amax, the flag says the same.
MP_DEVICE bool is_skipped(const StepArgs &args) {
  const UpdateArgs &u = args.update;
  const auto is_finite = [](const float *x) { return x == nullptr || std::isfinite(*x); };
  const bool found_inf = u.found_inf != nullptr && *u.found_inf != 0.0f;
  return found_inf || !is_finite(u.grad_scale) || !is_finite(u.scaler_amax);
}

/// The hyperparameters as they apply to one tensor; `t` includes this step.
MP_DEVICE mp_hyper_t tensor_hyper(const OptimizerArgs &o, uint32_t tensor, int64_t t) {
  mp_hyper_t hyper = o.groups[o.tensor_group[tensor]];
  hyper.lr = scheduled_lr(hyper, t);
  if (o.lr_multipliers != nullptr) hyper.lr *= o.lr_multipliers[tensor];
  if (o.decay_multipliers != nullptr) {
    const float multiplier = o.decay_multipliers[tensor];
    hyper.weight_decay *= multiplier;
    hyper.l1 *= multiplier;
    hyper.l2 *= multiplier;
  }
  return hyper;
}

/// Without the ratio, which the pass over the norms is still to find.
template <mp_optimizer_kind_t kind>
MP_DEVICE RuleParams tensor_params(const StepArgs &args, uint32_t tensor) {
  const OptimizerArgs &o = args.optimizer;
  const UpdateArgs &u = args.update;
  const int64_t t = *o.t + 1;
  RuleParams params = rule_params<kind>(o.flags, tensor_hyper(o, tensor, t), t);
  if (u.grad_scale != nullptr) params.grad_scale = *u.grad_scale;
  if (u.tensor_norms != nullptr && params.hyper.max_tensor_norm > 0.0f) {
    params.grad_scale =
        clipped_grad_scale(params.grad_scale, u.tensor_norms[tensor], params.hyper.max_tensor_norm);
  }
  return params;
}

/// What one run of 8 elements needs to find its data.
struct Tensors {
  const void *grad;
  mp_dtype_t grad_dtype;
  const float *extra;  ///< NULL: none
  float *master;
  float *m, *v;  ///< NULL where the rule has none
};

MP_DEVICE Tensors tensors_of(const OptimizerArgs &o, uint32_t t) {
  return {o.grads.data[t],
          dtype_of(o.grads, t),
          o.extra.data != nullptr ? static_cast<const float *>(o.extra.data[t]) : nullptr,
          static_cast<float *>(o.master.data[t]),
          o.m.data != nullptr ? static_cast<float *>(o.m.data[t]) : nullptr,
          o.v.data != nullptr ? static_cast<float *>(o.v.data[t]) : nullptr};
}

/// Where the weights of a tensor are copied in step t; model is NULL where they are not.
MP_DEVICE CopyPlace copy_place_of(const OptimizerArgs &o, uint32_t tensor, int64_t t) {
  if (o.model.data == nullptr) return {nullptr, MP_FP16, tensor, t};
  return {o.model.data[tensor], dtype_of(o.model, tensor), tensor, t};
}

/// 8 elements in registers; g as the rules want it; m and v are 0 where the rule has none.
struct Elements {
  float g[kVec], w[kVec], m[kVec] = {}, v[kVec] = {};
};

template <mp_optimizer_kind_t kind>
MP_DEVICE void load_elements(Elements &e, const Tensors &tensors, const RuleParams &params,
                             int64_t at, int valid) {
  float extra[kVec] = {};
  if (tensors.extra != nullptr) load_run(extra, tensors.extra + at, valid);
  load_run(e.g, tensors.grad_dtype, tensors.grad, at, valid);
  load_run(e.w, tensors.master + at, valid);
  if (tensors.m != nullptr) load_run(e.m, tensors.m + at, valid);
  if constexpr (Rule<kind>::kHasV) load_run(e.v, tensors.v + at, valid);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) e.g[i] = final_gradient(params, e.g[i], e.w[i], extra[i]);
}

/// Measures every tensor and leaves OptimizerArgs::ratios for the update (tensor_ratios.cu).
void tensor_ratios(const Device &device, const StepArgs &args, mp_stream_t stream);

}  // namespace mp::MP_TARGET
