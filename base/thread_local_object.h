// One object for each thread that asks for it, gone when its thread ends.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <new>

namespace mp {

/// On the heap: every thread of the process may get thread_local space, whether it uses it or not.  And
/// thread_local variables have no destructors here: where there is no memory to register one with, the C
/// library ends the process, while this throws std::bad_alloc.
template <class T>
class ThreadLocal {
 public:
  static T &get() {
    if (T *const known = of_this_thread) return *known;
    return make();
  }
  /// NULL where this thread has not asked for it yet.
  static T *find() { return of_this_thread; }

 private:
  /// Made while the library is loaded: the child of a fork would wait for a thread that was about to make it.
  struct Key {
    Key() : is_made(pthread_key_create(&key, destroy) == 0) {}
    /// The library is unloaded: threads that live on must not call it when they end.  Or the process ends:
    /// objects that calls ask for from then on stay.
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

}  // namespace mp
