#include "softgpu/machine/occupancy.h"

#include <algorithm>

#include "softgpu/machine/cluster.h"
#include "softgpu/options.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

constexpr int kRegisterUnit = 8;

}  // namespace

const SmLimits &sm_limits() {
  if (options().arch >= 90) return kSm90;
  return options().arch >= 80 ? kSm80 : kSm75;
}

int initial_registers(const Program &program) {
  if (program.max_registers != 0) return static_cast<int>(program.max_registers);
  const uint32_t threads = program.max_threads != 0 ? program.max_threads : 1024;
  const auto resident = static_cast<int>(threads * std::max(1u, program.min_blocks));
  const int registers = sm_limits().registers_per_sm / resident;
  return std::min(registers / kRegisterUnit * kRegisterUnit, kRegistersPerThread);
}

int register_bound(const Program &program) {
  const bool is_told =
      program.max_registers != 0 || (program.max_threads != 0 && program.min_blocks != 0);
  return is_told ? initial_registers(program) : 0;
}

int blocks_per_sm(const Program &program, int num_threads, uint64_t smem) {
  const SmLimits &limits = sm_limits();
  const int threads = (num_threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  int blocks = std::min(limits.blocks_per_sm, limits.threads_per_sm / threads);
  if (const int registers = register_bound(program); registers != 0)
    blocks = std::min(blocks, limits.registers_per_sm / (registers * threads));
  const uint64_t smem_of_block = smem + static_cast<uint64_t>(limits.reserved_smem);
  if (smem_of_block != 0)
    blocks = static_cast<int>(std::min<uint64_t>(
        static_cast<uint64_t>(blocks), static_cast<uint64_t>(limits.smem_per_sm) / smem_of_block));
  return blocks;
}

uint64_t clusters_per_device(const Grid &grid) {
  const int blocks =
      blocks_per_sm(*grid.program, static_cast<int>(grid.threads_per_block()), smem_of(grid)) *
      options().num_sms;
  return std::max<uint64_t>(1, static_cast<uint64_t>(blocks) / grid.blocks_per_cluster());
}

}  // namespace softgpu
