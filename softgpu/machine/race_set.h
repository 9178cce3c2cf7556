// Accesses of one kind to a cell of shadow memory, for SOFTGPU_RACECHECK.
//
// Thousands of warps may read a word of global memory without an order between them.  The set is
// therefore a hash table by logical thread, in which an access finds the previous ones of its own
// thread in constant time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "softgpu/machine/race_order.h"

namespace softgpu {

class RaceSet {
 public:
  /// Adds an access, which replaces earlier ones by the same lanes of its logical thread.  If the
  /// table is full, first removes the accesses for which is_superseded(access) is true.
  template <class F>
  void add(RaceAccess now, F &&is_superseded) {
    RaceAccess *place = nullptr;
    if (!slots_.empty()) {
      for (size_t i = slot_of(now); is_used(slots_[i]); i = next(i)) {
        absorb(slots_[i], &now);
        if (slots_[i].lanes == 0 && place == nullptr) place = &slots_[i];
      }
    }
    if (place == nullptr) {
      if (4 * (num_used_ + 1) > 3 * slots_.size()) rebuild(is_superseded);
      num_used_++;
      place = &slots_[free_slot_of(now)];
    }
    *place = now;
  }
  /// Returns an access for which f(access) is true, or null.
  template <class F>
  const RaceAccess *find_if(F &&f) const {
    for (const RaceAccess &slot : slots_)
      if (slot.lanes != 0 && f(slot)) return &slot;
    return nullptr;
  }
  void clear() {
    slots_.clear();
    num_used_ = 0;
  }

  /// Removes the lanes of an access by which a later one of the same kind and logical thread was
  /// made as well.  If both have the same time, moves all lanes to the later one.
  static void absorb(RaceAccess &before, RaceAccess *now) {
    if (before.actor != now->actor || before.cluster != now->cluster ||
        before.observes != now->observes || before.time > now->time)
      return;
    if (before.time == now->time) {
      now->lanes |= before.lanes;
      before.lanes = 0;
    }
    before.lanes &= ~now->lanes;
  }

 private:
  static constexpr size_t kMinSlots = 4;

  /// Times begin at 1.  A used slot without lanes is free, but a search continues after it.
  static bool is_used(const RaceAccess &slot) { return slot.time != 0; }
  size_t next(size_t i) const { return (i + 1) & (slots_.size() - 1); }
  size_t slot_of(const RaceAccess &access) const {
    constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // Fibonacci hashing: 2^64 / golden ratio
    const uint64_t key = uint64_t{access.cluster} << 16 | access.actor;
    return key * kMultiplier >> 32 & (slots_.size() - 1);
  }
  size_t free_slot_of(const RaceAccess &access) const {
    size_t i = slot_of(access);
    while (is_used(slots_[i])) i = next(i);
    return i;
  }
  template <class F>
  void rebuild(F &&is_superseded) {
    std::vector<RaceAccess> kept;
    for (const RaceAccess &slot : slots_)
      if (slot.lanes != 0 && !is_superseded(slot)) kept.push_back(slot);
    slots_.assign(std::max(kMinSlots, std::bit_ceil(2 * (kept.size() + 1))), RaceAccess());
    num_used_ = kept.size();
    for (const RaceAccess &access : kept) slots_[free_slot_of(access)] = access;
  }

  std::vector<RaceAccess> slots_;  ///< open addressing with a power of two; at most 3/4 are used
  size_t num_used_ = 0;
};

}  // namespace softgpu
