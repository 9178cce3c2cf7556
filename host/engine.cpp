// Launches: fibers of a cluster on one OS thread, the choice of the next one, block_sync and warp
// collectives, and reports of violations and deadlocks.
#include "host/engine.h"

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "base/lifetime.h"
#include "base/target_error.h"
#include "host/cluster.h"
#include "host/fiber.h"
#include "host/workers.h"

namespace mp::host::engine {

constinit thread_local Thread *current = nullptr;

Thread &this_thread() noexcept {
  return *current;
}

// ---------------------------------------------------------------- engine of an OS thread

class Engine {
 public:
  Engine() : fibers_(kMaxClusterThreads, &Engine::fiber_main), main_(fiber_of_os_thread()) {}
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  static Engine &of_this_thread();

  /// Returns the engine that runs the calling kernel.
  static Engine &running() { return *current->engine; }

  /// Allocates before the first thread of the grid runs, so that failures occur here.
  void prepare(const Grid &grid) { state_.prepare(grid); }

  void run_cluster(const Grid &grid, int64_t index) {
    grid_ = &grid;
    error_.clear();
    state_.begin(grid, index);
    picked_warp_ = 0;
    Fiber &fiber = fibers_.take();
    fiber.start = current_ = pick();
    resume(main_, fiber);
    current_ = nullptr;
    if (cluster_.alive > 0 || !error_.empty() || thrown_) abandon_cluster();
    for (const Block &block : state_.blocks())
      if (const std::string damage = block.smem->damage(); !damage.empty())
        throw TargetError(MP_ERROR_INTERNAL, describe(block) + " " + damage);
  }

  // Called from within a kernel, through the free functions below.

  [[noreturn]] void stop(const char *what, source_location where) {
    error_ = describe(*current_->block) + " thread " + std::to_string(current_->index) + " " +
             what + " at " + file_and_line(where).text;
    resume(*running_, main_);
    std::abort();  // an abandoned fiber is never resumed
  }

  void wait(Thread &me, const char *waits_in, source_location where, WaitsFor waits_for) {
    me.waits_in = waits_in;
    me.waits_at = where;
    me.waits_for = waits_for;
    Thread *const next = pick();
    if (next == nullptr) {
      resume(*me.fiber, main_);  // deadlock, reported by run_cluster
      std::abort();
    }
    current_ = next;
    if (next->fiber == nullptr) {
      next->fiber = &fibers_.take();
      next->fiber->start = next;
    }
    resume(*me.fiber, *next->fiber);
  }

  void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                        source_location where) {
    void *const variable = current_->block->smem->find(key);
    if (variable != nullptr) return variable;
    for (const Block &block : state_.blocks())
      if (block.smem->add(key, name, bytes, alignment) == nullptr)
        violation(where,
                  "requires %zu bytes for shared %s, but the block exceeds %zu bytes with them",
                  bytes, name, kSmemBytes);
    return current_->block->smem->find(key);
  }

 private:
  /// Returns the next thread to run, or NULL if none is ready.  The lanes of a warp run in order,
  /// then those of the next warp.
  Thread *pick() {
    for (int w = 0; w < cluster_.num_warps; w++) {
      Warp &warp = cluster_.warps[picked_warp_];
      if (warp.ready != 0) {
        const int lane = std::countr_zero(warp.ready);
        warp.ready &= warp.ready - 1;
        return warp.lanes + lane;
      }
      picked_warp_ = picked_warp_ + 1 < cluster_.num_warps ? picked_warp_ + 1 : 0;
    }
    return nullptr;
  }

  static void fiber_main(boost::context::detail::transfer_t arrived) {
    enter_fiber(arrived);
    Engine &engine = running();
    Fiber &self = *engine.running_;
    try {
      engine.run_threads(self);
    } catch (...) {  // no frame below could catch it
      engine.thrown_ = std::current_exception();
    }
    engine.resume(self, engine.main_);  // run_cluster rethrows it
    std::abort();                       // an abandoned fiber is never resumed
  }

  /// Main loop of a fiber: runs its assigned thread, then threads that have not started yet.
  void run_threads(Fiber &self) {
    for (;;) {
      Thread *next = std::exchange(self.start, nullptr);
      do {
        next->fiber = &self;
        current_ = next;
        grid_->body(grid_->arguments);
        finish(*current_);
        next = pick();
      } while (next != nullptr && next->fiber == nullptr);
      fibers_.give_back(self);
      current_ = next;
      resume(self, next != nullptr ? *next->fiber : main_);
    }
  }

  void resume(Fiber &from, Fiber &to) {
    running_ = &to;
    switch_fiber(from, to);
  }

  /// Retires a thread that has returned from the kernel.  Barriers of the block and the cluster no
  /// longer count it; a warp collective that still expects it can never complete.
  void finish(Thread &thread) {
    Block &block = *thread.block;
    thread.warp->alive &= ~(1u << thread.lane);
    block.alive--;
    cluster_.alive--;
    if (block.alive > 0 && block.at_barrier == block.alive) release_block_barrier(block);
    if (cluster_.at_sync > 0 && cluster_.at_sync == cluster_.alive)
      release_cluster_barrier(cluster_);
  }

  // ---- failure

  std::string describe(const Block &block) const {
    return std::string(grid_->kernel) + ": block " + std::to_string(block.index);
  }

  [[noreturn]] void abandon_cluster() {
    const Abandoned abandoned{*this};
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    if (error_.empty()) error_ = deadlock_report();
    throw TargetError(MP_ERROR_INTERNAL, error_);
  }

  /// Scope guard that drops the state of an abandoned cluster, also if an exception is thrown.
  struct Abandoned {
    Engine &engine;
    ~Abandoned() {
      engine.fibers_.reset();
      engine.state_.abandon();
    }
  };

  std::string deadlock_report() const {
    constexpr size_t kMaxPlaces = 8;
    std::string report = describe(cluster_.blocks[0]);
    if (cluster_.size > 1) report += " and its cluster";
    report += " deadlocked;";
    std::vector<std::string> seen;
    for (const Thread &thread : state_.threads()) {
      if ((thread.warp->alive >> thread.lane & 1) == 0 || thread.fiber == nullptr) continue;
      std::string place = std::string(" waits in ") + thread.waits_in + " at " +
                          file_and_line(thread.waits_at).text;
      if (thread.waits_for.describe != nullptr)
        place = place + " " + thread.waits_for.describe(thread.waits_for.object).text;
      if (std::find(seen.begin(), seen.end(), place) != seen.end() || seen.size() == kMaxPlaces)
        continue;
      report += (seen.empty() ? " thread " : ", thread ") + std::to_string(thread.index);
      if (cluster_.size > 1) report += " of block " + std::to_string(thread.block->index);
      report += place;
      seen.push_back(place);
    }
    return report;
  }

  Thread *&current_ = current;  ///< cached: one thread-local lookup
  FiberPool fibers_;
  Fiber main_;
  Fiber *running_ = nullptr;
  const Grid *grid_ = nullptr;
  std::string error_;
  std::exception_ptr thrown_;  ///< exception of a thread of the cluster
  ClusterState state_{this};
  Cluster &cluster_ = state_.cluster();
  int picked_warp_ = 0;
};

/// Engine of an OS thread, from its first launch to release_workers().
struct EngineSlot {
  std::optional<Engine> engine;
  ThreadCache registration{[this] { engine.reset(); }};
};

Engine &Engine::of_this_thread() {
  std::optional<Engine> &engine = ThreadLocal<EngineSlot>::get().engine;
  return engine ? *engine : engine.emplace();
}

// ---------------------------------------------------------------- interface

Text words(const char *format, ...) {
  Text said;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(said.text, sizeof said.text, format, arguments);
  va_end(arguments);
  return said;
}
Text file_and_line(const source_location &where) {
  const char *const path = where.file_name();
  const char *const slash = std::strrchr(path, '/');
  return words("%s:%u", slash != nullptr ? slash + 1 : path, static_cast<unsigned>(where.line()));
}

void violation(source_location where, const char *format, ...) {
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  Engine::running().stop(text, where);
}
void block_until_woken(Thread &me, const char *waits_in, source_location where,
                       WaitsFor waits_for) {
  me.engine->wait(me, waits_in, where, waits_for);
}
void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                      source_location where) {
  return Engine::running().shared_variable(key, name, bytes, alignment, where);
}

// ---------------------------------------------------------------- block_sync and warp collectives

void block_barrier(Thread &me, source_location where) {
  Block &block = *me.block;
  if (block.at_barrier + 1 == block.alive) {
    release_block_barrier(block);
    return;
  }
  block.at_barrier++;
  block.barrier_waiting[me.warp->index] |= 1u << me.lane;
  block_until_woken(me, "block_sync", where);
}

void release_block_barrier(Block &block) {
  block.at_barrier = 0;
  wake_waiting(block.warps, block.num_warps(), block.barrier_waiting);
}

void warp_collective(Thread &me, const char *collective, void (*combine)(Warp &),
                     source_location where) {
  Warp &warp = *me.warp;
  warp.arrived |= 1u << me.lane;
  if (warp.arrived != ~0u) {
    block_until_woken(me, collective, where);
    return;
  }
  warp.arrived = 0;
  if (combine != nullptr) combine(warp);
  wake(warp, ~(1u << me.lane));
}

// ---------------------------------------------------------------- launches

void run(const Grid &grid) {
  const auto refuse = [&grid](const std::string &why) {
    throw TargetError(MP_ERROR_INTERNAL, std::string(grid.kernel) + ": " + why);
  };
  if (grid.num_blocks < 1)
    refuse("a grid of " + std::to_string(grid.num_blocks) + " blocks is empty");
  if (grid.num_threads % kWarpSize != 0 || grid.num_threads < kWarpSize ||
      grid.num_threads > kMaxThreads)
    refuse(std::to_string(grid.num_threads) +
           " threads per block is not a multiple of 32 up to 1024");
  if (grid.cluster < 1 || grid.cluster > kMaxCluster)
    refuse(std::to_string(grid.cluster) + " blocks per cluster is outside [1, 8]");
  if (grid.num_blocks % grid.cluster != 0)
    refuse("a grid of " + std::to_string(grid.num_blocks) +
           " blocks does not divide into clusters of " + std::to_string(grid.cluster));
  if (grid.cluster * grid.num_threads > kMaxClusterThreads)
    refuse("a cluster of " + std::to_string(grid.cluster) + " blocks of " +
           std::to_string(grid.num_threads) + " threads exceeds the " +
           std::to_string(kMaxClusterThreads) + " threads of this simulator");
  if (grid.dynamic_smem_bytes > kSmemBytes)
    refuse(std::to_string(grid.dynamic_smem_bytes) +
           " bytes of shared memory exceed the limit of a block");
  const auto run_cluster = [&grid](int64_t index) {
    Engine::of_this_thread().run_cluster(grid, index);
  };
  const auto prepare = [&grid] { Engine::of_this_thread().prepare(grid); };
  run_on_workers({grid.num_blocks / grid.cluster, prepare, run_cluster}, grid.max_workers);
}

}  // namespace mp::host::engine
