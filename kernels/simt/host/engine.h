// The host machine: runs a grid of CUDA-style blocks on the CPU.
//
// Every thread of a block is a fiber; a block barrier or a warp collective is a meeting of fibers,
// and the only place where they switch.  Blocks are spread over OS threads.  Shared memory is an
// arena with guard zones, filled with NaN patterns before each block.
//
// Two moods.  Plain: lanes run in order and copies happen at once, as fast as it can.  Strict: a
// seeded random schedule, asynchronous copies land as late or as early as the rules allow, guard
// zones are checked.  In both, a meeting that cannot complete is an error that names kernel lines,
// not a hang.
//
// Environment: MP_HOST_MOOD=plain|strict, MP_HOST_SEED=N, MP_HOST_THREADS=N (OS threads).
//
// This file is what the host bodies of the primitives (simt.h, wmma.h, sm80.h) are written
// against; the scheduler itself is in engine.cpp, fibers in fiber.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace mp::host::engine {

constexpr int kWarpSize = 32;
constexpr int kMaxThreads = 1024;
constexpr size_t kSmemBytes = 227 * 1024;  // what a block may use on sm_90, the largest so far

/// A kernel broke a rule of the machine: deadlock, missing lane, guard zone, bad launch.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Kernel line of a primitive, filled in by default arguments.
struct Where {
  const char *file = "";
  int line = 0;
  static constexpr Where here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  /// File without its folders.
  const char *name() const {
    const char *const slash = std::strrchr(file, '/');
    return slash != nullptr ? slash + 1 : file;
  }
  bool operator==(const Where &other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
};

enum class CopyTiming { immediate, late, random };

struct Mood {
  bool strict = false;
  uint64_t seed = 0;
  CopyTiming copies = CopyTiming::immediate;

  static Mood plain() { return {}; }
  /// Seeds 0 and 1 (mod 8) make every copy late or immediate; the others toss a coin for each.
  static Mood strict_with(uint64_t seed);
};

/// The process-wide mood; starts from the environment.  Change it only between launches.
Mood mood();
void set_mood(const Mood &);

/// OS threads that launches may use.
int max_workers();

// ------------------------------------------------------------------ state of one block

struct Fiber;
struct Warp;
struct Block;
class SharedMemory;

/// A copy that was started and not yet performed.
struct PendingCopy {
  void *dst;
  const void *src;
  int bytes;      ///< copied; the rest of the 16 is zeroed
  int64_t group;  ///< which commit it belongs to
};

struct alignas(64) Thread {
  Warp *warp;
  Block *block;
  Fiber *fiber;  ///< NULL until first run
  int index;     ///< in the block
  int lane;
  int64_t mma_issued;    ///< mma_sync calls so far, see wmma.h
  int64_t copy_group;    ///< commits so far
  const char *waits_in;  ///< primitive and line where it is blocked, for reports
  Where waits_at;
  std::vector<PendingCopy> copies;
};

/// One deferred warp-wide matrix multiply: what each lane contributed.
struct MmaSlot {
  float *d[kWarpSize];
  const float *a[kWarpSize];
  const float *b[kWarpSize];
  const float *c[kWarpSize];
  uint32_t arrived;
  Where at;  ///< of the first lane to arrive
};
constexpr int kMmaSlots = 16;

struct Warp {
  Block *block;
  Thread *lanes;
  int index;
  uint32_t ready;  ///< lanes that can run now
  uint32_t alive;  ///< lanes that have not returned

  // The collective in progress.
  uint32_t arrived;
  const char *collective;
  Where collective_at;
  uint64_t value[kWarpSize];
  uint64_t result[kWarpSize];
  uint8_t source[kWarpSize];

  // Deferred matrix multiplies, performed in order.
  MmaSlot *mma;
  int64_t mma_done;
  uint32_t mma_waiting;
};

struct Block {
  int64_t index;
  int64_t grid_size;
  int num_threads;
  int alive;
  SharedMemory *smem;
  void *dynamic_smem;

  // The barrier in progress.
  int at_barrier;
  Where barrier_at;
  uint32_t barrier_waiting[kMaxThreads / kWarpSize];
};

/// The thread that runs now.  Fibers never change their OS thread.
extern constinit thread_local Thread *current;

// ------------------------------------------------------------------ for the primitives

/// Stop the block and report "kernel: block b thread t <text> [at <where>]".  The stack of the
/// running thread is left for good, not unwound: neither kernels nor callers may own memory on it.
[[noreturn, gnu::format(printf, 2, 3)]] void violation(Where, const char *format, ...);

/// Meet all threads of the block that have not returned.
void block_barrier(Where);

/// Meet all lanes of the warp.  The last to arrive runs `combine` (may be NULL) on the values the
/// lanes left in warp.value / warp.source; then all go on and find warp.result.
void warp_meet(const char *collective, void (*combine)(Warp &), Where);

/// Give up the processor until some other lane wakes this one.
void block_until_woken(const char *waits_in, Where);
void wake(Warp &, uint32_t lanes);

/// The block's copy of a shared variable; the first thread to come allocates it.
void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                      Where = Where::here());

/// cp.async of the running thread, see sm80.h.
void start_copy(void *smem, const void *gmem, int valid_bytes, Where);
void wait_for_copies(int64_t pending_groups);

/// True if this asynchronous copy should be kept for later.
bool defer_copy();

// ------------------------------------------------------------------ launch

struct Grid {
  const char *kernel;
  int64_t num_blocks;
  int num_threads;
  size_t dynamic_smem_bytes;
  int max_workers;
  void (*body)(const void *arguments);
  const void *arguments;
};

/// Runs the whole grid; returns when it has finished.  Throws Violation.
void run(const Grid &);

}  // namespace mp::host::engine
