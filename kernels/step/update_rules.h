// The optimizers as functions of one element: gradient, master weight and state in, out.  Rules that
// look at the norms of a tensor get them as one factor, `ratio`, made by the functions at the end.
// mpcore.h, section 8, has the formulas and their sources.
//
// Pure: the same code runs on the device, on the host and in the tests.
#pragma once

#include <cmath>

#include "kernels/simt/compiler.h"
#include "mpcore/optimizer.h"

namespace mp::MP_TARGET {

/// What a rule needs besides the element; the same for all elements of a tensor in one step.
struct RuleParams {
  mp_hyper_t hyper;
  uint32_t flags;
  bool first_step;     ///< t == 1: momentum starts as the gradient itself
  float m_correction;  ///< Adam, LAMB: 1 / (1 - beta1^t)
  float v_correction;  ///< Adam, LAMB: 1 / (1 - beta2^t)
  float grad_scale;    ///< unscales and clips, globally and by the norm of the tensor
  float ratio;         ///< of the rules with norms; of the others, 1
};

MP_HD bool is_bias_corrected(mp_optimizer_kind_t kind, uint32_t flags) {
  return (kind == MP_OPT_ADAM || kind == MP_OPT_LAMB) && (flags & MP_OPT_NO_BIAS_CORRECTION) == 0;
}

/// @param t  number of applied steps including this one
MP_HD RuleParams rule_params(mp_optimizer_kind_t kind, uint32_t flags, const mp_hyper_t &hyper,
                             int64_t t) {
  RuleParams params{hyper, flags, t == 1, 1.0f, 1.0f, 1.0f, 1.0f};
  if (is_bias_corrected(kind, flags)) {
    const double steps = static_cast<double>(t);
    params.m_correction =
        static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(hyper.beta1), steps)));
    params.v_correction =
        static_cast<float>(1.0 / (1.0 - pow(static_cast<double>(hyper.beta2), steps)));
  }
  return params;
}

/// g of all the rules below.
/// @param extra  of the list extra_grads, else 0
MP_HD float final_gradient(const RuleParams &p, float gradient, float w, float extra) {
  float g = gradient * p.grad_scale;
  const float most = p.hyper.max_value;
  if (most > 0.0f) g = g > most ? most : g < -most ? -most : g;
  if (p.hyper.l1 != 0.0f) g += w > 0.0f ? p.hyper.l1 : w < 0.0f ? -p.hyper.l1 : 0.0f;
  if (p.hyper.l2 != 0.0f) g += 2.0f * p.hyper.l2 * w;
  return g + extra;
}

/// @param m  unused when momentum is 0
MP_HD void update_sgd(const RuleParams &p, float g, float &w, float &m) {
  const float momentum = p.hyper.beta1;
  const bool decay_last = (p.flags & MP_OPT_DECAY_AFTER_MOMENTUM) != 0;
  if (!decay_last) g += p.hyper.weight_decay * w;
  if (p.flags & (MP_OPT_LARC | MP_OPT_LARS)) g *= p.ratio;
  float step = g;
  if (momentum != 0.0f) {
    m = p.first_step ? g : momentum * m + (1.0f - p.hyper.dampening) * g;
    step = p.flags & MP_OPT_NESTEROV ? g + momentum * m : m;
  }
  if (decay_last) step += p.hyper.weight_decay * w;
  w -= p.hyper.lr * step;
}

/// Advances the moments; returns what Adam multiplies by lr, and LAMB by lr and a ratio.
MP_HD float adam_direction(const RuleParams &p, float g, float w, float &m, float &v) {
  const bool decoupled = (p.flags & MP_OPT_DECOUPLED_DECAY) != 0;
  if (!decoupled) g += p.hyper.weight_decay * w;
  m = p.hyper.beta1 * m + (1.0f - p.hyper.beta1) * g;
  v = p.hyper.beta2 * v + (1.0f - p.hyper.beta2) * (g * g);
  float step = m * p.m_correction / (sqrtf(v * p.v_correction) + p.hyper.eps);
  if (decoupled) step += p.hyper.weight_decay * w;
  return step;
}

MP_HD void update_adam(const RuleParams &p, float g, float &w, float &m, float &v) {
  w -= p.hyper.lr * adam_direction(p, g, w, m, v);
}

MP_HD void update_lamb(const RuleParams &p, float g, float &w, float &m, float &v) {
  w -= p.hyper.lr * p.ratio * adam_direction(p, g, w, m, v);
}

MP_HD void update_novograd(const RuleParams &p, float g, float &w, float &m) {
  const float direction = g * p.ratio + p.hyper.weight_decay * w;
  m = p.hyper.beta1 * m + (1.0f - p.hyper.dampening) * direction;
  w -= p.hyper.lr * m;
}

MP_HD void update_adagrad(const RuleParams &p, float g, float &w, float &v) {
  const bool decoupled = (p.flags & MP_OPT_DECOUPLED_DECAY) != 0;
  if (!decoupled) g += p.hyper.weight_decay * w;
  v += g * g;
  float step = g / (sqrtf(v) + p.hyper.eps);
  if (decoupled) step += p.hyper.weight_decay * w;
  w -= p.hyper.lr * step;
}

/// @param m  unused when momentum is 0
MP_HD void update_rmsprop(const RuleParams &p, float g, float &w, float &m, float &v) {
  const float momentum = p.hyper.beta1;
  g += p.hyper.weight_decay * w;
  v = p.hyper.beta2 * v + (1.0f - p.hyper.beta2) * (g * g);
  float step = g / (sqrtf(v) + p.hyper.eps);
  if (momentum != 0.0f) step = m = momentum * m + step;
  w -= p.hyper.lr * step;
}

// ---------------------------------------------------------------------------- norms of a tensor

/// @param u_norm  of the direction
MP_HD float lamb_ratio(const RuleParams &p, float w_norm, float u_norm) {
  const bool adapts = (p.flags & MP_OPT_NVLAMB) != 0 || p.hyper.weight_decay != 0.0f;
  return adapts && w_norm != 0.0f && u_norm != 0.0f ? w_norm / u_norm : 1.0f;
}

MP_HD float larc_ratio(const RuleParams &p, float w_norm, float g_norm) {
  if (w_norm == 0.0f || g_norm == 0.0f) return 1.0f;
  const float ratio =
      p.hyper.trust * w_norm / (g_norm + p.hyper.weight_decay * w_norm + p.hyper.eps);
  if (p.flags & MP_OPT_LARS) return ratio;
  return ratio >= p.hyper.lr ? 1.0f : ratio / p.hyper.lr;  // also where lr is 0
}

/// @param v  second moment of the whole tensor
MP_HD float novograd_ratio(const RuleParams &p, double g_squares, float &v) {
  const float squares = static_cast<float>(g_squares);
  v = p.first_step ? squares : p.hyper.beta2 * v + (1.0f - p.hyper.beta2) * squares;
  return 1.0f / (sqrtf(v) + p.hyper.eps);
}

}  // namespace mp::MP_TARGET
