// Factor that unscales a gradient and clips it to a global norm in one multiplication.
//
// Source: Pascanu et al. 2013, algorithm 1, with the epsilon of torch.nn.utils.clip_grad_norm_.
#pragma once

#include <cmath>

#include "kernels/simt/compiler.h"
#include "kernels/tensors/lists.h"

namespace mp::MP_TARGET {

/// Returns inv_scale, reduced if the unscaled norm exceeds max_norm.  Both norms may exceed fp32.
MP_HD float clipped_grad_scale(float inv_scale, double scaled_norm, float max_norm) {
  constexpr float kEpsilon = 1e-6f;
  const float norm = inv_scale * static_cast<float>(scaled_norm);
  if (std::isinf(norm)) {
    const double wide = inv_scale, ratio = static_cast<double>(max_norm) / (wide * scaled_norm);
    return ratio < 1.0 ? static_cast<float>(wide * ratio) : inv_scale;
  }
  const float ratio = max_norm / (norm + kEpsilon);
  return ratio < 1.0f ? inv_scale * ratio : inv_scale;
}

MP_HD float unscaled_norm(float inv_scale, double scaled_norm) {
  const float norm = inv_scale * static_cast<float>(scaled_norm);
  return std::isinf(norm) ? static_cast<float>(static_cast<double>(inv_scale) * scaled_norm) : norm;
}

MP_HD float inv_scale_of(const ClipArgs &clip) {
  return clip.inv_scale != nullptr ? *clip.inv_scale : 1.0f;
}

/// Writes the outputs of `clip`.  Called by one thread when the norm is known.
MP_HD void apply_clip(const ClipArgs &clip, double scaled_norm) {
  const float inv_scale = inv_scale_of(clip);
  *clip.grad_scale =
      clip.max_norm > 0.0f ? clipped_grad_scale(inv_scale, scaled_norm, clip.max_norm) : inv_scale;
  if (clip.grad_norm != nullptr) *clip.grad_norm = unscaled_norm(inv_scale, scaled_norm);
}

}  // namespace mp::MP_TARGET
