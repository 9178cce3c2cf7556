// Per-thread cache of recent results by key: tensor maps, kernel selections.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mp {

/// Multiplicative hash (Knuth, vol. 3, 6.4); only the high bits are well mixed.
struct Hash {
  uint64_t sum = 0;

  void mix(uint64_t word) { sum = (std::rotl(sum, 23) ^ word) * 0x9E3779B97F4A7C15u; }
  template <class Word, size_t kCount>
  void mix(const Word (&words)[kCount]) {
    for (const Word word : words) mix(static_cast<uint64_t>(word));
  }
};

/// Direct-mapped cache: keys share entries.  Key has == and `uint64_t hash() const`.
template <class Key, class Value>
class Cache {
 public:
  /// Returns the value of `key`; computes it with make() on a miss.  Valid until the next call.
  template <class Make>
  const Value &find(const Key &key, const Make &make) {
    Entry &entry = entries_[key.hash() >> (64 - kLog2Entries)];
    if (!entry.is_used || !(entry.key == key)) {
      entry.value = make();
      entry.key = key;
      entry.is_used = true;
      misses_++;
    }
    return entry.value;
  }
  int64_t misses() const { return misses_; }

 private:
  /// Sized for a training step of a hundred layers: a few hundred tensor maps, fewer selections.
  static constexpr int kLog2Entries = 8;
  struct Entry {
    Key key;
    Value value;
    bool is_used;
  };
  std::array<Entry, 1 << kLog2Entries> entries_{};
  int64_t misses_ = 0;
};

}  // namespace mp
