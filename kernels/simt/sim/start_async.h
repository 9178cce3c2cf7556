// Operations that hardware performs asynchronously.
#pragma once

#include <functional>

namespace mp::host::engine {

/// Performs it now or later, and not in the order of starting.  `current` is then the thread that started it.
/// It must not block.  Later is when the scheduler says: at a random switch of threads, or when no thread can run,
/// at the latest at the end of the cluster.
void start_async(std::function<void()> operation);

}  // namespace mp::host::engine
