// Heap use of a call.
#pragma once

#include <cstdint>
#include <functional>

namespace mpbench {

/// Peak of the bytes that `call` holds from operator new, as malloc rounds them.  Freed memory is
/// subtracted.  Only the calling thread is counted.
int64_t peak_heap_bytes(const std::function<void()> &call);

}  // namespace mpbench
