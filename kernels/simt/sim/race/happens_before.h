// Who knows what: vector clocks of the threads of a cluster and of its asynchronous operations.
//
// An event is stamped with the clock of its agent.  Agents that run code are warps; a warp's clock
// steps on whenever one of its lanes tells what it did.  What is known of a warp differs from lane
// to lane, so it is kept for each.  Asynchronous agents have a clock that counts what completes:
//
//   copies of a thread      (cp.async)  its groups
//   stores of a thread      (TMA)       its groups, once they have read their source
//   multiplies of a warp    (wgmma)     its groups; every warp waits for its own share
//   loads on an mbarrier    (TMA)       its phases
//
// Besides, a thread knows which writes asynchronous operations see: all those it knew of when it
// fenced, and those of which others that fenced have told it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/simt/sim/engine.h"

namespace mp::host::engine::race {

/// Threads and warps are counted through the cluster here.
enum class Agent : uint32_t { warp, copies, stores, multiplies, loads };

struct Event {
  Agent agent;
  uint32_t
      index;  ///< of the warp, thread or mbarrier; for multiplies, of the warpgroup's first warp
  uint32_t clock;  ///< 0: none
  uint32_t lanes;  ///< of the warp
  const void *code;
};

/// For every place, the clock up to which events are known.  Places: see Knowledge.
class Clocks {
 public:
  uint32_t at(size_t place) const { return place < of_.size() ? of_[place] : 0; }
  void set(size_t place, uint32_t clock);
  void raise(size_t place, uint32_t clock);
  void unite(const Clocks &);
  void intersect(const Clocks &);
  /// Raises count places from `to` on to those from `from` on.
  void raise_range(size_t to, size_t from, size_t count);

  /// Of each warp, the least of its lanes; valid after summarise.
  uint32_t of_warp(uint32_t warp) const { return of_warp_[warp]; }
  void summarise(uint32_t num_warps);

 private:
  std::vector<uint32_t> of_;
  std::vector<uint32_t> of_warp_;
};
using Known = std::shared_ptr<const Clocks>;

/// What threads have told whoever will acquire it.
struct Released {
  Clocks clocks;
  Known newest;  ///< which is part of them
};

class Knowledge {
 public:
  void begin_cluster(uint32_t num_warps);

  uint32_t clock_of_warp(uint32_t warp) const { return clock_[warp]; }

  /// All threads of these warps know what any of them knows and did.
  void join(const Warp *warps, size_t num_warps);
  void release(uint32_t thread, Released &);
  Known publish(const Released &) const;
  void acquire(uint32_t thread, const Known &);
  void fence(uint32_t thread);
  /// The thread has waited for its own asynchronous operations, or its warp's.
  void complete(uint32_t thread, Agent, uint32_t clock);
  /// Of that mbarrier, and with whatever else was released there.
  void complete_loads(uint32_t mbarrier, uint32_t num_phases, Released &) const;

  /// Who must know of an event: valid until anybody learns anything.
  struct Knower {
    const Clocks *known;
    uint32_t thread;  ///< kNobody: all threads of a warpgroup
  };
  Knower thread(uint32_t thread) const { return {known_[thread].get(), thread}; }
  Knower warpgroup(uint32_t first_warp) { return {&common(first_warp), kNobody}; }

  /// Is that event before what they do now?
  bool knows(const Knower &who, const Event &event) const {
    return (event.agent == Agent::warp && event.clock <= who.known->of_warp(event.index)) ||
           knows_in_part(who, event);
  }
  /// If it is a write by threads: would an operation that they start now see it?
  bool knows_fenced(const Knower &, const Event &) const;

 private:
  static constexpr uint32_t kNobody = ~0u;

  /// What a thread knows of itself.
  struct Own {
    uint32_t fenced, copies, stores, multiplies;
  };
  struct Common {
    uint64_t version;
    Clocks clocks;
  };
  struct Memo {
    Known known, acquired, result;
  };

  // Where a Clocks keeps what.
  size_t lane_place(uint32_t thread) const { return thread; }
  size_t fence_place(uint32_t thread) const { return num_threads_ + thread; }
  size_t place(Agent, uint32_t index) const;

  template <class Test>
  bool every_place(const Event &, Test) const;
  bool knows_in_part(const Knower &, const Event &) const;
  uint32_t own_clock(uint32_t thread, size_t place) const;
  void tell(uint32_t thread, Clocks &) const;
  void set(uint32_t thread, Known);
  const Clocks &common(uint32_t first_warp);
  Clocks common_clocks(uint32_t first_thread) const;

  uint32_t num_threads_ = 0;
  uint32_t num_warps_ = 0;
  std::vector<uint32_t> clock_;  ///< by warp
  std::vector<Known> known_;     ///< by thread
  std::vector<Own> own_;         ///< by thread
  std::array<Memo, 8> memo_;     ///< the lanes of a warp often acquire the same
  size_t next_memo_ = 0;
  std::vector<Common> common_;  ///< by warpgroup
  uint64_t version_ = 0;        ///< steps on when a thread learns something
};

}  // namespace mp::host::engine::race
