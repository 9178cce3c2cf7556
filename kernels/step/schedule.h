// Learning rate as a function of t.  mpcore/optimizer.h documents the formulas and their sources.
//
// Pure: the same code runs on the device, on the host and in the tests, with the same bits
// (reproducible_math.h).
#pragma once

#include <cmath>

#include "kernels/simt/reproducible_math.h"
#include "mpcore/optimizer.h"

namespace mp::MP_TARGET {

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

}  // namespace mp::MP_TARGET
