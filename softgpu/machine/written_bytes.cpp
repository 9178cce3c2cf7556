#include "softgpu/machine/written_bytes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <new>

namespace softgpu {
namespace {

constexpr uint64_t kBits = 64;

/// Calls f(word, mask) for each word of bits that covers a part of the range.
template <class F>
void for_each_word(uint64_t begin, uint64_t bytes, F &&f) {
  const uint64_t end = begin + bytes;
  while (begin < end) {
    const uint64_t first = begin % kBits, count = std::min(kBits - first, end - begin);
    f(begin / kBits, (count == kBits ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first);
    begin += count;
  }
}

}  // namespace

WrittenBytes::WrittenBytes(uint64_t size)
    // calloc commits pages on first use.  One extra word for bits_from.
    : bits_(static_cast<uint64_t *>(calloc(size / kBits + 2, sizeof(uint64_t)))) {
  if (bits_ == nullptr) throw std::bad_alloc();
}

void WrittenBytes::Free::operator()(uint64_t *p) const {
  free(p);
}

void WrittenBytes::set(uint64_t begin, uint64_t bytes, bool value) {
  for_each_word(begin, bytes, [&](uint64_t word, uint64_t mask) {
    std::atomic_ref bits(bits_[word]);
    if (value) {
      bits.fetch_or(mask);
    } else {
      bits.fetch_and(~mask);
    }
  });
}

/// Returns 64 bits from any position; bits beyond the end are undefined.
uint64_t WrittenBytes::bits_from(uint64_t begin) const {
  const uint64_t word = begin / kBits, first = begin % kBits;
  const uint64_t low = std::atomic_ref(bits_[word]).load() >> first;
  return first == 0 ? low : low | std::atomic_ref(bits_[word + 1]).load() << (kBits - first);
}

void WrittenBytes::copy(uint64_t to, const WrittenBytes &from, uint64_t begin, uint64_t bytes) {
  for_each_word(to, bytes, [&](uint64_t word, uint64_t mask) {
    const auto first = static_cast<uint64_t>(std::countr_zero(mask));
    const uint64_t written = from.bits_from(begin + word * kBits + first - to) << first & mask;
    std::atomic_ref(bits_[word]).fetch_and(written | ~mask);
    std::atomic_ref(bits_[word]).fetch_or(written);
  });
}

UnwrittenBytes WrittenBytes::find_unwritten(uint64_t begin, uint64_t bytes) const {
  UnwrittenBytes found;
  for_each_word(begin, bytes, [&](uint64_t word, uint64_t mask) {
    const uint64_t unwritten = mask & ~std::atomic_ref(bits_[word]).load();
    if (unwritten == 0) return;
    if (found.count == 0)
      found.first = word * kBits + static_cast<uint64_t>(std::countr_zero(unwritten));
    found.count += static_cast<uint64_t>(std::popcount(unwritten));
  });
  return found;
}

}  // namespace softgpu
