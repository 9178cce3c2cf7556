// Deferred execution of asynchronous operations.
#pragma once

#include <functional>

#include "host/engine.h"

namespace mp::host::engine {

/// Defers an operation.  The scheduler executes it at a random switch of threads, when no thread
/// can run, or at the latest at the end of the cluster.
void keep_async(std::function<void()> operation);

/// Executes an operation now or later, in any order.  `current` is then the thread that issued it,
/// and the operation must not block.  An operation that is executed now stays on the stack, not in
/// a std::function: a violation abandons the stack and would leak the function's memory.
template <class Operation>
void start_async(const Operation &operation) {
  if (defer_copy())
    keep_async(operation);
  else
    operation();
}

}  // namespace mp::host::engine
