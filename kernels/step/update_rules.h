// Optimizer rules as functions of one element: gradient, master weight and state in, out.  Rules
// with tensor norms receive them as one factor, computed by their function `ratio`.
// mpcore/optimizer.h documents the formulas and their sources, also those of the learning rate.
//
// Pure: the same code runs on the device, on the host and in the tests.
#pragma once

#include <cmath>
#include <type_traits>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"
#include "kernels/simt/reproducible_math.h"
#include "kernels/step/step_args.h"
#include "mpcore/optimizer.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- learning rate

/// Returns the learning rate after the warm-up.
/// @param progress  (t - 1 - warmup_steps) / decay_steps, not limited
MP_DEVICE double decayed_lr(const mp_param_group_t &hyper, double progress) {
  using reproducible::product;
  const double lr = hyper.lr, end = hyper.lr_end;
  const double left = progress < 1.0 ? 1.0 - progress : 0.0;
  if (hyper.lr_schedule == MP_LR_POLYNOMIAL)
    return end + product(lr - end, reproducible::pow(left, double{hyper.decay_power}));
  if (hyper.lr_schedule == MP_LR_COSINE)
    return end + product(lr - end, (1.0 - reproducible::cospi(left)) / 2.0);
  const double decayed = lr * reproducible::pow(double{hyper.decay_rate}, progress);
  return decayed > end ? decayed : end;
}

/// @param t  number of applied steps including this one
MP_DEVICE float scheduled_lr(const mp_param_group_t &hyper, int64_t t) {
  const double lr = hyper.lr, warmup = hyper.warmup_steps, steps = static_cast<double>(t);
  if (steps <= warmup) return static_cast<float>(lr * steps / warmup);
  if (hyper.lr_schedule == MP_LR_CONSTANT) return hyper.lr;
  if (hyper.lr_schedule == MP_LR_INVERSE_SQRT)
    return static_cast<float>(lr * sqrt((warmup > 1.0 ? warmup : 1.0) / steps));
  return static_cast<float>(decayed_lr(hyper, (steps - 1.0 - warmup) / hyper.decay_steps));
}

// ---------------------------------------------------------------------------- rules

/// Parameters of a rule, equal for all elements of a tensor in one step.
struct RuleParams {
  mp_param_group_t hyper;  ///< values for this tensor and step
  uint32_t flags;
  bool first_step;  ///< t == 1: momentum starts as the gradient itself
  float m_correction, v_correction;
  float grad_scale;  ///< unscales and clips, globally and by the norm of the tensor
  float ratio;       ///< factor of the rules with tensor norms; else 1
};

/// Defaults of a rule.  Rule<kind> is specialized for every kind: it defines `update` and overrides
/// these constants.  A rule with tensor norms also defines kRatiosName, `measured` and `ratio`
/// (tensor_ratios.cu).
struct RuleDefaults {
  static constexpr bool kHasV = true;  ///< a second moment for every element
  static constexpr bool kIsBiasCorrected = false;
};
template <mp_optimizer_kind_t kind>
struct Rule;

/// Computes the factors of step t.  Out of line not only for its length: stored factors and factors
/// that a step computes itself come from the same instructions, so they have the same bits.
/// @param t  number of applied steps including this one
template <mp_optimizer_kind_t kind>
MP_OUT_OF_LINE StepFactors step_factors(uint32_t flags, const mp_param_group_t &hyper, int64_t t) {
  StepFactors factors{t, scheduled_lr(hyper, t), 1.0f, 1.0f};
  if (Rule<kind>::kIsBiasCorrected && (flags & MP_OPT_FLAG_NO_BIAS_CORRECTION) == 0) {
    const auto correction = [t](float beta) {
      const double decayed = reproducible::pow(double{beta}, static_cast<double>(t));
      return static_cast<float>(1.0 / (1.0 - decayed));
    };
    factors.m_correction = correction(hyper.beta1);
    factors.v_correction = correction(hyper.beta2);
  }
  return factors;
}

/// Returns g of all the rules below.
/// @param extra  element of the list extra_grads, else 0
MP_HD float final_gradient(const RuleParams &p, float gradient, float w, float extra) {
  float g = gradient * p.grad_scale;
  const float most = p.hyper.clip_value;
  if (most > 0.0f) g = g > most ? most : g < -most ? -most : g;
  if (p.hyper.l1 != 0.0f) g += w > 0.0f ? p.hyper.l1 : w < 0.0f ? -p.hyper.l1 : 0.0f;
  if (p.hyper.l2 != 0.0f) g += 2.0f * p.hyper.l2 * w;
  return g + extra;
}

/// Sums of squares of a tensor's weights and of the values that its rule measures.
struct TensorSquares {
  double w, u;
};
MP_HD float norm_of(double squares) {
  return static_cast<float>(sqrt(squares));
}

/// a / b, computed in fp64 if a or b exceeds fp32.
template <class Wide>
MP_HD float finite_quotient(float a, float b, const Wide &wide) {
  return std::isfinite(a) && std::isfinite(b) ? a / b : static_cast<float>(wide());
}

/// SGD, LARC and LARS.  m is unused if momentum is 0.
template <>
struct Rule<MP_OPT_SGD> : RuleDefaults {
  static constexpr const char *kUpdateName = "update_sgd", *kRatiosName = "larc_ratios";
  static constexpr bool kHasV = false;

  static MP_HD void update(const RuleParams &p, float g, float &w, float &m, float &) {
    const float momentum = p.hyper.beta1;
    const bool decay_last = (p.flags & MP_OPT_FLAG_DECAY_AFTER_MOMENTUM) != 0;
    if (!decay_last) g += p.hyper.weight_decay * w;
    if (p.flags & (MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS)) g *= p.ratio;
    float step = g;
    if (momentum != 0.0f) {
      m = p.first_step ? g : momentum * m + (1.0f - p.hyper.dampening) * g;
      step = p.flags & MP_OPT_FLAG_NESTEROV ? g + momentum * m : m;
    }
    if (decay_last) step += p.hyper.weight_decay * w;
    w -= p.hyper.lr * step;
  }

  static MP_HD float measured(const RuleParams &, float g, float, float &, float &) { return g; }
  static MP_HD float ratio(const RuleParams &p, const TensorSquares &squares, float *) {
    const float w_norm = norm_of(squares.w), g_norm = norm_of(squares.u);
    if (w_norm == 0.0f || g_norm == 0.0f) return 1.0f;
    const float ratio = finite_quotient(
        p.hyper.trust_coefficient * w_norm, g_norm + p.hyper.weight_decay * w_norm + p.hyper.eps,
        [&] {
          const double w = sqrt(squares.w), trust = p.hyper.trust_coefficient,
                       decay = p.hyper.weight_decay;
          return trust * w / (sqrt(squares.u) + decay * w + static_cast<double>(p.hyper.eps));
        });
    if (p.flags & MP_OPT_FLAG_LARS) return ratio;
    return ratio >= p.hyper.lr ? 1.0f : ratio / p.hyper.lr;  // also if lr is 0
  }
};

/// Advances the moments.  Returns the direction: Adam multiplies it by lr, LAMB by lr and a ratio.
MP_HD float adam_direction(const RuleParams &p, float g, float w, float &m, float &v) {
  const bool decoupled = (p.flags & MP_OPT_FLAG_DECOUPLED_DECAY) != 0;
  if (!decoupled) g += p.hyper.weight_decay * w;
  m = p.hyper.beta1 * m + (1.0f - p.hyper.beta1) * g;
  v = p.hyper.beta2 * v + (1.0f - p.hyper.beta2) * (g * g);
  float step = m * p.m_correction / (sqrtf(v * p.v_correction) + p.hyper.eps);
  if (decoupled) step += p.hyper.weight_decay * w;
  return step;
}

template <>
struct Rule<MP_OPT_ADAM> : RuleDefaults {
  static constexpr const char *kUpdateName = "update_adam";
  static constexpr bool kIsBiasCorrected = true;

  /// Used by LAMB too; Adam's ratio is 1.
  static MP_HD void update(const RuleParams &p, float g, float &w, float &m, float &v) {
    w -= p.hyper.lr * p.ratio * adam_direction(p, g, w, m, v);
  }
};

template <>
struct Rule<MP_OPT_LAMB> : Rule<MP_OPT_ADAM> {
  static constexpr const char *kUpdateName = "update_lamb", *kRatiosName = "lamb_ratios";

  static MP_HD float measured(const RuleParams &p, float g, float w, float &m, float &v) {
    return adam_direction(p, g, w, m, v);
  }
  static MP_HD float ratio(const RuleParams &p, const TensorSquares &squares, float *) {
    const float w_norm = norm_of(squares.w), u_norm = norm_of(squares.u);
    const bool adapts = (p.flags & MP_OPT_FLAG_NVLAMB) != 0 || p.hyper.weight_decay != 0.0f;
    if (!adapts || w_norm == 0.0f || u_norm == 0.0f) return 1.0f;
    return finite_quotient(w_norm, u_norm, [&] { return sqrt(squares.w) / sqrt(squares.u); });
  }
};

/// NovoGrad.  The second moment is one number per tensor, which `ratio` advances.
template <>
struct Rule<MP_OPT_NOVOGRAD> : RuleDefaults {
  static constexpr const char *kUpdateName = "update_novograd", *kRatiosName = "novograd_ratios";
  static constexpr bool kHasV = false;

  static MP_HD void update(const RuleParams &p, float g, float &w, float &m, float &) {
    const float direction = g * p.ratio + p.hyper.weight_decay * w;
    m = p.hyper.beta1 * m + (1.0f - p.hyper.dampening) * direction;
    w -= p.hyper.lr * m;
  }

  static MP_HD float measured(const RuleParams &, float g, float, float &, float &) { return g; }
  static MP_HD float ratio(const RuleParams &p, const TensorSquares &squares, float *v) {
    const float g_squares = static_cast<float>(squares.u);
    const float next =
        p.first_step ? g_squares : p.hyper.beta2 * *v + (1.0f - p.hyper.beta2) * g_squares;
    if (!std::isfinite(next)) return NAN;  // all elements of the tensor keep their old values
    *v = next;
    return 1.0f / (sqrtf(next) + p.hyper.eps);
  }
};

template <>
struct Rule<MP_OPT_ADAGRAD> : RuleDefaults {
  static constexpr const char *kUpdateName = "update_adagrad";

  static MP_HD void update(const RuleParams &p, float g, float &w, float &, float &v) {
    const bool decoupled = (p.flags & MP_OPT_FLAG_DECOUPLED_DECAY) != 0;
    if (!decoupled) g += p.hyper.weight_decay * w;
    v += g * g;
    float step = g / (sqrtf(v) + p.hyper.eps);
    if (decoupled) step += p.hyper.weight_decay * w;
    w -= p.hyper.lr * step;
  }
};

/// m is unused if momentum is 0.
template <>
struct Rule<MP_OPT_RMSPROP> : RuleDefaults {
  static constexpr const char *kUpdateName = "update_rmsprop";

  static MP_HD void update(const RuleParams &p, float g, float &w, float &m, float &v) {
    const float momentum = p.hyper.beta1;
    g += p.hyper.weight_decay * w;
    v = p.hyper.beta2 * v + (1.0f - p.hyper.beta2) * (g * g);
    float step = g / (sqrtf(v) + p.hyper.eps);
    if (momentum != 0.0f) step = m = momentum * m + step;
    w -= p.hyper.lr * step;
  }
};

/// Returns the kind whose update kernel is used: except for the ratio, LAMB is Adam.
constexpr mp_optimizer_kind_t updated_as(mp_optimizer_kind_t kind) {
  return kind == MP_OPT_LAMB ? MP_OPT_ADAM : kind;
}

/// Calls f with `kind` as an integral_constant, for the kinds that kernels are compiled for.
template <class F>
void with_kind(mp_optimizer_kind_t kind, const F &f) {
  const auto call = [&]<mp_optimizer_kind_t... kinds>() {
    if (!(... ||
          (kind == kinds && (f(std::integral_constant<mp_optimizer_kind_t, kinds>{}), true))))
      throw_target_error(MP_ERROR_INTERNAL, "this optimizer has no kernels");
  };
  call.template operator()<MP_OPT_SGD, MP_OPT_ADAM, MP_OPT_LAMB, MP_OPT_NOVOGRAD, MP_OPT_ADAGRAD,
                           MP_OPT_RMSPROP>();
}

}  // namespace mp::MP_TARGET
