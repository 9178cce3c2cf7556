// cp.async.  Each thread has a queue of pending copies, oldest first.
#include <cstring>

#include "host/engine.h"
#include "host/shared_memory.h"

namespace mp::host::engine {

namespace {

constexpr int kCopyBytes = 16;

void land(const PendingCopy &copy) {
  if (copy.bytes == kCopyBytes) {
    std::memcpy(copy.dst, copy.src, kCopyBytes);
    return;
  }
  if (copy.bytes > 0) std::memcpy(copy.dst, copy.src, static_cast<size_t>(copy.bytes));
  std::memset(static_cast<char *>(copy.dst) + copy.bytes, 0,
              static_cast<size_t>(kCopyBytes - copy.bytes));
}

}  // namespace

void start_copy(void *smem, const void *gmem, int valid_bytes, source_location where) {
  check_may_use_gmem("copy_async_16", where);
  if (valid_bytes < 0 || valid_bytes > kCopyBytes)
    violation(where, "copies %d bytes in copy_async_16, outside [0, 16]", valid_bytes);
  if (!is_aligned(smem, kCopyBytes))
    violation(where, "passes an smem address to copy_async_16 that is not 16-byte aligned");
  if (valid_bytes > 0 && !is_aligned(gmem, kCopyBytes))
    violation(where, "passes a gmem address to copy_async_16 that is not 16-byte aligned");
  Thread &thread = *current;
  if (!thread.block->smem->holds(smem, kCopyBytes))
    violation(where, "copies to an address outside all shared variables in copy_async_16");
  const PendingCopy copy{smem, gmem, valid_bytes, thread.copy_group};
  if (defer_copy())
    thread.copies.push_back(copy);
  else
    land(copy);
}

void wait_for_copies(int64_t pending_groups) {
  Thread &thread = *current;
  const int64_t landed = thread.copy_group - pending_groups;  // groups below this number
  auto copy = thread.copies.begin();
  while (copy != thread.copies.end() && copy->group < landed) land(*copy++);
  thread.copies.erase(thread.copies.begin(), copy);
}

}  // namespace mp::host::engine
