// Norms of gradients: sums of squares in fp32 without overflow or loss of small elements, and the
// factor that unscales a gradient and clips it to a global norm in one multiplication.
//
// Source of clipping: Pascanu et al. 2013, algorithm 1, with the epsilon of
// torch.nn.utils.clip_grad_norm_.
#pragma once

#include <cmath>

#include "kernels/simt/vector.h"
#include "kernels/tensors/lists.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- clipping

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

// ---------------------------------------------------------------------------- sums of squares

// If the square of a chunk's largest element is too large or too small, the chunk is summed again,
// scaled by a power of two.

/// Factor for the elements of a chunk before they are squared; 1 if the unscaled sum is accurate.
///
/// 2^14 squares below 2^112 cannot overflow, and squares that underflow next to one above 2^-80 do
/// not matter.  The other factors map the largest element to [2^-53, 2^56).
/// @param amax_bits  magnitude_bits of the largest element
MP_DEVICE float square_factor(uint32_t amax_bits) {
  constexpr uint32_t kSmall = 0x2b800000u, kLarge = 0x5b800000u;  // 2^-40, 2^56
  if (amax_bits == 0 || amax_bits >= kInfinityBits) return 1.0f;
  return amax_bits < kSmall ? 0x1p96f : amax_bits >= kLarge ? 0x1p-96f : 1.0f;
}

/// Removes `factor` from the sum of squares of elements that were multiplied by it.
MP_DEVICE double restored_squares(float sum, float factor) {
  return static_cast<double>(sum) / (static_cast<double>(factor) * static_cast<double>(factor));
}

}  // namespace mp::MP_TARGET
