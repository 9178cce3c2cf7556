// The scheduler of the host machine: fibers of one block at a time, blocks over OS threads.
#include "kernels/simt/host/engine.h"

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "kernels/simt/host/fiber.h"
#include "kernels/simt/host/race.h"
#include "kernels/simt/host/shared_memory.h"
#include "kernels/simt/host/workers.h"

namespace mp::host::engine {

constinit thread_local Thread *current = nullptr;

namespace {

// ---------------------------------------------------------------- mood

int64_t environment_integer(const char *name, int64_t otherwise) {
  const char *const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoll(text, nullptr, 10) : otherwise;
}

Mood mood_from_environment() {
  const char *const text = std::getenv("MP_HOST_MOOD");
  if (text == nullptr || std::strcmp(text, "strict") != 0) return Mood::plain();
  return Mood::strict_with(static_cast<uint64_t>(environment_integer("MP_HOST_SEED", 1)));
}

Mood &process_mood() {
  static Mood mood = mood_from_environment();
  return mood;
}

/// xorshift64*: the schedule must be the same for the same seed on every machine.
class Random {
 public:
  void seed(uint64_t value) { state_ = value * 0x9E3779B97F4A7C15u | 1; }
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>(state_ * 0x2545F4914F6CDD1Du >> 32);
  }

 private:
  uint64_t state_ = 1;
};

std::string to_string(Where where) {
  return std::string(where.name()) + ":" + std::to_string(where.line);
}

// ---------------------------------------------------------------- one OS thread's engine

class Engine;
constinit thread_local Engine *this_engine = nullptr;

class Engine {
 public:
  Engine() : fibers_(kMaxThreads, &Engine::fiber_main), main_(fiber_of_os_thread()) {
    block_.smem = &smem_;
  }
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  static Engine &of_this_thread() {
    static thread_local Engine engine;
    this_engine = &engine;
    return engine;
  }

  void run_block(const Grid &grid, int64_t index) {
    begin_block(grid, index);
    Thread *const first = pick();
    Fiber &fiber = fibers_.take();
    fiber.start = first;
    resume(main_, fiber);
    current = nullptr;
    if (block_.alive > 0 || !error_.empty()) abandon_block();
    const std::string damage = smem_.damage();
    if (!damage.empty()) throw Violation(describe_block() + " " + damage);
  }

  // Called from inside a kernel, through the free functions below.

  [[noreturn]] void stop(const char *what, Where where) {
    note_violation(what, where);
    resume(*current->fiber, main_);
    std::abort();  // an abandoned fiber is never resumed
  }

  void block_barrier(Where where) {
    Block &block = block_;
    Thread &me = *current;
    if (block.at_barrier == 0)
      block.barrier_at = where;
    else if (block.barrier_at != where)
      violation(where, "finds its block in block_sync at %s:%d and is in another",
                block.barrier_at.name(), block.barrier_at.line);
    if (block.at_barrier + 1 == block.alive) {
      release_barrier();
      return;
    }
    block.at_barrier++;
    block.barrier_waiting[me.warp->index] |= 1u << me.lane;
    wait("block_sync", where);
  }

  void wait(const char *waits_in, Where where) {
    Thread &me = *current;
    me.waits_in = waits_in;
    me.waits_at = where;
    Thread *const next = pick();
    if (next == nullptr) {
      resume(*me.fiber, main_);  // deadlock: run_block reports it
      std::abort();
    }
    current = next;
    if (next->fiber == nullptr) {
      next->fiber = &fibers_.take();
      next->fiber->start = next;
    }
    resume(*me.fiber, *next->fiber);
  }

  void wake(Warp &warp, uint32_t lanes) {
    warp.ready |= lanes;
    ready_warps_ |= 1u << warp.index;
  }

  void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                        Where where) {
    void *variable = smem_.find(key);
    if (variable == nullptr) variable = smem_.add(key, name, bytes, alignment);
    if (variable == nullptr)
      violation(where, "needs %zu bytes for shared %s, more than are left of the %zu of a block",
                bytes, name, kSmemBytes);
    return variable;
  }

  bool defer_copy() {
    if (mood_.copies == CopyTiming::random) return random_.next() & 1;
    return mood_.copies == CopyTiming::late;
  }

 private:
  static void fiber_main(boost::context::detail::transfer_t arrived) {
    enter_fiber(arrived);
    this_engine->run_threads(*this_engine->running_);
  }

  /// A fiber's life: run the thread it was given, then any thread that has not started yet.
  void run_threads(Fiber &self) {
    for (;;) {
      Thread *next = std::exchange(self.start, nullptr);
      do {
        next->fiber = &self;
        current = next;
        grid_->body(grid_->arguments);
        finish(*current);
        next = pick();
      } while (next != nullptr && next->fiber == nullptr);
      fibers_.give_back(self);
      current = next;
      resume(self, next != nullptr ? *next->fiber : main_);
    }
  }

  void resume(Fiber &from, Fiber &to) {
    running_ = &to;
    switch_fiber(from, to);
  }

  /// The next lane to run: in order within its warp, then the next warp; or, in the strict mood,
  /// any that can.  NULL if none can.
  Thread *pick() {
    Warp *warp = &warps_[current_warp_];
    if (mood_.strict || warp->ready == 0) {
      if (mood_.strict) current_warp_ = static_cast<int>(random_.next() % warps_.size());
      warp = next_ready_warp();
      if (warp == nullptr) return nullptr;
      current_warp_ = warp->index;
    }
    const int start = mood_.strict ? static_cast<int>(random_.next() % kWarpSize) : 0;
    const int lane = (std::countr_zero(std::rotr(warp->ready, start)) + start) % kWarpSize;
    warp->ready &= ~(1u << lane);
    return warp->lanes + lane;
  }

  Warp *next_ready_warp() {
    while (ready_warps_ != 0) {
      const int index =
          (std::countr_zero(std::rotr(ready_warps_, current_warp_)) + current_warp_) % kWarpSize;
      if (warps_[index].ready != 0) return &warps_[index];
      ready_warps_ &= ~(1u << index);
    }
    return nullptr;
  }

  void release_barrier() {
    race::join(warps_.data(), warps_.size());
    for (Warp &warp : warps_) {
      uint32_t &waiting = block_.barrier_waiting[warp.index];
      if (waiting != 0) wake(warp, std::exchange(waiting, 0u));
    }
    block_.at_barrier = 0;
  }

  /// A thread returned from the kernel.  A barrier no longer counts it; a warp collective that
  /// still expects it can never complete.
  void finish(Thread &thread) {
    Warp &warp = *thread.warp;
    warp.alive &= ~(1u << thread.lane);
    block_.alive--;
    if (warp.arrived != 0)
      violation(warp.collective_at, "returned while its warp waits for it in %s", warp.collective);
    if (block_.alive > 0 && block_.at_barrier == block_.alive) release_barrier();
  }

  void begin_block(const Grid &grid, int64_t index) {
    grid_ = &grid;
    mood_ = process_mood();
    random_.seed(mood_.seed * 1000003 + static_cast<uint64_t>(index) + 1);
    error_.clear();
    if (static_cast<int>(threads_.size()) != grid.num_threads) shape_block(grid.num_threads);
    block_.index = index;
    block_.grid_size = grid.num_blocks;
    block_.alive = grid.num_threads;
    block_.at_barrier = 0;
    current_warp_ = 0;
    ready_warps_ = 0;
    for (Warp &warp : warps_) {
      warp.alive = ~0u;
      warp.arrived = 0;
      warp.mma_done = 0;
      warp.mma_waiting = 0;
      block_.barrier_waiting[warp.index] = 0;
      for (int i = 0; i < kMmaSlots; i++) warp.mma[i].arrived = 0;
      wake(warp, ~0u);
    }
    for (Thread &thread : threads_) {
      thread.fiber = nullptr;
      thread.mma_issued = 0;
      thread.copy_group = 0;
      if (!thread.copies.empty()) thread.copies.clear();
    }
    smem_.begin_block(grid.dynamic_smem_bytes, mood_);
    block_.dynamic_smem = smem_.dynamic();
    race::begin_block(block_);
  }

  void shape_block(int num_threads) {
    const int num_warps = num_threads / kWarpSize;
    threads_ = std::vector<Thread>(static_cast<size_t>(num_threads));
    warps_ = std::vector<Warp>(static_cast<size_t>(num_warps));
    mma_ = std::vector<MmaSlot>(static_cast<size_t>(num_warps) * kMmaSlots);
    block_.num_threads = num_threads;
    for (int w = 0; w < num_warps; w++) {
      warps_[w].block = &block_;
      warps_[w].lanes = &threads_[static_cast<size_t>(w) * kWarpSize];
      warps_[w].index = w;
      warps_[w].mma = &mma_[static_cast<size_t>(w) * kMmaSlots];
    }
    for (int t = 0; t < num_threads; t++) {
      threads_[t].warp = &warps_[t / kWarpSize];
      threads_[t].block = &block_;
      threads_[t].index = t;
      threads_[t].lane = t % kWarpSize;
    }
  }

  // ---- failure

  void note_violation(const char *what, Where where) {
    error_ = describe_block() + " thread " + std::to_string(current->index) + " " + what;
    if (where.line != 0) error_ += " at " + to_string(where);
  }

  std::string describe_block() const {
    return std::string(grid_->kernel) + ": block " + std::to_string(block_.index);
  }

  [[noreturn]] void abandon_block() {
    if (error_.empty()) error_ = deadlock_report();
    fibers_.reset();
    threads_.clear();
    throw Violation(error_);
  }

  std::string deadlock_report() const {
    std::string report = describe_block() + " deadlocked;";
    std::vector<std::string> seen;
    for (const Thread &thread : threads_) {
      if ((thread.warp->alive >> thread.lane & 1) == 0 || thread.fiber == nullptr) continue;
      const std::string place =
          std::string(" waits in ") + thread.waits_in + " at " + to_string(thread.waits_at);
      if (std::find(seen.begin(), seen.end(), place) != seen.end() || seen.size() == 4) continue;
      report += (seen.empty() ? " thread " : ", thread ") + std::to_string(thread.index) + place;
      seen.push_back(place);
    }
    return report;
  }

  FiberPool fibers_;
  Fiber main_;
  Fiber *running_ = nullptr;
  SharedMemory smem_;
  const Grid *grid_ = nullptr;
  Mood mood_;
  Random random_;
  std::string error_;
  Block block_{};
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<MmaSlot> mma_;
  int current_warp_ = 0;
  uint32_t ready_warps_ = 0;
};

}  // namespace

// ---------------------------------------------------------------- the interface

Mood Mood::strict_with(uint64_t seed) {
  const CopyTiming copies = seed % 8 == 0   ? CopyTiming::late
                            : seed % 8 == 1 ? CopyTiming::immediate
                                            : CopyTiming::random;
  return {true, seed, copies};
}
Mood mood() {
  return process_mood();
}
void set_mood(const Mood &mood) {
  process_mood() = mood;
}

int max_workers() {
  static const int count = static_cast<int>(std::clamp<int64_t>(
      environment_integer("MP_HOST_THREADS", std::thread::hardware_concurrency()), 1, 256));
  return count;
}

void violation(Where where, const char *format, ...) {
  char text[640];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  this_engine->stop(text, where);
}
void block_barrier(Where where) {
  this_engine->block_barrier(where);
}
void block_until_woken(const char *waits_in, Where where) {
  this_engine->wait(waits_in, where);
}
void wake(Warp &warp, uint32_t lanes) {
  this_engine->wake(warp, lanes);
}
bool defer_copy() {
  return this_engine->defer_copy();
}
void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                      Where where) {
  return this_engine->shared_variable(key, name, bytes, alignment, where);
}

void warp_meet(const char *collective, void (*combine)(Warp &), Where where) {
  Thread &me = *current;
  Warp &warp = *me.warp;
  if (warp.alive != ~0u)
    violation(where, "lacks lanes of its warp, which have returned, in %s", collective);
  if (warp.arrived == 0) {
    warp.collective = collective;
    warp.collective_at = where;
  } else if (std::strcmp(warp.collective, collective) != 0 || warp.collective_at != where) {
    violation(where, "finds its warp in %s at %s:%d and is in %s", warp.collective,
              warp.collective_at.name(), warp.collective_at.line, collective);
  }
  warp.arrived |= 1u << me.lane;
  if (warp.arrived != ~0u) {
    block_until_woken(collective, where);
    return;
  }
  warp.arrived = 0;
  if (combine != nullptr)
    combine(warp);
  else
    race::join(&warp, 1);  // exchanging values orders no memory, warp_sync does
  wake(warp, ~(1u << me.lane));
}

void run(const Grid &grid) {
  if (grid.num_blocks < 1)
    throw Violation(std::string(grid.kernel) + ": a grid of " + std::to_string(grid.num_blocks) +
                    " blocks");
  if (grid.num_threads % kWarpSize != 0 || grid.num_threads < kWarpSize ||
      grid.num_threads > kMaxThreads)
    throw Violation(std::string(grid.kernel) + ": " + std::to_string(grid.num_threads) +
                    " threads per block is not a multiple of 32 up to 1024");
  if (grid.dynamic_smem_bytes > kSmemBytes)
    throw Violation(std::string(grid.kernel) + ": " + std::to_string(grid.dynamic_smem_bytes) +
                    " bytes of shared memory are more than a block has");
  const auto run_block = [&grid](int64_t index) {
    Engine::of_this_thread().run_block(grid, index);
  };
  const std::string error = run_on_workers(grid.num_blocks, grid.max_workers, run_block);
  if (!error.empty()) throw Violation(error);
}

}  // namespace mp::host::engine
