// Instead of parts of host: launches do nothing, for the device pointers of a fuzzer point nowhere.
#include <cstring>

#include "base/device_info.h"
#include "host/workers.h"
#include "tests/fuzz/world.h"

namespace mp::host {

namespace engine {
void run_on_workers(const Clusters &, int) {}
}  // namespace engine

// What is larger than the memory behind any pointer is a copy that only kernels' arguments say the size of.
void copy(const Device &, void *dst, const void *src, size_t bytes, mp_stream_t) {
  if (bytes <= fuzz::kMaxBytes) std::memmove(dst, src, bytes);
}
void fill(const Device &, void *dst, int byte, size_t bytes, mp_stream_t) {
  if (bytes <= fuzz::kMaxBytes) std::memset(dst, byte, bytes);
}

}  // namespace mp::host
