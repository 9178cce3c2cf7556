// The learning rate as a function of t.  mpcore/optimizer.h, has the formulas and their sources.
//
// Pure: the same code runs on the device, on the host and in the tests.
#pragma once

#include <cmath>

#include "kernels/simt/compiler.h"
#include "mpcore/optimizer.h"

namespace mp::MP_TARGET {

/// After the warm-up.
/// @param progress  (t - 1 - warmup_steps) / decay_steps, not limited
MP_HD double decayed_lr(const mp_hyper_t &hyper, double progress) {
  constexpr double kPi = 3.14159265358979323846;
  const double lr = hyper.lr, end = hyper.lr_end;
  const double left = progress < 1.0 ? 1.0 - progress : 0.0;
  if (hyper.lr_schedule == MP_LR_POLYNOMIAL)
    return end + (lr - end) * pow(left, static_cast<double>(hyper.decay_power));
  if (hyper.lr_schedule == MP_LR_COSINE) return end + (lr - end) * (1.0 - cos(kPi * left)) / 2.0;
  const double decayed = lr * pow(static_cast<double>(hyper.decay_rate), progress);
  return decayed > end ? decayed : end;
}

/// @param t  number of applied steps including this one
MP_HD float scheduled_lr(const mp_hyper_t &hyper, int64_t t) {
  const double lr = hyper.lr, warmup = hyper.warmup_steps, steps = static_cast<double>(t);
  if (steps <= warmup) return static_cast<float>(lr * steps / warmup);
  if (hyper.lr_schedule == MP_LR_CONSTANT) return hyper.lr;
  if (hyper.lr_schedule == MP_LR_INVERSE_SQRT)
    return static_cast<float>(lr * sqrt((warmup > 1.0 ? warmup : 1.0) / steps));
  return static_cast<float>(decayed_lr(hyper, (steps - 1.0 - warmup) / hyper.decay_steps));
}

}  // namespace mp::MP_TARGET
