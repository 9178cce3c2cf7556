#include "softgpu/machine/shared_memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <new>

#include "softgpu/options.h"

namespace softgpu {

void SharedMemory::reset(uint32_t rank, uint32_t size, bool watches_proxies) {
  rank_ = rank;
  end_ = kReservedSmem + size;
  clock_ = 1;
  bytes_.resize((end_ + 3) / 4 * 4);
  for (size_t i = 0; i < bytes_.size(); i += sizeof kPoison)
    memcpy(&bytes_[i], &kPoison, sizeof kPoison);
  writers_.assign(watches_proxies ? bytes_.size() / 4 : 0, 0);
  written_ = options().checks_initialised ? WrittenBytes(bytes_.size()) : WrittenBytes();
}

void SharedMemory::note_each_write(int first_thread, Lanes lanes, const uint32_t *offsets,
                                   uint32_t bytes) {
  for_each_lane(lanes, [&](int l) { note_write(first_thread + l, offsets[l], bytes); });
}

void SharedMemory::forget_writes(uint32_t offset, uint32_t bytes) {
  if (writers_.empty() || bytes == 0) return;
  const auto words = writers_.begin();
  std::fill(words + offset / 4, words + (offset + bytes - 1) / 4 + 1, 0);
}

int SharedMemory::unfenced_writer(uint32_t offset, uint32_t bytes,
                                  const std::vector<uint32_t> &fences, uint32_t reader_fence) {
  if (writers_.empty() || bytes == 0) return -1;
  for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++) {
    const uint32_t tag = writers_[word], time = tag >> kThreadBits;
    if (tag == 0 || time == kLastTime) continue;
    const uint32_t thread = (tag & ((1u << kThreadBits) - 1)) - 1;
    if (reader_fence <= time && thread < fences.size() && fences[thread] <= time)
      return static_cast<int>(thread);
    // The fence is between the write and all later reads.
    writers_[word] = 0;
  }
  return -1;
}

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
