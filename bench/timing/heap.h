// How much of the heap a call has in use.
#pragma once

#include <cstdint>
#include <functional>

namespace mpbench {

/// The most bytes that `call` has from operator new at one time, as malloc rounds them.  What it frees
/// is taken off, and only its own thread counts.
int64_t peak_heap_bytes(const std::function<void()> &call);

}  // namespace mpbench
