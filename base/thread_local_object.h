// Thread-local objects, created at first use and destroyed when their thread ends.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <new>

namespace mp {

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

}  // namespace mp
