// What the engine tells the race detector.  Compiles to nothing unless MP_RACE.
//
// A build with MP_RACE compiles the kernels with -fsanitize=thread, for its instrumentation alone:
// every load and store calls a __tsan_ function, and race/runtime.cpp answers those calls instead
// of the sanitizer's library.  The engine itself is not instrumented.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/host/engine.h"

namespace mp::host::engine::race {

#if MP_RACE

void begin_block(const Block &);

/// What the living threads of these warps did before is ordered before what they do after.
void join(const Warp *warps, size_t num_warps);

/// The running thread starts an asynchronous write, by the code at `code`.
void copy_started(const void *smem, size_t bytes, const void *code);

/// All copies that the running thread started in groups below this number have landed.
void copies_landed(int64_t groups);

#else

inline void begin_block(const Block &) {}
inline void join(const Warp *, size_t) {}
inline void copy_started(const void *, size_t, const void *) {}
inline void copies_landed(int64_t) {}

#endif

}  // namespace mp::host::engine::race
