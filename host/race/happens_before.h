// The happens-before relation of the threads of a cluster and of its asynchronous operations.
//
// As in FastTrack, every access has an epoch: an agent and the value of the agent's clock at that
// time.  Every thread has a vector clock with one component per agent.  An access happened before
// what a thread does now if the thread's component for that agent has reached the epoch's clock.
//
// The agents that run code are warps; a warp's clock advances whenever one of its lanes releases.
// Lanes of a warp synchronise one by one, so a vector clock has a component for each lane of a warp.
// The clock of an asynchronous agent counts what has completed:
//
//   copies of a thread      (cp.async)  its groups
//   stores of a thread      (TMA)       its groups, once they have read their source
//   multiplies of a warp    (wgmma)     its groups; every warp waits for its own share
//   loads on an mbarrier    (TMA)       its phases
//
// A second component per thread says up to which clock that thread's writes are ordered by a proxy
// fence, and so are visible to asynchronous operations.  A fence orders all writes that happened
// before it, those of other threads included; release and acquire pass this on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine::race {

/// Threads and warps are numbered through the cluster here.
enum class Agent : uint32_t { warp, copies, stores, multiplies, loads };

struct Epoch {
  Agent agent;
  uint32_t
      index;  ///< of the warp, thread or mbarrier; for multiplies, of the warpgroup's first warp
  uint32_t clock;    ///< 0: before everything
  uint32_t lanes;    ///< of the warp
  const void *code;  ///< of the access, for reports
};

/// Which component belongs to whom is known to HappensBefore; components beyond the last are 0.
class VectorClock {
 public:
  uint32_t at(size_t component) const {
    return component < components_.size() ? components_[component] : 0;
  }
  void set(size_t component, uint32_t clock);
  void raise(size_t component, uint32_t clock);
  /// The maximum of each component: the least clock that is not before either.
  void join(const VectorClock &);
  /// The minimum of each component: what happened before both.
  void meet(const VectorClock &);
  /// Raises `count` components from `to` on to the values of those from `from` on.
  void raise_range(size_t to, size_t from, size_t count);

  /// The minimum over the lanes of a warp; valid after update_warp_minima.
  uint32_t minimum_of_warp(uint32_t warp) const { return warp_minima_[warp]; }
  void update_warp_minima(uint32_t num_warps);

 private:
  std::vector<uint32_t> components_;
  std::vector<uint32_t> warp_minima_;
};
/// Threads that have synchronised share one.
using SharedClock = std::shared_ptr<const VectorClock>;

/// The clock of a barrier: what its releases have joined, for the acquires to come.
struct BarrierClock {
  VectorClock clock;
  SharedClock newest;  ///< the last one that was joined in full
};

class HappensBefore {
 public:
  void begin_cluster(uint32_t num_warps);

  uint32_t clock_of_warp(uint32_t warp) const { return warp_clock_[warp]; }

  /// What any thread of these warps did happens before what any of them does next.
  void join(const Warp *warps, size_t num_warps);
  void release(uint32_t thread, BarrierClock &);
  /// The clock that those who waited for the phase acquire.
  SharedClock publish(const BarrierClock &) const;
  void acquire(uint32_t thread, const SharedClock &);
  void fence(uint32_t thread);
  /// The thread has waited for its own asynchronous operations, or its warp's.
  void complete(uint32_t thread, Agent, uint32_t clock);
  /// The loads of that many phases of an mbarrier have landed, which its waits acquire too.
  void complete_loads(uint32_t mbarrier, uint32_t num_phases, BarrierClock &) const;

  /// Whose view of the past counts: a thread's, or that of all threads of a warpgroup together.
  /// Valid until the next change to any clock.
  struct Observer {
    const VectorClock *clock;
    uint32_t thread;  ///< or kWarpgroup
  };
  Observer thread(uint32_t thread) const { return {clock_[thread].get(), thread}; }
  Observer warpgroup(uint32_t first_warp) { return {&warpgroup_clock(first_warp), kWarpgroup}; }

  /// Did the access happen before what the observer does now?
  bool happened_before(const Epoch &epoch, const Observer &observer) const {
    return (epoch.agent == Agent::warp &&
            epoch.clock <= observer.clock->minimum_of_warp(epoch.index)) ||
           happened_before_in_parts(epoch, observer);
  }
  /// And if it is a write by threads: would an operation that the observer starts now see it?
  bool fenced_before(const Epoch &, const Observer &) const;

 private:
  static constexpr uint32_t kWarpgroup = ~0u;

  /// The components of a thread that concern itself.  They are kept apart from its vector clock,
  /// which can then stay shared, and are added when the thread releases.
  struct OwnClock {
    uint32_t fenced, copies, stores, multiplies;
  };
  struct WarpgroupClock {
    uint64_t version;
    VectorClock clock;
  };
  struct Memo {
    SharedClock clock, acquired, result;
  };

  size_t lane_component(uint32_t thread) const { return thread; }
  size_t fence_component(uint32_t thread) const { return num_threads_ + thread; }
  /// Of a warp, the component of its lane 0.
  size_t component(Agent, uint32_t index) const;

  template <class Test>
  bool every_component(const Epoch &, Test) const;
  bool happened_before_in_parts(const Epoch &, const Observer &) const;
  uint32_t own_clock(uint32_t thread, size_t component) const;
  void add_own(uint32_t thread, VectorClock &) const;
  void set(uint32_t thread, SharedClock);
  const VectorClock &warpgroup_clock(uint32_t first_warp);
  VectorClock meet_of_warpgroup(uint32_t first_thread) const;

  uint32_t num_threads_ = 0;
  uint32_t num_warps_ = 0;
  std::vector<uint32_t> warp_clock_;
  std::vector<SharedClock> clock_;  ///< by thread
  std::vector<OwnClock> own_;       ///< by thread
  std::array<Memo, 8> memo_;        ///< the lanes of a warp often acquire the same
  size_t next_memo_ = 0;
  std::vector<WarpgroupClock> warpgroup_clock_;
  uint64_t version_ = 0;  ///< advances with every change to a thread's clock
};

}  // namespace mp::host::engine::race
