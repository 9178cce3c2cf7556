// Shared code of the kernels of an optimizer step: the outcome, and access to a tensor and its
// state in vectors of 8 elements.
#pragma once

#include <cmath>

#include "kernels/step/loss_scale.h"
#include "kernels/step/model_copy.h"
#include "kernels/step/update_rules.h"
#include "kernels/tensors/norm.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

struct StepArgs {
  OptimizerArgs optimizer;
  UpdateArgs update;
};

/// True if the gradient factor and the square of the largest final gradient are finite.
MP_DEVICE bool is_in_range(const UpdateArgs &u) {
  const float factor = u.grad_scale != nullptr ? *u.grad_scale : 1.0f;
  const float amax = u.grad_amax != nullptr ? *u.grad_amax : 0.0f;
  return fabsf(amax * factor) < 0x1p63f;  // false for 0 x infinity too
}

/// Returns the first outcome that applies, equal in all kernels of the step.
MP_DEVICE mp_step_outcome_t outcome_of(const StepArgs &args) {
  const UpdateArgs &u = args.update;
  const auto is_finite = [](const float *x) { return x == nullptr || std::isfinite(*x); };
  const mp_step_outcome_t noted =
      u.scaler != nullptr ? noted_outcome(*u.scaler) : MP_STEP_OUTCOME_TAKEN;
  const bool found_inf = u.found_inf != nullptr && *u.found_inf != 0.0f;
  if (found_inf || noted == MP_STEP_OUTCOME_OVERFLOW || !is_finite(u.scaler_amax) ||
      !is_finite(u.grad_amax))
    return MP_STEP_OUTCOME_OVERFLOW;
  const bool no_scale = u.rank_code != nullptr && *u.rank_code == kRankNoScale;
  if (no_scale || noted == MP_STEP_OUTCOME_NO_SCALE) return MP_STEP_OUTCOME_NO_SCALE;
  return noted == MP_STEP_OUTCOME_OUT_OF_RANGE || !is_in_range(u) ? MP_STEP_OUTCOME_OUT_OF_RANGE
                                                                  : MP_STEP_OUTCOME_TAKEN;
}

/// Returns the hyperparameters of one tensor; lr is that of the group.
MP_DEVICE mp_param_group_t tensor_hyper(const OptimizerArgs &o, uint32_t tensor) {
  mp_param_group_t hyper = o.groups[o.tensor_group[tensor]].hyper;
  if (o.decay_multipliers != nullptr) {
    const float multiplier = o.decay_multipliers[tensor];
    hyper.weight_decay *= multiplier;
    hyper.l1 *= multiplier;
    hyper.l2 *= multiplier;
  }
  return hyper;
}

/// Returns the factors of step t: as stored by the previous step, or the same values computed here.
template <mp_optimizer_kind_t kind>
MP_DEVICE StepFactors factors_of(const OptimizerArgs &o, const ParamGroup &group, int64_t t) {
  return group.factors.t == t ? group.factors : step_factors<kind>(o.flags, group.hyper, t);
}

/// Returns the parameters of one tensor, with ratio = 1: tensor_ratios.cu computes it later.
template <mp_optimizer_kind_t kind>
MP_DEVICE RuleParams tensor_params(const StepArgs &args, uint32_t tensor) {
  const OptimizerArgs &o = args.optimizer;
  const UpdateArgs &u = args.update;
  const int64_t t = *o.t + 1;
  const StepFactors factors = factors_of<kind>(o, o.groups[o.tensor_group[tensor]], t);
  RuleParams params{.hyper = tensor_hyper(o, tensor),
                    .flags = o.flags,
                    .first_step = t == 1,
                    .m_correction = factors.m_correction,
                    .v_correction = factors.v_correction,
                    .grad_scale = 1.0f,
                    .ratio = 1.0f};
  params.hyper.lr = factors.lr;
  if (o.lr_multipliers != nullptr) params.hyper.lr *= o.lr_multipliers[tensor];
  if (u.grad_scale != nullptr) params.grad_scale = *u.grad_scale;
  if (u.tensor_norms != nullptr && params.hyper.max_tensor_norm > 0.0f) {
    params.grad_scale =
        clipped_grad_scale(params.grad_scale, u.tensor_norms[tensor], params.hyper.max_tensor_norm);
  }
  return params;
}

/// Addresses of a tensor and its state.
struct Tensors {
  const void *grad;
  mp_dtype_t grad_dtype;
  const float *extra;  ///< NULL: none
  float *master;
  float *m, *v;  ///< NULL if the rule has none

  MP_DEVICE bool are_aligned() const {
    return is_aligned_16(grad) && is_aligned_16(extra) && is_aligned_16(master) &&
           is_aligned_16(m) && is_aligned_16(v);
  }
};

MP_DEVICE Tensors tensors_of(const OptimizerArgs &o, uint32_t t) {
  return {data_of(o.grads, t),
          dtype_of(o.grads, t),
          optional_data_of<const float>(o.extra, t),
          data_of<float>(o.master, t),
          optional_data_of<float>(o.m, t),
          optional_data_of<float>(o.v, t)};
}

/// Returns the destination of a tensor's copy in step t; its model is NULL if there is none.
MP_DEVICE CopyTarget copy_place_of(const OptimizerArgs &o, uint32_t tensor, int64_t t) {
  const mp_dtype_t dtype = o.model.data != nullptr ? dtype_of(o.model, tensor) : MP_FP16;
  return {optional_data_of(o.model, tensor), dtype, tensor, t};
}

/// Vector of elements in registers.  g is the final gradient; m and v are 0 if the rule has none.
struct Elements {
  float g[1][kVec], w[1][kVec], m[1][kVec] = {}, v[1][kVec] = {};
};

/// Loads a vector.  Gradients come last: widening a 16-bit value waits for it, and all other loads
/// are in flight by then.
template <mp_optimizer_kind_t kind>
MP_DEVICE void load_elements(Elements &e, const Tensors &tensors, const RuleParams &params,
                             const AnyVector &run) {
  float extra[1][kVec] = {};
  run.visit([&](auto runs) {
    runs.load(e.w, tensors.master);
    if (tensors.m != nullptr) runs.load(e.m, tensors.m);
    if constexpr (Rule<kind>::kHasV) runs.load(e.v, tensors.v);
    if (tensors.extra != nullptr) runs.load(extra, tensors.extra);
    load_vectors(e.g, runs, tensors.grad_dtype, tensors.grad);
  });
  MP_UNROLL
  for (int i = 0; i < kVec; i++)
    e.g[0][i] = final_gradient(params, e.g[0][i], e.w[0][i], extra[0][i]);
}

/// Computes OptimizerArgs::ratios for the update (tensor_ratios.cu).
void tensor_ratios(const Device &device, const StepArgs &args, mp_stream_t stream);

}  // namespace mp::MP_TARGET
