// Shadow memory for SOFTGPU_RACECHECK: the last accesses to each byte of a block's shared memory
// or of a page of global memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "softgpu/machine/race_order.h"

namespace softgpu {

// Accesses of one kind to a cell of shadow memory, for SOFTGPU_RACECHECK.
//
// Thousands of warps may read a word of global memory without an order between them.  The set is
// therefore a hash table by logical thread, in which an access finds the previous ones of its own
// thread in constant time.

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

class RaceShadow {
 public:
  explicit RaceShadow(uint32_t num_bytes) : words_((num_bytes + kWordBytes - 1) / kWordBytes) {}

  /// Returns a previous access to these bytes that conflicts with `now` and for which
  /// happened_before(access) is false, or null.  The pointer is valid until the next add().
  template <class F>
  const RaceAccess *find_race(uint32_t offset, uint32_t bytes, const RaceAccess &now,
                              F &&happened_before) const {
    const RaceAccess *found = nullptr;
    for_each_word(offset, bytes, [&](uint32_t index, uint32_t begin, uint32_t end) {
      const Word &word = words_[index];
      if (word.bytes == 0) {
        if (found == nullptr) found = find_race(word.cell, now, happened_before);
        return;
      }
      for (uint32_t b = begin; b < end && found == nullptr; b++)
        found = find_race(bytes_[word.bytes][b], now, happened_before);
    });
    return found;
  }

  /// Records an access and removes those that it supersedes: a later access that conflicts with
  /// them also conflicts with this one.
  template <class F>
  void add(uint32_t offset, uint32_t bytes, const RaceAccess &now, F &&happened_before) {
    for_each_cell(offset, bytes, [&](Cell &cell) {
      if (!now.writes || now.is_strong) return add_to_others(cell, now, happened_before);
      const bool is_same = is_same_time(cell.write, now) && cell.write.statement == now.statement;
      // Lanes of one statement write the same value.
      const Lanes before = is_same ? cell.write.lanes : 0;
      cell.write = now;
      cell.write.lanes |= before;
      cell.first = RaceAccess();
      if (cell.more != 0) others_[cell.more].clear();
    });
  }

 private:
  static constexpr uint32_t kWordBytes = 4;

  /// A word, or a byte after accesses to parts of the word.
  struct Cell {
    RaceAccess write;   ///< last write that is not strong
    RaceAccess first;   ///< first of the later accesses: reads and strong writes
    uint32_t more = 0;  ///< index in others_ of the remaining ones; 0: none
  };
  struct Others {
    RaceSet weak_reads, strong_reads, strong_writes;

    RaceSet &of_kind(const RaceAccess &access) {
      return access.writes ? strong_writes : access.is_strong ? strong_reads : weak_reads;
    }
    void clear() {
      for (RaceSet *set : {&weak_reads, &strong_reads, &strong_writes}) set->clear();
    }
  };
  struct Word {
    Cell cell;
    uint32_t bytes = 0;  ///< index in bytes_; 0: one cell for the word
  };
  using Bytes = std::array<Cell, kWordBytes>;

  static bool is_same_time(const RaceAccess &x, const RaceAccess &y) {
    return x.actor == y.actor && x.time == y.time && x.cluster == y.cluster;
  }

  template <class F>
  static bool is_race(const RaceAccess &before, const RaceAccess &now, F &&happened_before) {
    return before.lanes != 0 && (before.writes || now.writes) &&
           !(before.is_strong && now.is_strong) && !happened_before(before);
  }

  template <class F>
  const RaceAccess *find_race(const Cell &cell, const RaceAccess &now, F &&happened_before) const {
    const auto races = [&](const RaceAccess &x) { return is_race(x, now, happened_before); };
    if (races(cell.write)) return &cell.write;
    if (races(cell.first)) return &cell.first;
    if (cell.more == 0) return nullptr;
    const Others &others = others_[cell.more];
    const RaceAccess *found = nullptr;
    if (now.writes) found = others.weak_reads.find_if(races);
    if (now.writes && !now.is_strong && found == nullptr)
      found = others.strong_reads.find_if(races);
    if (!now.is_strong && found == nullptr) found = others.strong_writes.find_if(races);
    return found;
  }

  template <class F>
  void add_to_others(Cell &cell, RaceAccess now, F &&happened_before) {
    if (now.observes) remove_strong_writes(cell);
    RaceAccess &first = cell.first;
    const bool conflicts_with_as_much =
        (now.writes || !first.writes) && (!now.is_strong || first.is_strong);
    if (now.writes == first.writes && now.is_strong == first.is_strong)
      RaceSet::absorb(first, &now);
    if (first.lanes == 0 || (conflicts_with_as_much && happened_before(first))) {
      first = now;
      return;
    }
    if (cell.more == 0) {
      cell.more = static_cast<uint32_t>(others_.size());
      others_.emplace_back();
    }
    others_[cell.more].of_kind(now).add(now, happened_before);
  }
  void remove_strong_writes(Cell &cell) {
    if (cell.first.writes) cell.first.lanes = 0;
    if (cell.more != 0) others_[cell.more].strong_writes.clear();
  }

  /// Calls f(word, begin, end) for each word of a range, with the range of its bytes.
  template <class F>
  static void for_each_word(uint32_t offset, uint32_t bytes, F &&f) {
    const uint32_t end = offset + bytes;
    while (offset < end) {
      const uint32_t begin = offset % kWordBytes;
      const uint32_t last = std::min(kWordBytes, begin + (end - offset));
      f(offset / kWordBytes, begin, last);
      offset += last - begin;
    }
  }
  /// Calls f(Cell &) for each cell of a range, which must not add cells.
  template <class F>
  void for_each_cell(uint32_t offset, uint32_t bytes, F &&f) {
    for_each_word(offset, bytes, [&](uint32_t index, uint32_t begin, uint32_t end) {
      Word &word = words_[index];
      if (end - begin < kWordBytes && word.bytes == 0) split(word);
      if (word.bytes == 0) return f(word.cell);
      for (uint32_t b = begin; b < end; b++) f(bytes_[word.bytes][b]);
    });
  }
  void split(Word &);

  std::vector<Word> words_;
  std::vector<Bytes> bytes_{1};
  std::vector<Others> others_{1};
};

}  // namespace softgpu
