// Effect of fp16 on gradients, counted in one pass over values in host memory, outside of the
// training loop.
#include <algorithm>
#include <cmath>

#include "training.h"

namespace mpdemo {

double flushed_share(std::span<const float> gradients, double loss_scale) {
  const double limit = std::exp2(kLog2Flush);
  int64_t nonzero = 0;
  int64_t flushed = 0;
  for (const float g : gradients) {
    if (g == 0.0f) continue;
    ++nonzero;
    if (std::abs(static_cast<double>(g)) * loss_scale <= limit) ++flushed;
  }
  return nonzero == 0 ? 0.0 : static_cast<double>(flushed) / static_cast<double>(nonzero);
}

Histogram histogram(std::span<const float> gradients) {
  constexpr int kBins = (Histogram::kLog2High - Histogram::kLog2Low) * Histogram::kBinsPerOctave;
  Histogram result;
  result.share.assign(kBins, 0.0);
  int64_t nonzero = 0;
  for (const float g : gradients) {
    if (g == 0.0f) continue;
    ++nonzero;
    const double position =
        (std::log2(std::abs(g)) - Histogram::kLog2Low) * Histogram::kBinsPerOctave;
    const int bin = std::clamp(static_cast<int>(std::floor(position)), 0, kBins - 1);
    result.share[static_cast<size_t>(bin)] += 1.0;
  }
  for (double &share : result.share) share /= static_cast<double>(std::max<int64_t>(nonzero, 1));
  return result;
}

}  // namespace mpdemo
