// Shared memory of a block.
//
// The high 8 bits of an address are the rank of the block in its cluster, the rest is an offset.
// The first kReservedSmem bytes are reserved, as on sm_80 and newer, so that no variable has offset
// 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "softgpu/machine/lanes.h"

namespace softgpu {

struct UnwrittenBytes {
  uint64_t first = 0;  ///< address of the first one
  uint64_t count = 0;
};

/// Deleter of memory from malloc.
struct FreeMemory {
  void operator()(void *p) const { std::free(p); }
};

/// Threads may write and read concurrently.
class WrittenBytes {
 public:
  WrittenBytes() = default;
  explicit WrittenBytes(uint64_t size);
  explicit operator bool() const { return bits_ != nullptr; }
  void set(uint64_t begin, uint64_t bytes, bool value = true);
  /// Copies the state of a range from another map, or from a range that does not overlap.
  void copy(uint64_t to, const WrittenBytes &from, uint64_t begin, uint64_t bytes);
  UnwrittenBytes find_unwritten(uint64_t begin, uint64_t bytes) const;

 private:
  uint64_t bits_from(uint64_t begin) const;
  std::unique_ptr<uint64_t[], FreeMemory> bits_;
};

constexpr uint32_t kReservedSmem = 1024;
constexpr uint32_t kRankShift = 24, kOffsetMask = (1u << kRankShift) - 1;

/// Contents of fresh memory: a NaN in fp16, bf16 and fp32, and a large integer.
constexpr uint32_t kPoison = 0x7FFF7FFF;

class SharedMemory {
 public:
  /// Resizes and poisons the memory.
  /// @param watches_proxies  the kernel also reads shared memory through the async proxy
  void reset(uint32_t rank, uint32_t size, bool watches_proxies);

  bool holds(uint32_t offset, uint32_t bytes) const {
    return offset >= kReservedSmem && offset <= end_ && bytes <= end_ - offset;
  }
  std::byte *at(uint32_t offset) { return bytes_.data() + offset; }
  uint32_t rank() const { return rank_; }
  uint32_t end() const { return end_; }  ///< end of the valid offsets
  uint32_t size() const { return end_ - kReservedSmem; }

  // Generic writes are invisible to the async proxy (TMA, wgmma) until a fence.proxy.async on the
  // path from the write to the read.  Each word therefore stores the thread and the time of its
  // last generic write.

  bool watches_proxies() const { return !writers_.empty(); }
  void note_write(int thread, uint32_t offset, uint32_t bytes) {
    if (writers_.empty()) return;
    const uint32_t time = clock_ < kLastTime ? clock_ : kLastTime;
    const uint32_t tag = (static_cast<uint32_t>(thread) + 1) | time << kThreadBits;
    for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++) writers_[word] = tag;
  }
  /// Records writes of a warp: each lane of the set writes `bytes` at its offset.
  void note_writes(int first_thread, Lanes lanes, const uint32_t *offsets, uint32_t bytes) {
    if (!writers_.empty()) note_each_write(first_thread, lanes, offsets, bytes);
  }
  /// Returns whether the range has writes that unfenced_writer must check.
  bool was_written(uint32_t offset, uint32_t bytes) const {
    if (writers_.empty()) return false;
    uint32_t tags = 0;
    for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++)
      tags |= writers_[word];
    return tags != 0;
  }
  /// Clears the generic writes of a range that the async proxy overwrites.
  void forget_writes(uint32_t offset, uint32_t bytes);
  /// Executes a fence.proxy.async and returns its time, which is later than all previous writes.
  uint32_t fence() { return ++clock_; }
  uint32_t time() const { return clock_; }  ///< time of the last fence
  /// Returns the thread whose write in this range is not followed by a fence, or -1.
  /// @param fences        time of the last fence of each thread of the block
  /// @param reader_fence  time of the last fence of the reader
  int unfenced_writer(uint32_t offset, uint32_t bytes, const std::vector<uint32_t> &fences,
                      uint32_t reader_fence);

  /// Fills the destination of a pending copy with kPoison and marks it as uninitialized.
  void poison(uint32_t offset, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += sizeof kPoison)
      memcpy(at(offset + i), &kPoison, i + sizeof kPoison <= bytes ? sizeof kPoison : bytes - i);
    if (written_) written_.set(offset, bytes, false);
  }
  /// Returns the initialized bytes; not maintained without options().checks_initialised.
  WrittenBytes &written() { return written_; }

 private:
  static constexpr uint32_t kThreadBits = 11, kLastTime = (1u << (32 - kThreadBits)) - 1;
  void note_each_write(int first_thread, Lanes, const uint32_t *offsets, uint32_t bytes);

  std::vector<std::byte> bytes_;
  /// Per word: 1 + thread in the low bits and the time above; 0: no write.  Writes at kLastTime,
  /// after two million fences, are not checked.
  std::vector<uint32_t> writers_;
  WrittenBytes written_;  ///< index: offset
  uint32_t rank_ = 0, end_ = kReservedSmem;
  uint32_t clock_ = 1;
};

}  // namespace softgpu
