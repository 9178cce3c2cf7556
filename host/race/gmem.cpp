// Device memory, which the race detector distinguishes from the simulator's own memory.
#include <map>
#include <mutex>

#include "host/race.h"
#include "host/race/detector.h"

namespace mp::host::engine::race {

namespace {

struct Allocations {
  std::mutex mutex;
  std::map<const std::byte *, size_t> bytes_at;
};
Allocations &allocations() {
  static Allocations all;
  return all;
}

}  // namespace

void gmem_allocated(const void *address, size_t bytes) {
  const std::lock_guard lock(allocations().mutex);
  allocations().bytes_at[static_cast<const std::byte *>(address)] = bytes;
}
void gmem_released(const void *address) {
  const std::lock_guard lock(allocations().mutex);
  allocations().bytes_at.erase(static_cast<const std::byte *>(address));
}

bool is_gmem(const void *address) {
  const std::byte *const byte = static_cast<const std::byte *>(address);
  const std::lock_guard lock(allocations().mutex);
  const auto next = allocations().bytes_at.upper_bound(byte);
  if (next == allocations().bytes_at.begin()) return false;
  const auto [begin, bytes] = *std::prev(next);
  return byte < begin + bytes;
}

}  // namespace mp::host::engine::race
