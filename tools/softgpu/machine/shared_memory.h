// The shared memory of a block.
//
// An address has the rank of its block in the cluster in the high 8 bits, and an offset below.  The first kReservedSmem
// bytes are the system's, as on sm_80 and newer, so that offset 0 is no variable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tools/softgpu/machine/lanes.h"
#include "tools/softgpu/machine/written_bytes.h"

namespace softgpu {

constexpr uint32_t kReservedSmem = 1024;
constexpr uint32_t kRankShift = 24, kOffsetMask = (1u << kRankShift) - 1;

/// What fresh memory holds: as fp16, bf16 and fp32 a NaN, and no small number as an integer.
constexpr uint32_t kPoison = 0x7FFF7FFF;

class SharedMemory {
 public:
  /// Poisons `size` bytes.  `watches_proxies`: the kernel reads shared memory by the async proxy too.
  void reset(uint32_t rank, uint32_t size, bool watches_proxies);

  bool holds(uint32_t offset, uint32_t bytes) const {
    return offset >= kReservedSmem && offset <= end_ && bytes <= end_ - offset;
  }
  std::byte *at(uint32_t offset) { return bytes_.data() + offset; }
  uint32_t rank() const { return rank_; }
  uint32_t end() const { return end_; }  ///< the first offset behind it
  uint32_t size() const { return end_ - kReservedSmem; }

  // Generic writes are invisible to the async proxy (TMA, wgmma) until a fence.proxy.async on the way from the write to
  // the read.  So every word knows who wrote it last by the generic proxy, and when.

  bool watches_proxies() const { return !writers_.empty(); }
  void note_write(int thread, uint32_t offset, uint32_t bytes) {
    if (writers_.empty()) return;
    const uint32_t time = clock_ < kLastTime ? clock_ : kLastTime;
    const uint32_t tag = (static_cast<uint32_t>(thread) + 1) | time << kThreadBits;
    for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++) writers_[word] = tag;
  }
  /// The same of a warp: each lane of the set writes `bytes` at its offset.
  void note_writes(int first_thread, Lanes lanes, const uint32_t *offsets, uint32_t bytes) {
    if (!writers_.empty()) note_each_write(first_thread, lanes, offsets, bytes);
  }
  /// Whether unfenced_writer has something to look at.
  bool was_written(uint32_t offset, uint32_t bytes) const {
    if (writers_.empty()) return false;
    uint32_t tags = 0;
    for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++)
      tags |= writers_[word];
    return tags != 0;
  }
  /// Forgets who wrote: the async proxy writes there itself.
  void forget_writes(uint32_t offset, uint32_t bytes);
  /// A fence.proxy.async: the time of it, which is later than that of all writes so far.
  uint32_t fence() { return ++clock_; }
  /// The thread that wrote in this range with no fence since, or -1.  `fences`: when each thread of the block fenced
  /// last; `reader_fence`: when the reader did.
  int unfenced_writer(uint32_t offset, uint32_t bytes, const std::vector<uint32_t> &fences,
                      uint32_t reader_fence);

  /// Fills a range with kPoison, as nobody has written it: a copy will land there.
  void poison(uint32_t offset, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += sizeof kPoison)
      memcpy(at(offset + i), &kPoison, i + sizeof kPoison <= bytes ? sizeof kPoison : bytes - i);
    if (written_) written_.set(offset, bytes, false);
  }
  /// Bytes that somebody wrote; false unless options().checks_initialised.
  WrittenBytes &written() { return written_; }

 private:
  static constexpr uint32_t kThreadBits = 11, kLastTime = (1u << (32 - kThreadBits)) - 1;
  void note_each_write(int first_thread, Lanes, const uint32_t *offsets, uint32_t bytes);

  std::vector<std::byte> bytes_;
  /// Per word: 1 + thread, and above it the time; 0: nobody.  Writes at kLastTime, after two million fences, are not
  /// checked.
  std::vector<uint32_t> writers_;
  WrittenBytes written_;  ///< by offset
  uint32_t rank_ = 0, end_ = kReservedSmem;
  uint32_t clock_ = 1;
};

}  // namespace softgpu
