// Replaces parts of host/: launches do nothing, because the device pointers of a fuzzer are
// invalid.
#include <cstring>

#include "base/device_info.h"
#include "host/workers.h"
#include "tests/fuzz/world.h"

namespace mp::host {

namespace engine {
void run_on_workers(const Clusters &, int) {}
}  // namespace engine

// Copies larger than the memory after a device pointer have sizes that only kernels' arguments
// specify.
void copy(const Device &, void *dst, const void *src, size_t bytes, mp_stream_t) {
  if (bytes <= fuzz::kMaxBytes) std::memmove(dst, src, bytes);
}
void fill(const Device &, void *dst, int byte, size_t bytes, mp_stream_t) {
  if (bytes <= fuzz::kMaxBytes) std::memset(dst, byte, bytes);
}

}  // namespace mp::host
