// The scheduler of the simulator: fibers of one cluster at a time, clusters over OS threads.
#include "kernels/simt/sim/engine.h"

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/simt/sim/async_proxy.h"
#include "kernels/simt/sim/barriers.h"
#include "kernels/simt/sim/fiber.h"
#include "kernels/simt/sim/race.h"
#include "kernels/simt/sim/random.h"
#include "kernels/simt/sim/shared_memory.h"
#include "kernels/simt/sim/wgmma.h"
#include "kernels/simt/sim/workers.h"

namespace mp::host::engine {

constinit thread_local Thread *current = nullptr;

Thread &this_thread() noexcept {
  return *current;
}

namespace {

const char *without_folders(const char *path) {
  const char *const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

}  // namespace

// ---------------------------------------------------------------- one OS thread's engine

class Engine {
 public:
  Engine() : fibers_(kMaxThreads, &Engine::fiber_main), main_(fiber_of_os_thread()) {}
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  static Engine &of_this_thread() {
    // On the heap: every thread of the process may get thread_local space, whether it uses it or not.
    static thread_local const auto engine = std::make_unique<Engine>();
    return *engine;
  }

  /// The one that the caller, a kernel, runs on.
  static Engine &running() { return *current->engine; }

  void run_cluster(const Grid &grid, int64_t index) {
    begin_cluster(grid, index);
    Thread *const first = pick();
    Fiber &fiber = fibers_.take();
    fiber.start = current_ = first;
    resume(main_, fiber);
    current_ = nullptr;
    if (cluster_.alive > 0 || !error_.empty()) abandon_cluster();
    for (const Block &block : blocks_) {
      for (const std::string &damage : {block.smem->damage(), block.barriers->unfinished()})
        if (!damage.empty()) throw Violation(describe(block) + " " + damage);
    }
  }

  // Called from inside a kernel, through the free functions below.

  [[noreturn]] void stop(const char *what, source_location where) {
    note_violation(what, where);
    resume(*running_, main_);
    std::abort();  // an abandoned fiber is never resumed
  }

  void wait(Thread &me, const char *waits_in, source_location where, WaitsFor waits_for) {
    me.waits_in = waits_in;
    me.waits_at = where;
    me.waits_for = waits_for;
    Thread *const next = pick();
    if (next == nullptr) {
      resume(*me.fiber, main_);  // deadlock: run_cluster reports it
      std::abort();
    }
    current_ = next;
    if (next == &me) return;  // an asynchronous operation has woken it
    if (next->fiber == nullptr) {
      next->fiber = &fibers_.take();
      next->fiber->start = next;
    }
    resume(*me.fiber, *next->fiber);
  }

  void wake(Warp &warp, uint32_t lanes) {
    warp.ready |= lanes;
    ready_warps_ |= 1u << warp.slot;
  }

  void may_switch(source_location where) {
    constexpr uint32_t kPlacesPerSwitch = 4;
    if (!mode_.strict || random_.next() % kPlacesPerSwitch != 0) return;
    Thread &me = *current_;
    wake(*me.warp, 1u << me.lane);
    wait(me, "nothing", where, {});
  }

  void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                        source_location where) {
    void *const variable = current_->block->smem->find(key);
    if (variable != nullptr) return variable;
    for (const Block &block : blocks_)
      if (block.smem->add(key, name, bytes, alignment) == nullptr)
        violation(where, "needs %zu bytes for shared %s, more than are left of the %zu of a block",
                  bytes, name, kSmemBytes);
    return current_->block->smem->find(key);
  }

  bool defer_copy() {
    if (mode_.copies == CopyTiming::random) return random_.next() & 1;
    return mode_.copies == CopyTiming::late;
  }

  void keep_async(std::function<void()> perform) {
    async_.push_back({current_, std::move(perform)});
  }

 private:
  struct AsyncOperation {
    Thread *started_by;
    std::function<void()> perform;
  };

  static void fiber_main(boost::context::detail::transfer_t arrived) {
    enter_fiber(arrived);
    Engine &engine = running();
    engine.run_threads(*engine.running_);
  }

  /// A fiber's life: run the thread it was given, then any thread that has not started yet.
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

  /// The next lane to run, NULL if none can: in order within its warp, then the next warp; or, in
  /// the strict mode, any that can.
  Thread *pick() {
    if (mode_.strict) return pick_any();
    if (warps_[current_warp_].ready == 0 && !find_ready_warp(current_warp_)) return nullptr;
    return take_lane(0);
  }

  Thread *pick_any() {
    constexpr uint32_t kSwitchesPerOperation = 4;
    if (!async_.empty() && mode_.copies == CopyTiming::random &&
        random_.next() % kSwitchesPerOperation == 0)
      perform_async();
    if (--switches_held_ <= 0) hold_back();
    const int start = static_cast<int>(random_.next() % warps_.size());
    if (find_ready_warp(start, ~held_back_))
      return take_lane(static_cast<int>(random_.next() % kWarpSize));
    while (!find_ready_warp(start)) {
      if (async_.empty()) return nullptr;
      perform_async();
    }
    return take_lane(static_cast<int>(random_.next() % kWarpSize));
  }

  /// For a while a quarter of the warps, or one block, runs only when nothing else can: a choice
  /// made anew at each switch would keep all warps at about the same place.
  void hold_back() {
    const Block &block = blocks_[random_.next() % blocks_.size()];
    const uint32_t warps = static_cast<uint32_t>((uint64_t{1} << block.num_warps()) - 1);
    const bool whole_block = blocks_.size() > 1 && random_.next() % 2 == 0;
    held_back_ = whole_block ? warps << block.warps->slot : random_.next() & random_.next();
    switches_held_ = 64 << random_.next() % 8;
  }

  /// Makes it current_warp_: the first of `among` that is ready, counted from warp `start` on.
  bool find_ready_warp(int start, uint32_t among = ~0u) {
    while ((ready_warps_ & among) != 0) {
      const int slot =
          (std::countr_zero(std::rotr(ready_warps_ & among, start)) + start) % kWarpSize;
      if (warps_[slot].ready != 0) {
        current_warp_ = slot;
        return true;
      }
      ready_warps_ &= ~(1u << slot);
    }
    return false;
  }

  Thread *take_lane(int start) {
    Warp &warp = warps_[current_warp_];
    const int lane = (std::countr_zero(std::rotr(warp.ready, start)) + start) % kWarpSize;
    warp.ready &= ~(1u << lane);
    return warp.lanes + lane;
  }

  /// Performs any one of the operations, on the stack of the running fiber.
  void perform_async() {
    std::swap(async_[random_.next() % async_.size()], async_.back());
    performing_ = std::move(async_.back());
    async_.pop_back();
    current_ = performing_.started_by;
    performing_.perform();
  }

  /// A thread returned from the kernel.  Barriers of the block and the cluster no longer count it;
  /// a warp collective that still expects it can never complete.
  void finish(Thread &thread) {
    Warp &warp = *thread.warp;
    Block &block = *thread.block;
    finish_bulk_stores();
    warp.alive &= ~(1u << thread.lane);
    block.alive--;
    cluster_.alive--;
    if (warp.arrived != 0)
      violation(warp.collective_at, "returned while its warp waits for it in %s", warp.collective);
    check_warpgroup_left(thread);
    if (block.alive > 0 && block.at_barrier == block.alive) release_block_barrier(block);
    if (cluster_.at_sync > 0 && cluster_.at_sync == cluster_.alive)
      release_cluster_barrier(cluster_);
  }

  void begin_cluster(const Grid &grid, int64_t index) {
    grid_ = &grid;
    mode_ = mode();
    random_.seed(mode_.seed * 1000003 + static_cast<uint64_t>(index) + 1);
    error_.clear();
    async_.clear();
    if (threads_.size() != static_cast<size_t>(grid.cluster) * grid.num_threads ||
        blocks_.size() != static_cast<size_t>(grid.cluster))
      shape_cluster(grid.cluster, grid.num_threads);
    cluster_.alive = static_cast<int>(threads_.size());
    cluster_.num_mbarriers = 0;
    cluster_.at_sync = 0;
    current_warp_ = 0;
    ready_warps_ = 0;
    hold_back();
    for (Warp &warp : warps_) {
      warp.alive = ~0u;
      warp.arrived = 0;
      warp.mma_done = 0;
      warp.mma_waiting = 0;
      cluster_.sync_waiting[warp.slot] = 0;
      for (int i = 0; i < kMmaSlots; i++) warp.mma[i].arrived = 0;
      wake(warp, ~0u);
    }
    for (Thread &thread : threads_) {
      thread.fiber = nullptr;
      thread.mma_issued = 0;
      thread.copy_group = 0;
      if (!thread.copies.empty()) thread.copies.clear();
    }
    for (Block &block : blocks_) {
      block.index = index * grid.cluster + block.rank;
      block.grid_size = grid.num_blocks;
      block.alive = grid.num_threads;
      block.at_barrier = 0;
      for (int w = 0; w < block.num_warps(); w++) block.barrier_waiting[w] = 0;
      block.smem->begin_block(grid.dynamic_smem_bytes, mode_);
      block.dynamic_smem = block.smem->dynamic();
      block.barriers->begin_block();
      block.async_proxy->begin_block();
      block.warpgroups->begin_block();
    }
    race::begin_cluster(cluster_);
  }

  void shape_cluster(int num_blocks, int num_threads) {
    const int num_warps = num_blocks * num_threads / kWarpSize;
    threads_ = std::vector<Thread>(static_cast<size_t>(num_blocks) * num_threads);
    warps_ = std::vector<Warp>(static_cast<size_t>(num_warps));
    mma_ = std::vector<MmaSlot>(static_cast<size_t>(num_warps) * kMmaSlots);
    blocks_ = std::vector<Block>(static_cast<size_t>(num_blocks));
    while (memories_.size() < blocks_.size()) {
      memories_.push_back(std::make_unique<SharedMemory>());
      barriers_.push_back(std::make_unique<Barriers>());
      async_proxies_.push_back(std::make_unique<AsyncProxy>());
      warpgroups_.push_back(std::make_unique<Warpgroups>());
    }
    cluster_.blocks = blocks_.data();
    cluster_.size = num_blocks;
    cluster_.warps = warps_.data();
    cluster_.num_warps = num_warps;
    for (int b = 0; b < num_blocks; b++) shape_block(b, num_threads);
  }

  void shape_block(int rank, int num_threads) {
    Block &block = blocks_[rank];
    block.cluster = &cluster_;
    block.rank = rank;
    block.num_threads = num_threads;
    block.warps = &warps_[static_cast<size_t>(rank) * num_threads / kWarpSize];
    block.smem = memories_[rank].get();
    block.barriers = barriers_[rank].get();
    block.async_proxy = async_proxies_[rank].get();
    block.warpgroups = warpgroups_[rank].get();
    for (int w = 0; w < block.num_warps(); w++) {
      Warp &warp = block.warps[w];
      warp.block = &block;
      warp.index = w;
      warp.slot = static_cast<int>(&warp - warps_.data());
      warp.lanes = &threads_[static_cast<size_t>(warp.slot) * kWarpSize];
      warp.mma = &mma_[static_cast<size_t>(warp.slot) * kMmaSlots];
      for (int lane = 0; lane < kWarpSize; lane++) {
        warp.lanes[lane].warp = &warp;
        warp.lanes[lane].block = &block;
        warp.lanes[lane].engine = this;
        warp.lanes[lane].index = w * kWarpSize + lane;
        warp.lanes[lane].lane = lane;
      }
    }
  }

  // ---- failure

  void note_violation(const char *what, source_location where) {
    error_ = describe(*current_->block) + " thread " + std::to_string(current_->index) + " " + what;
    if (where.line() != 0) {
      error_ += " at ";
      error_ += file_and_line(where).text;
    }
  }

  std::string describe(const Block &block) const {
    return std::string(grid_->kernel) + ": block " + std::to_string(block.index);
  }

  [[noreturn]] void abandon_cluster() {
    if (error_.empty()) error_ = deadlock_report();
    fibers_.reset();
    threads_.clear();
    async_.clear();
    performing_ = {};
    throw Violation(error_);
  }

  std::string deadlock_report() const {
    constexpr size_t kMaxPlaces = 8;
    std::string report = describe(blocks_.front());
    if (blocks_.size() > 1) report += " and its cluster";
    report += " deadlocked;";
    std::vector<std::string> seen;
    for (const Thread &thread : threads_) {
      if ((thread.warp->alive >> thread.lane & 1) == 0 || thread.fiber == nullptr) continue;
      std::string place = std::string(" waits in ") + thread.waits_in + " at " +
                          file_and_line(thread.waits_at).text;
      if (thread.waits_for.describe != nullptr)
        place += " " + thread.waits_for.describe(thread.waits_for.object);
      if (std::find(seen.begin(), seen.end(), place) != seen.end() || seen.size() == kMaxPlaces)
        continue;
      report += (seen.empty() ? " thread " : ", thread ") + std::to_string(thread.index);
      if (blocks_.size() > 1) report += " of block " + std::to_string(thread.block->index);
      report += place;
      seen.push_back(place);
    }
    return report;
  }

  Thread *&current_ = current;  ///< of this OS thread, looked up once
  FiberPool fibers_;
  Fiber main_;
  Fiber *running_ = nullptr;
  const Grid *grid_ = nullptr;
  Mode mode_;
  Random random_;
  std::string error_;
  Cluster cluster_{};
  std::vector<Block> blocks_;
  std::vector<std::unique_ptr<SharedMemory>> memories_;  ///< by rank; as many as were ever needed
  std::vector<std::unique_ptr<Barriers>> barriers_;      ///< likewise
  std::vector<std::unique_ptr<AsyncProxy>> async_proxies_;
  std::vector<std::unique_ptr<Warpgroups>> warpgroups_;  ///< likewise
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<MmaSlot> mma_;
  std::vector<AsyncOperation> async_;
  AsyncOperation performing_{};
  int current_warp_ = 0;
  uint32_t ready_warps_ = 0;
  uint32_t held_back_ = 0;  ///< warps, by slot
  int switches_held_ = 0;   ///< how long yet
};

// ---------------------------------------------------------------- the interface

Text file_and_line(const source_location &where) {
  Text line;
  std::snprintf(line.text, sizeof line.text, "%s:%u", without_folders(where.file_name()),
                static_cast<unsigned>(where.line()));
  return line;
}
bool same_line(const source_location &a, const source_location &b) {
  return a.line() == b.line() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
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
void wake(Warp &warp, uint32_t lanes) {
  warp.lanes->engine->wake(warp, lanes);
}
void may_switch(source_location where) {
  Engine::running().may_switch(where);
}
bool defer_copy() {
  return Engine::running().defer_copy();
}
void keep_async(std::function<void()> operation) {
  Engine::running().keep_async(std::move(operation));
}
void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                      source_location where) {
  return Engine::running().shared_variable(key, name, bytes, alignment, where);
}

void run(const Grid &grid) {
  const auto refuse = [&grid](const std::string &why) {
    throw Violation(std::string(grid.kernel) + ": " + why);
  };
  if (grid.num_blocks < 1) refuse("a grid of " + std::to_string(grid.num_blocks) + " blocks");
  if (grid.num_threads % kWarpSize != 0 || grid.num_threads < kWarpSize ||
      grid.num_threads > kMaxThreads)
    refuse(std::to_string(grid.num_threads) +
           " threads per block is not a multiple of 32 up to 1024");
  if (grid.cluster < 1 || grid.cluster > kMaxCluster)
    refuse(std::to_string(grid.cluster) + " blocks per cluster is not in 1..8");
  if (grid.num_blocks % grid.cluster != 0)
    refuse("a grid of " + std::to_string(grid.num_blocks) +
           " blocks does not divide into clusters of " + std::to_string(grid.cluster));
  if (grid.cluster * grid.num_threads > kMaxThreads)
    refuse("a cluster of " + std::to_string(grid.cluster) + " blocks of " +
           std::to_string(grid.num_threads) + " threads is more than the 1024 of this simulator");
  if (grid.dynamic_smem_bytes > kSmemBytes)
    refuse(std::to_string(grid.dynamic_smem_bytes) +
           " bytes of shared memory are more than a block has");
  const auto run_cluster = [&grid](int64_t index) {
    Engine::of_this_thread().run_cluster(grid, index);
  };
  const std::string error =
      run_on_workers(grid.num_blocks / grid.cluster, grid.max_workers, run_cluster);
  if (!error.empty()) throw Violation(error);
}

}  // namespace mp::host::engine
