#include "softgpu/machine/race_clock.h"

#include <algorithm>

namespace softgpu {

void RaceClock::learn(size_t component, uint32_t time) {
  if (component >= times_.size()) times_.resize(component + 1);
  times_[component] = std::max(times_[component], time);
}

void RaceClock::join(const RaceClock &other) {
  if (other.times_.size() > times_.size()) times_.resize(other.times_.size());
  uint32_t *to = times_.data();
  const uint32_t *from = other.times_.data();
  for (size_t i = 0; i < other.times_.size(); i++) to[i] = to[i] < from[i] ? from[i] : to[i];
  others_ = join(others_, other.others_);
  fenced = softgpu::join(fenced, other.fenced);
  proxy_fenced = softgpu::join(proxy_fenced, other.proxy_fenced);
  at_fence = softgpu::join(at_fence, other.at_fence);
  ended = softgpu::join(ended, other.ended);
}

void RaceClock::meet(const RaceClock &other) {
  times_.resize(std::min(times_.size(), other.times_.size()));
  for (size_t i = 0; i < times_.size(); i++) times_[i] = std::min(times_[i], other.times_[i]);
  others_ = nullptr;
  fenced = proxy_fenced = at_fence = nullptr;
  ended = nullptr;
}

SharedClock RaceClock::of_cluster(uint32_t cluster) const {
  if (!others_) return nullptr;
  const auto found = std::ranges::lower_bound(*others_, cluster, {}, &Other::cluster);
  return found == others_->end() || found->cluster != cluster ? nullptr : found->clock;
}

std::shared_ptr<const RaceClock::Others> RaceClock::join(const std::shared_ptr<const Others> &x,
                                                         const std::shared_ptr<const Others> &y) {
  if (x == y || !y) return x;
  if (!x) return y;
  auto both = std::make_shared<Others>();
  both->reserve(x->size() + y->size());
  auto a = x->begin(), b = y->begin();
  while (a != x->end() || b != y->end()) {
    if (b == y->end() || (a != x->end() && a->cluster < b->cluster)) {
      both->push_back(*a++);
    } else if (a == x->end() || b->cluster < a->cluster) {
      both->push_back(*b++);
    } else {
      both->push_back({a->cluster, softgpu::join(a->clock, b->clock)});
      a++, b++;
    }
  }
  return both;
}

RaceClock RaceClock::exported_by(uint32_t cluster) const {
  auto own = std::make_shared<RaceClock>();
  own->times_ = times_;
  RaceClock exported;
  exported.others_ = join(others_, std::make_shared<Others>(Others{{cluster, own}}));
  exported.ended = ended;
  if (proxy_fenced) exported.proxy_fenced = share(proxy_fenced->exported_by(cluster));
  return exported;
}

RaceClock RaceClock::imported_by(uint32_t cluster) const {
  RaceClock imported = *this;
  if (const SharedClock own = of_cluster(cluster)) imported.times_ = own->times_;
  if (proxy_fenced) imported.proxy_fenced = share(proxy_fenced->imported_by(cluster));
  return imported;
}

SharedClock meet(const SharedClock &x, const SharedClock &y) {
  if (x == y) return x;
  if (!x || !y) return nullptr;
  auto both = std::make_shared<RaceClock>(*x);
  both->meet(*y);
  return both;
}

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

}  // namespace softgpu
