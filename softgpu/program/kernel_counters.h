// Counters of a host thread that runs the warps of a kernel; added up at the end of the grid.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

namespace softgpu {

/// Parts of an opcode such as "ld.global.v4.u32".
using Opcode = std::vector<std::string_view>;

/// Returns "ld.global.v4.u32" for "@%p1 ld.global.v4.u32 {...}, [...];".
std::string_view opcode_text(std::string_view statement);
Opcode opcode_parts(std::string_view opcode_text);

constexpr std::array<std::string_view, 21> kOpcodeClasses = {
    "wgmma",   "mma",   "fp32",     "fp16",    "fp64",       "special", "integer",
    "convert", "move",  "control",  "barrier", "exchange",   "global",  "shared",
    "local",   "param", "constant", "generic", "async_copy", "tma",     "other"};
/// Returns the class of an instruction.
std::string_view class_of(const Opcode &);

/// Returns the memory path of an instruction, or "": load, store, atomic, cp_async, tma_load,
/// tma_store, ldmatrix, stmatrix, wmma_load or wmma_store.
std::string_view path_of(const Opcode &);

/// Returns the floating-point operations per warp: 2 M N K, or a quarter of that for a warp of a
/// warpgroup.
uint64_t tensor_flops(const Opcode &);

/// Returns whether the instruction arrives at, or waits for, a barrier of the block or cluster.
bool is_barrier(const Opcode &);
/// Returns whether the instruction is mbarrier.try_wait or mbarrier.test_wait.
bool is_mbarrier_wait(const Opcode &);
/// Returns whether the instruction is fence.proxy.tensormap with .acquire.
bool is_tensor_map_acquire(const Opcode &);
/// Returns whether the instruction is cp.async.bulk.wait_group.
bool is_bulk_wait(const Opcode &);
/// Returns whether the statement, cp.async.bulk.wait_group, waits for all groups.
bool waits_for_all(std::string_view statement);

/// Counters of a static instruction that accesses memory.  Sectors and wavefronts are counted only
/// with options().counts_memory.
struct AccessCount {
  uint64_t requests = 0;       ///< warp-instructions
  uint64_t bytes = 0;          ///< requested by lanes, or inside the tensor for a TMA box
  uint64_t global_bytes = 0;   ///< global memory; bytes that several lanes request count once
  uint64_t sectors = 0;        ///< global memory, 32 bytes each
  uint64_t least_sectors = 0;  ///< minimum for these bytes
  uint64_t shared_bytes = 0;   ///< shared memory, like global_bytes, in complete words
  uint64_t wavefronts = 0;     ///< shared memory: passes over the 32 banks
  uint64_t least_wavefronts = 0;
  uint64_t incomplete = 0;  ///< mbarrier waits that found the phase incomplete
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

/// Allocation that an instruction accessed last; most instructions access only one.
struct TouchedRange {
  uint64_t begin = 0, size = 0;
};

/// Arrays are indexed by the program counter.
struct KernelCounters {
  std::vector<uint64_t> executed;  ///< warp-instructions
  std::vector<AccessCount> accesses;
  std::vector<TouchedRange> touched;
  uint64_t num_instructions = 0;  ///< includes those that a guard excluded for all lanes
  uint64_t num_launches = 0, num_blocks = 0;
  void reset(size_t num_code);
  /// Adds a multiple of counters; -1 returns to an earlier state.
  void add(const KernelCounters &, uint64_t factor = 1);
};

/// Sums over all launches of a program.
struct Totals {
  std::mutex mutex;
  KernelCounters tally;
  KernelCounters taken;  ///< state at the last softgpu_take_counts()
  double seconds = 0;
};

}  // namespace softgpu
