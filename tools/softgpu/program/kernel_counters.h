// What a thread of the host counts while it runs the warps of a kernel; summed up when the grid has
// ended.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace softgpu {

/// Of a static instruction that touches memory.  Sectors and wavefronts are counted if
/// options().counts_memory.
struct AccessCount {
  uint64_t requests = 0;      ///< warp-instructions
  uint64_t bytes = 0;         ///< that lanes asked for, or that a box of TMA has inside the tensor
  uint64_t global_bytes = 0;  ///< the same of global memory; what several lanes ask for counts once
  uint64_t sectors = 0;       ///< of 32 bytes, global
  uint64_t least_sectors = 0;  ///< that as many bytes fill
  uint64_t shared_bytes = 0;   ///< as global_bytes, in whole words
  uint64_t wavefronts = 0;     ///< shared: passes over the 32 banks
  uint64_t least_wavefronts = 0;
  uint64_t incomplete = 0;  ///< waits for an mbarrier that found its phase not complete
};

struct AccessField {
  const char *name;
  uint64_t AccessCount::*value;
};
constexpr AccessField kAccessFields[] = {
    {"requests", &AccessCount::requests},
    {"bytes", &AccessCount::bytes},
    {"global_bytes", &AccessCount::global_bytes},
    {"sectors", &AccessCount::sectors},
    {"least_sectors", &AccessCount::least_sectors},
    {"shared_bytes", &AccessCount::shared_bytes},
    {"wavefronts", &AccessCount::wavefronts},
    {"least_wavefronts", &AccessCount::least_wavefronts},
    {"incomplete", &AccessCount::incomplete},
};

/// The allocation that an instruction touched last: most touch one only.
struct TouchedRange {
  uint64_t begin = 0, size = 0;
};

/// Indexed by the program counter.
struct KernelCounters {
  std::vector<uint64_t> executed;  ///< warp-instructions
  std::vector<AccessCount> accesses;
  std::vector<TouchedRange> touched;
  uint64_t num_instructions = 0;  ///< those included whose guard excluded all lanes
  uint64_t num_launches = 0, num_blocks = 0;
  void reset(size_t num_code);
  void add(const KernelCounters &);
  /// What was added since `before`, which is an earlier state of this one.
  KernelCounters since(const KernelCounters &before) const;
};

/// Of all launches of a program.
struct Totals {
  std::mutex mutex;
  KernelCounters tally;
  KernelCounters taken;  ///< as it was when somebody asked for the counts last: counts.h
  double seconds = 0;
};

}  // namespace softgpu
