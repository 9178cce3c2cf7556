// The optimizers as functions of one element: gradient, master weight and state in, out.
// mpcore.h, section 8, has the formulas and their sources.
//
// Pure: the same code runs on the device, on the host and in the tests.
#pragma once

#include <cmath>

#include "kernels/kernels.h"
#include "kernels/simt/target.h"

namespace mp::MP_TARGET {

/// What a rule needs besides the element; the same for all elements of a group in one step.
struct RuleParams {
  mp_hyper_t hyper;
  uint32_t flags;
  bool first_step;     ///< t == 1: momentum starts as the gradient itself
  float m_correction;  ///< Adam: 1 / (1 - beta1^t)
  float v_correction;  ///< Adam: 1 / (1 - beta2^t)
};

/// @param t  number of applied steps including this one
MP_HD RuleParams rule_params(mp_optimizer_kind_t kind, uint32_t flags, const mp_hyper_t &hyper,
                             int64_t t) {
  RuleParams params{hyper, flags, t == 1, 1.0f, 1.0f};
  if (kind == MP_OPT_ADAM && (flags & MP_OPT_NO_BIAS_CORRECTION) == 0) {
    const double steps = static_cast<double>(t);
    params.m_correction =
        static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(hyper.beta1), steps)));
    params.v_correction =
        static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(hyper.beta2), steps)));
  }
  return params;
}

/// @param m  unused when momentum is 0
MP_HD void update_sgd(const RuleParams &p, float g, float &w, float &m) {
  const float momentum = p.hyper.beta1;
  g += p.hyper.weight_decay * w;
  if (momentum == 0.0f) {
    w -= p.hyper.lr * g;
    return;
  }
  m = p.first_step ? g : momentum * m + (1.0f - p.hyper.dampening) * g;
  w -= p.hyper.lr * (p.flags & MP_OPT_NESTEROV ? g + momentum * m : m);
}

MP_HD void update_adam(const RuleParams &p, float g, float &w, float &m, float &v) {
  const bool decoupled = (p.flags & MP_OPT_DECOUPLED_DECAY) != 0;
  if (!decoupled) g += p.hyper.weight_decay * w;
  m = p.hyper.beta1 * m + (1.0f - p.hyper.beta1) * g;
  v = p.hyper.beta2 * v + (1.0f - p.hyper.beta2) * (g * g);
  float step = m * p.m_correction / (sqrtf(v * p.v_correction) + p.hyper.eps);
  if (decoupled) step += p.hyper.weight_decay * w;
  w -= p.hyper.lr * step;
}

}  // namespace mp::MP_TARGET
