// Resources of a multiprocessor, and the number of blocks that fit.
#pragma once

#include <cstdint>

namespace softgpu {

struct Grid;
struct Program;

struct SmLimits {
  int threads_per_sm, blocks_per_sm, registers_per_sm;
  int smem_per_sm, reserved_smem;  ///< bytes; the reserved part is per block
};
/// Source: CUDA C++ Programming Guide, "Compute Capabilities".
constexpr SmLimits kSm75{1024, 16, 65536, 64 * 1024, 0}, kSm80{2048, 32, 65536, 164 * 1024, 1024},
    kSm90{2048, 32, 65536, 228 * 1024, 1024};
/// Returns the limits of the architecture in options().
const SmLimits &sm_limits();

constexpr int kRegistersPerThread = 255;

/// Returns the registers per thread at kernel entry: the maximum, in steps of 8, with which
/// .minnctapersm blocks of .maxntid threads (otherwise one block of 1024) fit on a multiprocessor.
int initial_registers(const Program &);
/// Returns initial_registers() if the PTX specifies the bounds, otherwise 0.
int register_bound(const Program &);

/// Returns the number of blocks that fit on a multiprocessor.
/// @param smem  bytes per block, without the reserved part
int blocks_per_sm(const Program &, int num_threads, uint64_t smem);
/// Returns the number of clusters of a grid that fit on the device, at least 1.
uint64_t clusters_per_device(const Grid &);

}  // namespace softgpu
