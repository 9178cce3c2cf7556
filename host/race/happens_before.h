// Happens-before relation of the threads of a cluster and its asynchronous operations.
//
// Every access has an epoch, as in FastTrack: an agent and the value of the agent's clock at that
// time.  Every thread has a vector clock with one component per agent.  An access happened before
// the current point of a thread if the thread's component for that agent has reached the epoch's
// clock.
//
// Agents that run code are warps.  A warp's clock advances whenever one of its lanes releases.
// Lanes synchronize individually, so a vector clock has a component per lane.  The clock of an
// asynchronous agent counts completions:
//
//     copies of a thread      (cp.async)  its groups
//     stores of a thread      (TMA)       its groups, once they have read their source
//     multiplies of a warp    (wgmma)     its groups; every warp waits for its own part
//     loads on an mbarrier    (TMA)       its phases
//
// A second component per thread holds the clock up to which a proxy fence orders that thread's
// writes, so that asynchronous operations see them.  A fence orders all writes that happened before
// it, including those of other threads.  Release and acquire propagate this component.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine::race {

/// Threads and warps are numbered within the cluster.
enum class Agent : uint32_t { warp, copies, stores, multiplies, loads };

struct Epoch {
  Agent agent;
  uint32_t index;    ///< warp, thread or mbarrier; for multiplies, the warpgroup's first warp
  uint32_t clock;    ///< 0: before everything
  uint32_t lanes;    ///< lanes of the warp
  const void *code;  ///< code location, for reports
};

/// Components are assigned by HappensBefore; components beyond the last are 0.
class VectorClock {
 public:
  uint32_t at(size_t component) const {
    return component < components_.size() ? components_[component] : 0;
  }
  void set(size_t component, uint32_t clock);
  void raise(size_t component, uint32_t clock);
  /// Takes the maximum per component: the least clock that is not before either.
  void join(const VectorClock &);
  /// Takes the minimum per component: everything that happened before both.
  void meet(const VectorClock &);
  /// Raises components [to, to + count) to the values of [from, from + count).
  void raise_range(size_t to, size_t from, size_t count);

  /// Returns the minimum over the lanes of a warp; valid after update_warp_minima.
  uint32_t minimum_of_warp(uint32_t warp) const { return warp_minima_[warp]; }
  void update_warp_minima(uint32_t num_warps);

 private:
  std::vector<uint32_t> components_;
  std::vector<uint32_t> warp_minima_;
};
/// Clock that synchronized threads share.
using SharedClock = std::shared_ptr<const VectorClock>;

/// Clock of a barrier: accumulates its releases for later acquires.
struct BarrierClock {
  VectorClock clock;
  SharedClock newest;  ///< last clock joined, to skip repeated joins of a shared clock
};

class HappensBefore {
 public:
  void begin_cluster(uint32_t num_warps);

  uint32_t clock_of_warp(uint32_t warp) const { return warp_clock_[warp]; }

  /// Orders all earlier accesses of these warps before all later ones.
  void join(const Warp *warps, size_t num_warps);
  void release(uint32_t thread, BarrierClock &);
  /// Returns the clock that waits for the phase acquire.
  SharedClock publish(const BarrierClock &) const;
  void acquire(uint32_t thread, const SharedClock &);
  void fence(uint32_t thread);
  /// Records that the thread has waited for asynchronous operations of itself or its warp.
  void complete(uint32_t thread, Agent, uint32_t clock);
  /// Completes the TMA loads of an mbarrier's first `num_phases` phases, which waits acquire.
  void complete_loads(uint32_t mbarrier, uint32_t num_phases, BarrierClock &) const;

  /// Observer of an access: one thread, or all threads of a warpgroup together.  Valid until the
  /// next change of any clock.
  struct Observer {
    const VectorClock *clock;
    uint32_t thread;  ///< kWarpgroup for a warpgroup
  };
  Observer thread(uint32_t thread) const { return {clock_[thread].get(), thread}; }
  Observer warpgroup(uint32_t first_warp) { return {&warpgroup_clock(first_warp), kWarpgroup}; }

  /// Returns whether the access happened before the observer's current point.
  bool happened_before(const Epoch &epoch, const Observer &observer) const {
    return (epoch.agent == Agent::warp &&
            epoch.clock <= observer.clock->minimum_of_warp(epoch.index)) ||
           happened_before_in_parts(epoch, observer);
  }
  /// Returns whether an asynchronous operation that the observer issues now sees the write.  Always
  /// true for writes of asynchronous agents.
  bool fenced_before(const Epoch &, const Observer &) const;

 private:
  static constexpr uint32_t kWarpgroup = ~0u;

  /// Components of a thread that concern only itself.  They are separate, so that its vector clock
  /// can stay shared, and are added when the thread releases.
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
  /// Returns a component; for a warp, that of its lane 0.
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
  std::vector<SharedClock> clock_;  ///< per thread
  std::vector<OwnClock> own_;       ///< per thread
  std::array<Memo, 8> memo_;        ///< lanes of a warp often acquire the same clock
  size_t next_memo_ = 0;
  std::vector<WarpgroupClock> warpgroup_clock_;
  uint64_t version_ = 0;  ///< advances with every change of a thread's clock
};

}  // namespace mp::host::engine::race
