#include "softgpu/machine/cluster_ranges.h"

#include <algorithm>

namespace softgpu {

void ClusterRanges::add(uint32_t begin, uint32_t end) {
  if (begin == end) return;
  Range merged{begin, end};
  std::erase_if(ranges_, [&](const Range &range) {
    if (range.end < merged.begin || merged.end < range.begin) return false;
    merged = {std::min(merged.begin, range.begin), std::max(merged.end, range.end)};
    return true;
  });
  ranges_.insert(std::ranges::lower_bound(ranges_, merged.begin, {}, &Range::begin), merged);
}

SharedClusters join(const SharedClusters &x, const SharedClusters &y) {
  if (x == y || !y) return x;
  if (!x) return y;
  auto both = std::make_shared<ClusterRanges>(*x);
  both->add(*y);
  return both;
}

}  // namespace softgpu
