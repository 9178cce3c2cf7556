// What a multiprocessor has, and how many blocks of a kernel have room in it.
#pragma once

#include <cstdint>

namespace softgpu {

struct Grid;
struct Program;

struct SmLimits {
  int threads_per_sm, blocks_per_sm, registers_per_sm;
  int smem_per_sm, reserved_smem;  ///< bytes; of the latter, of each block
};
/// CUDA C++ Programming Guide, "Compute Capabilities".
constexpr SmLimits kSm75{1024, 16, 65536, 64 * 1024, 0}, kSm80{2048, 32, 65536, 164 * 1024, 1024},
    kSm90{2048, 32, 65536, 228 * 1024, 1024};
/// Of the architecture that options() say.
const SmLimits &sm_limits();

constexpr int kRegistersPerThread = 255;

/// Registers of a thread when the kernel begins: what ptxas may give it so that .minnctapersm blocks of .maxntid threads,
/// or one of 1024, have room in a multiprocessor, in steps of 8.
int initial_registers(const Program &);
/// The same if the PTX tells it, else 0.
int register_bound(const Program &);

/// Blocks that have room in a multiprocessor at a time.  `smem`: bytes of a block, but for the reserved ones.
int blocks_per_sm(const Program &, int num_threads, uint64_t smem);
/// Clusters of a grid that have room on the device at a time, at least one.
uint64_t clusters_per_device(const Grid &);

}  // namespace softgpu
