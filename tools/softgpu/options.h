// Which device is reported and how it runs, from the environment (see README.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace softgpu {

/// When asynchronous work (cp.async, TMA, wgmma) takes effect.
enum class Completion { kLate, kRandom, kEarly };

struct Options {
  int arch = 90;                     ///< SOFTGPU_ARCH: 75, 80 or 90; 90 has what sm_90a has
  int num_sms = 132;                 ///< SOFTGPU_SMS; else those of a T4, an A100 or an H200
  int num_devices = 1;               ///< SOFTGPU_DEVICES
  uint64_t smem_per_block = 232448;  ///< the largest dynamic shared memory of the architecture
  /// SOFTGPU_SEED: 0 runs blocks and warps in order, others in a random one.
  uint64_t seed = 0;
  Completion completion =
      Completion::kLate;  ///< SOFTGPU_COMPLETION=late|random|early; random with a seed
  bool diverges = false;  ///< SOFTGPU_DIVERGE=1: any group of a diverged warp may go first
  bool lags = false;  ///< SOFTGPU_LAG=1: many warps rest for long, while the others go far ahead
  /// SOFTGPU_QUANTUM: instructions of a warp before another runs; 0: 200, or random with a seed.
  int quantum = 0;
  int num_threads = 0;  ///< SOFTGPU_THREADS: 0: one per processor without a seed, 1 with one
  /// SOFTGPU_RESIDENT: clusters that a thread runs side by side; 0: 2, 4 with a seed.
  int num_resident = 0;
  /// SOFTGPU_TRUNCATE=1+n: tensor cores cut sums to n extra bits instead of rounding fmas.
  int truncated_sums = 0;
  uint64_t max_instructions = 0;  ///< SOFTGPU_LIMIT: of a launch, in warp-instructions; 0: no limit
  bool counts_memory = false;     ///< SOFTGPU_COUNT=file or 1: sectors and wavefronts too
  bool skips_products = false;    ///< SOFTGPU_SKIP_PRODUCTS=1: tensor cores compute nothing
  bool checks_initialised = false;  ///< SOFTGPU_INITCHECK=1: reads of bytes that nobody wrote
  bool checks_races = false;        ///< SOFTGPU_RACECHECK=1: conflicts on shared memory
  bool traces = false;              ///< SOFTGPU_TRACE=1: launches and tensor maps on stderr
  bool aborts = false;              ///< SOFTGPU_ABORT=1: abort() at the first fault, for a debugger
  std::string edit;                 ///< SOFTGPU_EDIT: see program/edit.h

  bool is_random() const { return seed != 0; }
};

/// The options, to be changed while no grid runs.  Read from the environment at the first call; a
/// value that cannot be read ends the process with a sentence.
Options &options_for_tests();

extern std::atomic<const Options *> options_when_read;  ///< null before: a part of options()

/// The same.  Instructions ask for it, so it costs next to nothing.
inline const Options &options() {
  const Options *known = options_when_read.load(std::memory_order_acquire);
  return known ? *known : options_for_tests();
}

}  // namespace softgpu
