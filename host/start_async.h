// Operations that hardware performs asynchronously.
#pragma once

#include <functional>

#include "host/engine.h"

namespace mp::host::engine {

/// Keeps an operation until the scheduler performs it: at a random switch of threads, or when no thread can run, at
/// the latest at the end of the cluster.
void keep_async(std::function<void()> operation);

/// Performs it now or later, and not in the order of starting.  `current` is then the thread that started it.
/// It must not block.  What is performed now stays on the stack, without a std::function: a violation in it abandons
/// the stack, and nothing would free what a function has allocated.
template <class Operation>
void start_async(const Operation &operation) {
  if (defer_copy())
    keep_async(operation);
  else
    operation();
}

}  // namespace mp::host::engine
