// Process-wide and thread-local objects, created at first use, and mutexes, all safe across fork.
#pragma once

#include <pthread.h>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace mp {

/// List of all objects from lazy_init(), freed when the library is unloaded.
class LazyInit {
 public:
  struct Entry {
    void (*free)();
    Entry *next;
  };
  static void add(Entry &entry) {
    entry.next = entries.load();
    while (!entries.compare_exchange_weak(entry.next, &entry)) continue;
  }

  /// Marks a context, or a call that creates one.  If any exists at unload, nothing is freed: the
  /// process is ending, and threads may still be in calls.
  class User {
   public:
    User() { users++; }
    ~User() { users--; }
    User(const User &) = delete;
    User &operator=(const User &) = delete;
  };

  ~LazyInit() {
    constexpr int64_t kUnloaded = int64_t{1} << 40;
    int64_t none = 0;
    if (!users.compare_exchange_strong(none, kUnloaded)) return;
    Entry *next = entries.exchange(nullptr);
    while (next != nullptr) std::exchange(next, next->next)->free();
  }

 private:
  static inline constinit std::atomic<int64_t> users = 0;
  static inline constinit std::atomic<Entry *> entries = nullptr;
};
inline const LazyInit free_at_unload;

/// Returns the result of the first successful `make` of this type.  Unlike a local static variable,
/// it never waits for another thread, which may not exist in the child of a fork: concurrent
/// threads each make an object, and the first one is kept.  If `make` throws, the next call tries
/// again.
template <typename Make>
std::invoke_result_t<Make> &lazy_init(Make make) {
  static_assert(std::is_empty_v<Make>, "a lambda: each is the first call of its own type");
  using T = std::invoke_result_t<Make>;
  static constinit std::atomic<T *> made = nullptr;
  static constinit LazyInit::Entry entry = {[] { delete made.exchange(nullptr); }, nullptr};
  if (T *const known = made.load(std::memory_order_acquire)) return *known;
  std::unique_ptr<T> own(new T(make()));
  T *others = nullptr;
  if (!made.compare_exchange_strong(others, own.get(), std::memory_order_acq_rel)) return *others;
  LazyInit::add(entry);
  return *own.release();
}

// ---------------------------------------------------------------------------- thread-local objects

/// Thread-local object on the heap.  A thread_local variable would use space in every thread of the
/// process, even in threads that never use it.  It would also need a registered destructor: if the
/// registration runs out of memory, the C library ends the process, whereas this class throws
/// std::bad_alloc.
template <class T>
class ThreadLocal {
 public:
  static T &get() {
    if (T *const known = of_this_thread) return *known;
    return make();
  }
  /// Returns NULL if this thread has not created its object yet.
  static T *find() { return of_this_thread; }

 private:
  /// Created at load time.  If it were created lazily, the child of a fork could wait for a thread
  /// that does not exist there.
  struct Key {
    Key() : is_made(pthread_key_create(&key, destroy) == 0) {}
    /// Ends the use of the key.  After unload, remaining threads must not call the destructor when
    /// they end.  At process exit, objects created later are leaked.
    ~Key() {
      is_gone = true;
      if (is_made) pthread_key_delete(key);
      destroy(of_this_thread);
    }
    pthread_key_t key;
    bool is_made;
    static inline std::atomic<bool> is_gone = false;
  };

  static T &make() {
    if (!key.is_made) throw std::bad_alloc();
    auto made = std::make_unique<T>();
    if (!Key::is_gone && pthread_setspecific(key.key, made.get()) != 0 && !Key::is_gone)
      throw std::bad_alloc();
    return *(of_this_thread = made.release());
  }
  static void destroy(void *object) {
    of_this_thread = nullptr;
    delete static_cast<T *>(object);
  }

  static inline constinit thread_local T *of_this_thread = nullptr;
  static inline Key key;
};

// ---------------------------------------------------------------------------- fork

/// Holds a mutex during fork, so that no thread that is missing in the child owns it.  Must not be
/// used for a mutex under which a thread may fork.
template <auto &kMutex>
struct ForkGuard {
  ForkGuard() {
    pthread_atfork([] { kMutex.lock(); }, [] { kMutex.unlock(); }, [] { kMutex.unlock(); });
  }
};

}  // namespace mp
