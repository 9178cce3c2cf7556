// Threads that begin together.
//
// Catch2 belongs to one thread: what the threads do is to call the library and to keep what it says, and
// that is looked at when all of them have ended.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "support/thread_comm.h"

namespace mptest {

/// As many as a server runs beside each other; more than most machines of CI have cores, so that threads
/// are also stopped in the middle of a call.
inline constexpr int kThreads = 16;

/// Where every access takes ten times as long, but a race need not happen to be seen.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif

/// Calls work(0) ... work(count - 1), each in a thread of its own, all at once; throws what one of them threw.
inline void together(int count, const std::function<void(int)> &work) {
  mptools::Barrier start(count);
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      start.wait();
      try {
        work(i);
      } catch (...) {
        thrown[static_cast<size_t>(i)] = std::current_exception();
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const std::exception_ptr &error : thrown)
    if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace mptest
