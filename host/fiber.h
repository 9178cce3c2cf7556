// Fibers on Boost.Context, with sanitizer annotations.
//
// AddressSanitizer must be notified of stack switches, and Valgrind of the stacks.  Otherwise
// Valgrind mistakes a switch for one huge frame and reports accesses below it.
#pragma once

#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define MP_ASAN 1
#else
#define MP_ASAN 0
#define ASAN_POISON_MEMORY_REGION(begin, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes)
#endif
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(start, end) 0u
#define VALGRIND_STACK_DEREGISTER(id) (void)(id)
#endif

namespace mp::host::engine {

struct Thread;

struct Fiber {
  boost::context::detail::fcontext_t context;
  Thread *start;  ///< thread to run when next resumed; NULL in the middle of a thread
  const void *stack_bottom;
  size_t stack_bytes;
  void *asan_fake_stack;
  unsigned valgrind_stack;
};

/// Suspends `from` and resumes `to`; returns when `from` is resumed.
inline void switch_fiber(Fiber &from, Fiber &to) {
#if MP_ASAN
  __sanitizer_start_switch_fiber(&from.asan_fake_stack, to.stack_bottom, to.stack_bytes);
#endif
  const auto arrived = boost::context::detail::jump_fcontext(to.context, &from);
  static_cast<Fiber *>(arrived.data)->context = arrived.fctx;
#if MP_ASAN
  __sanitizer_finish_switch_fiber(from.asan_fake_stack, nullptr, nullptr);
#endif
}

/// Completes the switch to a new fiber: saves the context of the fiber that switched.  Must be the
/// first call of a new fiber.
inline void enter_fiber(boost::context::detail::transfer_t arrived) {
  static_cast<Fiber *>(arrived.data)->context = arrived.fctx;
#if MP_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

/// Returns a fiber for the stack of the calling OS thread.
inline Fiber fiber_of_os_thread() {
  Fiber fiber{};
#if MP_ASAN
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void *bottom;
  pthread_attr_getstack(&attributes, &bottom, &fiber.stack_bytes);
  fiber.stack_bottom = bottom;
  pthread_attr_destroy(&attributes);
#endif
  return fiber;
}

/// Fibers of one cluster and their stacks, reused from cluster to cluster.
class FiberPool {
 public:
  using Entry = void (*)(boost::context::detail::transfer_t);

  FiberPool(size_t capacity, Entry entry) : capacity_(capacity), entry_(entry) {
    fibers_.reserve(capacity);
    free_.reserve(capacity);
    memory_ = mmap(nullptr, kStride * capacity, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
  }
  FiberPool(const FiberPool &) = delete;
  FiberPool &operator=(const FiberPool &) = delete;
  /// Clears AddressSanitizer's poison, which munmap keeps for the next mapping at this address.
  ~FiberPool() {
    reset();
    munmap(memory_, kStride * capacity_);
  }

  Fiber &take() {
    if (free_.empty()) return create();
    Fiber *const fiber = free_.back();
    free_.pop_back();
    return *fiber;
  }
  void give_back(Fiber &fiber) { free_.push_back(&fiber); }

  /// Drops all fibers, even suspended ones.  Used after their cluster was abandoned.
  void reset() {
    ASAN_UNPOISON_MEMORY_REGION(memory_, kStride * capacity_);
    for (const Fiber &fiber : fibers_) VALGRIND_STACK_DEREGISTER(fiber.valgrind_stack);
    free_.clear();
    fibers_.clear();
  }

 private:
#if MP_ASAN
  static constexpr size_t kStackBytes = 256 << 10;
#else
  static constexpr size_t kStackBytes = 64 << 10;
#endif
  static constexpr size_t kGuardBytes = 4096, kGuarded = 1024;
  // The stride is not a power of two, and each stack is shifted by a color.  Stack tops at
  // power-of-two distances would compete for the same cache sets and make a switch three times as
  // expensive.
  static constexpr size_t kStride = kStackBytes + 2 * kGuardBytes;
  static constexpr size_t kColors = 64, kColorBytes = 64;
  static_assert(kColors * kColorBytes <= kGuardBytes);

  Fiber &create() {
    const size_t index = fibers_.size();
    if (index == capacity_) throw std::bad_alloc();
    std::byte *const bottom = static_cast<std::byte *>(memory_) + index * kStride;
    // Traps a stack overflow.  A guard splits a mapping, whose number Linux limits to 65,530.
    if (index < kGuarded && mprotect(bottom, kGuardBytes, PROT_NONE) != 0) throw std::bad_alloc();
    std::byte *const top = bottom + kStride - (index * 5 % kColors) * kColorBytes;
    Fiber fiber{};
    fiber.stack_bottom = bottom + kGuardBytes;
    fiber.stack_bytes = static_cast<size_t>(top - bottom) - kGuardBytes;
    fiber.valgrind_stack = static_cast<unsigned>(VALGRIND_STACK_REGISTER(fiber.stack_bottom, top));
    fiber.context = boost::context::detail::make_fcontext(top, fiber.stack_bytes, entry_);
    return fibers_.emplace_back(fiber);
  }

  size_t capacity_;
  Entry entry_;
  void *memory_;
  // Reserved in full: fibers never move, and no kernel waits for an allocation.
  std::vector<Fiber> fibers_;
  std::vector<Fiber *> free_;
};

}  // namespace mp::host::engine
