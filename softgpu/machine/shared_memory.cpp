#include "softgpu/machine/shared_memory.h"

#include <algorithm>
#include <cstring>

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

}  // namespace softgpu
