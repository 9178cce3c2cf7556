// Threads that start at the same time.
//
// Catch2 is not thread-safe: threads only call the library and keep the results, which are checked
// when all have ended.
#pragma once

#include <exception>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#include "support/thread_comm.h"

namespace mptest {

/// Number of threads, like in a server; more than most CI machines have cores, so that threads are
/// also preempted within a call.
inline constexpr int kThreads = 16;

/// Prefix of hidden tests of the first calls and the end of a process.  test_children.cpp runs each
/// in a new process.
inline constexpr std::string_view kChild = "child: ";

/// True with ThreadSanitizer, which makes accesses ten times slower but finds races that do not
/// occur.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kUnderThreadSanitizer = true;
#else
inline constexpr bool kUnderThreadSanitizer = false;
#endif

/// Calls work(0) ... work(count - 1) concurrently, each in a separate thread; rethrows an exception
/// of one of them.
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
