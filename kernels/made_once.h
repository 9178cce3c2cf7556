// What a process makes once, at its first use.
#pragma once

#include <atomic>
#include <memory>
#include <type_traits>

namespace mp {

/// What `make` returns, from the first call with it on.  Unlike a local static variable it waits for no other
/// thread, since in the child of a fork that thread is not there: threads that come at the same time make one
/// each, and the first stays.  Never destroyed, as threads may be in calls while the process ends.  What `make`
/// throws is not remembered: the next call tries again.
template <typename Make>
std::invoke_result_t<Make> &made_once(Make make) {
  static_assert(std::is_empty_v<Make>, "a lambda: each is the first call of its own type");
  using T = std::invoke_result_t<Make>;
  static constinit std::atomic<T *> made = nullptr;
  if (T *const known = made.load(std::memory_order_acquire)) return *known;
  std::unique_ptr<T> own(new T(make()));
  T *others = nullptr;
  return made.compare_exchange_strong(others, own.get(), std::memory_order_acq_rel) ? *own.release()
                                                                                    : *others;
}

}  // namespace mp
