// Lazy initialization of process-wide objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
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

}  // namespace mp
