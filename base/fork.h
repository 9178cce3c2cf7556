// Mutexes that are safe across fork.
#pragma once

#include <pthread.h>

namespace mp {

/// Holds a mutex during fork, so that no thread that is missing in the child owns it.  Must not be
/// used for a mutex under which a thread may fork.
template <auto &kMutex>
struct ForkGuard {
  ForkGuard() {
    pthread_atfork([] { kMutex.lock(); }, [] { kMutex.unlock(); }, [] { kMutex.unlock(); });
  }
};

}  // namespace mp
