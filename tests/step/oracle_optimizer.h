// Reference implementation of the optimizers of mpcore/optimizer.h: one step of one tensor, in fp64
// with a running bound on the rounding error of fp32.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracle_step.h"

namespace mptest::oracle {

/// One weight and its optimizer state.
struct Weight {
  Bounded w, m, v;
};

/// Parameters of a step that all elements of a tensor share.
struct TensorStep {
  mp_optimizer_kind_t kind;
  uint32_t flags;
  mp_param_group_t hyper;  ///< parameters of the tensor's group
  double lr_multiplier = 1.0, decay_multiplier = 1.0;
  double grad_scale = 1.0;
  int64_t t = 1;  ///< number of applied steps including this one
  int64_t chunk_elems = 0;
};

// ---------------------------------------------------------------------------- learning rate

/// Uses cases and exp() where the library uses pow(): the error of fp64 is negligible compared with
/// the rounding to fp32.
inline Bounded learning_rate(const mp_param_group_t &hyper, int64_t t) {
  const double lr = hyper.lr, end = hyper.lr_end, warmup = hyper.warmup_steps;
  const double step = static_cast<double>(t);
  double value = lr;
  if (t <= hyper.warmup_steps) {
    value = lr * (step / warmup);
  } else if (hyper.lr_schedule == MP_LR_INVERSE_SQRT) {
    value = lr * std::sqrt(std::max(warmup, 1.0)) / std::sqrt(step);
  } else if (hyper.lr_schedule != MP_LR_CONSTANT) {
    const double progress = (step - 1.0 - warmup) / hyper.decay_steps;
    const double p = std::min(progress, 1.0);
    if (hyper.lr_schedule == MP_LR_POLYNOMIAL) {
      value = p == 1.0 ? end : end + (lr - end) * std::exp(hyper.decay_power * std::log1p(-p));
    } else if (hyper.lr_schedule == MP_LR_COSINE) {
      value = end + (lr - end) * (1.0 + std::cos(M_PI * p)) / 2.0;
    } else {
      value = std::max(end, lr * std::exp(progress * std::log(hyper.decay_rate)));
    }
  } else {
    return lr;
  }
  return rounded(value, 0.0);
}

// ---------------------------------------------------------------------------- norms and gradients

/// A product with a multiplier is rounded; a product with 1 is exact.
inline Bounded scaled_by(const Bounded &x, double multiplier) {
  return multiplier == 1.0 ? x : x * multiplier;
}

inline Bounded weight_decay_of(const TensorStep &s) {
  return scaled_by(s.hyper.weight_decay, s.decay_multiplier);
}

/// sqrt(sum x^2) of inexact numbers: by the triangle inequality, their errors increase the norm by
/// at most the norm of the errors.  Squares may underflow.
inline Bounded norm_of(const std::vector<Bounded> &x, int64_t chunk_elems) {
  double squares = 0.0, errors = 0.0;
  for (const Bounded &value : x) {
    squares += value.value * value.value;
    errors += value.error * value.error;
  }
  const Bounded exact = l2norm(squares, chunk_elems);
  const double own = exact.error / std::max(exact.value, 1e-300);  // relative
  const double lost = std::sqrt(static_cast<double>(x.size()) * half_subnormal(MP_FP32));
  return {exact.value, std::sqrt(errors) * (1.0 + own) + exact.error + lost};
}

inline Bounded clamped_to(const Bounded &x, double most) {
  return {std::clamp(x.value, -most, most), x.error};
}

/// Returns g of the documented formulas.
/// @param extra  extra gradients; may be empty
inline std::vector<Bounded> final_gradients(const TensorStep &s,
                                            const std::vector<double> &gradients,
                                            const std::vector<double> &extra,
                                            const std::vector<Weight> &old) {
  Bounded scale = s.grad_scale;
  if (s.hyper.max_tensor_norm > 0.0f) {
    const Bounded norm = l2norm(sum_squares(gradients), s.chunk_elems);
    const Bounded epsilon(1e-6, unit_roundoff(MP_FP32) * 1e-6);
    scale = scale * min(1.0, Bounded(s.hyper.max_tensor_norm) / (scale * norm + epsilon));
  }
  const Bounded l1 = scaled_by(s.hyper.l1, s.decay_multiplier);
  const Bounded l2 = scaled_by(s.hyper.l2, s.decay_multiplier);
  std::vector<Bounded> result;
  for (size_t i = 0; i < gradients.size(); ++i) {
    Bounded g = Bounded(gradients[i]) * scale;
    const double w = old[i].w.value;
    if (s.hyper.clip_value > 0.0f) g = clamped_to(g, s.hyper.clip_value);
    if (l1.value != 0.0 && w != 0.0) g = w > 0.0 ? g + l1 : g - l1;
    if (l2.value != 0.0) g = g + Bounded(2.0) * l2 * w;
    if (!extra.empty()) g = g + extra[i];
    result.push_back(g);
  }
  return result;
}

/// Computed in fp64: in fp32, 1 - beta^t would cancel for beta2 = 0.999.
inline Bounded bias_correction(float beta, int64_t t) {
  return rounded(1.0 / (1.0 - std::pow(static_cast<double>(beta), static_cast<double>(t))), 0.0);
}

// ---------------------------------------------------------------------------- the rules

/// @param ratio  the trust ratio of LARC and LARS
inline Weight sgd(const Weight &old, Bounded g, const TensorStep &s, const Bounded &lr,
                  const Bounded *ratio) {
  const Bounded momentum = s.hyper.beta1, decay = weight_decay_of(s);
  const bool decays = decay.value != 0.0, last = (s.flags & MP_OPT_FLAG_DECAY_AFTER_MOMENTUM) != 0;
  if (decays && !last) g = g + decay * old.w;
  if (ratio != nullptr) g = g * *ratio;
  Weight next = old;
  Bounded direction = g;
  if (s.hyper.beta1 != 0.0f) {
    next.m = s.t == 1 ? g : momentum * old.m + (Bounded(1.0) - Bounded(s.hyper.dampening)) * g;
    direction = s.flags & MP_OPT_FLAG_NESTEROV ? g + momentum * next.m : next.m;
  }
  if (decays && last) direction = direction + decay * old.w;
  next.w = old.w - lr * direction;
  return next;
}

/// Updates m and v; returns the update before it is multiplied by the learning rate.
inline Bounded adam_direction(Weight &weight, Bounded g, const TensorStep &s) {
  const Bounded one = 1.0, b1 = s.hyper.beta1, b2 = s.hyper.beta2, decay = weight_decay_of(s);
  const bool decoupled = (s.flags & MP_OPT_FLAG_DECOUPLED_DECAY) != 0;
  if (!decoupled) g = g + decay * weight.w;
  weight.m = b1 * weight.m + (one - b1) * g;
  weight.v = b2 * weight.v + (one - b2) * (g * g);
  const bool corrected = (s.flags & MP_OPT_FLAG_NO_BIAS_CORRECTION) == 0;
  const Bounded m_hat = corrected ? weight.m * bias_correction(s.hyper.beta1, s.t) : weight.m;
  const Bounded v_hat = corrected ? weight.v * bias_correction(s.hyper.beta2, s.t) : weight.v;
  const Bounded step = m_hat / (sqrt(v_hat) + Bounded(s.hyper.eps));
  return decoupled ? step + decay * weight.w : step;
}

inline Weight adagrad(Weight weight, Bounded g, const TensorStep &s, const Bounded &lr) {
  const bool decoupled = (s.flags & MP_OPT_FLAG_DECOUPLED_DECAY) != 0;
  const Bounded decay = weight_decay_of(s);
  if (!decoupled) g = g + decay * weight.w;
  weight.v = weight.v + g * g;
  Bounded step = g / (sqrt(weight.v) + Bounded(s.hyper.eps));
  if (decoupled) step = step + decay * weight.w;
  weight.w = weight.w - lr * step;
  return weight;
}

inline Weight rmsprop(Weight weight, Bounded g, const TensorStep &s, const Bounded &lr) {
  const Bounded b2 = s.hyper.beta2;
  g = g + weight_decay_of(s) * weight.w;
  weight.v = b2 * weight.v + (Bounded(1.0) - b2) * (g * g);
  Bounded step = g / (sqrt(weight.v) + Bounded(s.hyper.eps));
  if (s.hyper.beta1 != 0.0f) step = weight.m = Bounded(s.hyper.beta1) * weight.m + step;
  weight.w = weight.w - lr * step;
  return weight;
}

// ---------------------------------------------------------------------------- tensors

inline std::vector<Bounded> weights_of(const std::vector<Weight> &tensor) {
  std::vector<Bounded> w;
  for (const Weight &weight : tensor) w.push_back(weight.w);
  return w;
}

inline std::vector<Weight> lamb(std::vector<Weight> tensor, const std::vector<Bounded> &g,
                                const TensorStep &s, const Bounded &lr) {
  const Bounded w_norm = norm_of(weights_of(tensor), s.chunk_elems);
  std::vector<Bounded> u;
  for (size_t i = 0; i < tensor.size(); ++i) u.push_back(adam_direction(tensor[i], g[i], s));
  const Bounded u_norm = norm_of(u, s.chunk_elems);
  const bool adapts = (s.flags & MP_OPT_FLAG_NVLAMB) != 0 || weight_decay_of(s).value != 0.0;
  const bool measurable = w_norm.value != 0.0 && u_norm.value != 0.0;
  const Bounded ratio = adapts && measurable ? w_norm / u_norm : 1.0;
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i].w = tensor[i].w - lr * ratio * u[i];
  return tensor;
}

/// Returns the trust ratio of LARC and LARS.
inline Bounded larc_ratio(const std::vector<Weight> &tensor, const std::vector<Bounded> &g,
                          const TensorStep &s, const Bounded &lr) {
  const Bounded w_norm = norm_of(weights_of(tensor), s.chunk_elems);
  const Bounded g_norm = norm_of(g, s.chunk_elems);
  if (w_norm.value == 0.0 || g_norm.value == 0.0) return 1.0;
  const Bounded denominator = g_norm + weight_decay_of(s) * w_norm + Bounded(s.hyper.eps);
  const Bounded ratio = Bounded(s.hyper.trust_coefficient) * w_norm / denominator;
  return s.flags & MP_OPT_FLAG_LARS ? ratio : min(1.0, ratio / lr);
}

/// @param v  in, out: the second moment of the tensor
inline std::vector<Weight> novograd(std::vector<Weight> tensor, const std::vector<Bounded> &g,
                                    const TensorStep &s, const Bounded &lr, Bounded &v) {
  const Bounded norm = norm_of(g, s.chunk_elems), squares = norm * norm, b2 = s.hyper.beta2;
  v = s.t == 1 ? squares : b2 * v + (Bounded(1.0) - b2) * squares;
  const Bounded factor = Bounded(1.0) / (sqrt(v) + Bounded(s.hyper.eps));
  for (size_t i = 0; i < tensor.size(); ++i) {
    Weight &weight = tensor[i];
    const Bounded direction = g[i] * factor + weight_decay_of(s) * weight.w;
    weight.m =
        Bounded(s.hyper.beta1) * weight.m + (Bounded(1.0) - Bounded(s.hyper.dampening)) * direction;
    weight.w = weight.w - lr * weight.m;
  }
  return tensor;
}

/// Returns a tensor after one step.
/// @param tensor_v  in, out: NovoGrad's second moment
inline std::vector<Weight> step_tensor(const TensorStep &s, const std::vector<double> &gradients,
                                       const std::vector<double> &extra,
                                       const std::vector<Weight> &old, Bounded &tensor_v) {
  const std::vector<Bounded> g = final_gradients(s, gradients, extra, old);
  const Bounded lr = scaled_by(learning_rate(s.hyper, s.t), s.lr_multiplier);
  if (s.kind == MP_OPT_LAMB) return lamb(old, g, s, lr);
  if (s.kind == MP_OPT_NOVOGRAD) return novograd(old, g, s, lr, tensor_v);
  const bool adapts = (s.flags & (MP_OPT_FLAG_LARC | MP_OPT_FLAG_LARS)) != 0;
  const Bounded ratio = adapts ? larc_ratio(old, g, s, lr) : 1.0;
  std::vector<Weight> next;
  for (size_t i = 0; i < old.size(); ++i) {
    Weight weight = old[i];
    if (s.kind == MP_OPT_SGD) weight = sgd(weight, g[i], s, lr, adapts ? &ratio : nullptr);
    if (s.kind == MP_OPT_ADAM) {
      const Bounded direction = adam_direction(weight, g[i], s);
      weight.w = weight.w - lr * direction;
    }
    if (s.kind == MP_OPT_ADAGRAD) weight = adagrad(weight, g[i], s, lr);
    if (s.kind == MP_OPT_RMSPROP) weight = rmsprop(weight, g[i], s, lr);
    next.push_back(weight);
  }
  return next;
}

/// Returns the 16-bit copy of a weight.
inline double model_of(double w, mp_dtype_t dtype, uint32_t flags) {
  if ((flags & MP_OPT_FLAG_MODEL_OVERFLOW) == 0 && !std::isnan(w)) {
    w = std::clamp(w, -largest_finite(dtype), largest_finite(dtype));
  }
  return round_to(dtype, w);
}

}  // namespace mptest::oracle
