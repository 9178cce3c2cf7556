// Mutexes of the process, and processes that fork.
#pragma once

#include <pthread.h>

namespace mp {

/// A mutex for which a fork waits, so that no thread holds it that is not in the child.  Not for one under which
/// somebody may fork.
template <auto &kMutex>
struct ForkGuard {
  ForkGuard() {
    pthread_atfork([] { kMutex.lock(); }, [] { kMutex.unlock(); }, [] { kMutex.unlock(); });
  }
};

}  // namespace mp
