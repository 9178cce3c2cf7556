// The factor that unscales a gradient and clips it to a global norm at once.
// Pascanu et al. 2013, algorithm 1, with the epsilon of torch.nn.utils.clip_grad_norm_.
#pragma once

#include "kernels/simt/compiler.h"
#include "kernels/tensors/lists.h"

namespace mp::MP_TARGET {

MP_HD float clipped_grad_scale(float inv_scale, float scaled_norm, float max_norm) {
  constexpr float kEpsilon = 1e-6f;
  const float ratio = max_norm / (inv_scale * scaled_norm + kEpsilon);
  return ratio < 1.0f ? inv_scale * ratio : inv_scale;
}

MP_HD float inv_scale_of(const ClipArgs &clip) {
  return clip.inv_scale != nullptr ? *clip.inv_scale : 1.0f;
}

/// Done by one thread, once the norm is known.
MP_HD void apply_clip(const ClipArgs &clip) {
  const float inv_scale = inv_scale_of(clip);
  *clip.grad_scale = clip.max_norm > 0.0f
                         ? clipped_grad_scale(inv_scale, *clip.scaled_norm, clip.max_norm)
                         : inv_scale;
  if (clip.grad_norm != nullptr) *clip.grad_norm = inv_scale * *clip.scaled_norm;
}

}  // namespace mp::MP_TARGET
