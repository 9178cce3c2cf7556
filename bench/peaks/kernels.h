// Kernels that measure a hardware limit each, and the work of one launch.
#pragma once

#include <cstdint>

#include "mpcore.h"

namespace mpbench::peaks {

struct Gpu {
  int ordinal, num_sms;
  mp_stream_t stream;
};

// ---------------------------------------------------------------------------- reading

/// Memory is read in blocks of this size.
constexpr int kReadThreads = 512;
constexpr int kVectorsInFlight = 8;
constexpr int64_t kReadPieceBytes = int64_t{16} * kReadThreads * kVectorsInFlight;
constexpr int kReadBlocksPerSm = 4;

// ---------------------------------------------------------------------------- sums

// An accumulator that keeps adding the same products grows: its upper bits stop changing, the
// addends are shifted further, and the GPU needs less power than in a GEMM.  So accumulators
// restart after kInstructionsPerSum instructions, which changes as many bits as a GEMM with k =
// 4096 (counted in tests/tools/test_bench_peaks.cpp).
constexpr int kInstructionsPerSum = 64;

// ---------------------------------------------------------------------------- mma.sync

// m16n8k16; each of the 16 warps of an SM has 8 independent accumulators, so that no instruction
// waits for another.
constexpr double kMmaFlop = 2.0 * 16 * 8 * 16;
constexpr int kMmaThreads = 256;
constexpr int kMmaBlocksPerSm = 2;
constexpr int kMmaSums = 8;
constexpr int kMmaOperands = 4;  ///< copies of A and B, used cyclically
constexpr int kMmaPerPass = kMmaSums * kMmaOperands;
constexpr int kMmaPasses = 1024;
constexpr int kMmaPassesPerSum = kInstructionsPerSum / kMmaOperands;
constexpr double mma_flop(int num_sms) {
  return kMmaFlop * kMmaPerPass * kMmaPasses * (kMmaThreads / 32) * kMmaBlocksPerSm * num_sms;
}
/// Number of FP16 values.
constexpr int64_t kMmaOperandElems = int64_t{kMmaThreads} * kMmaOperands * (8 + 4);

// ---------------------------------------------------------------------------- wgmma

// m64n256k16, A and B in shared memory; two warpgroups with separate A and a shared B.
constexpr double kWgmmaFlop = 2.0 * 64 * 256 * 16;
constexpr int kWgmmaGroups = 2;
constexpr int kWgmmaThreads = 128 * kWgmmaGroups;
constexpr int kWgmmaTileK = 64;  ///< a row of 128 bytes, as wide as the swizzle
constexpr int kWgmmaStages = 2;  ///< copies of A and B, used cyclically
constexpr int kWgmmaPerPass = kWgmmaStages * kWgmmaTileK / 16;
constexpr int kWgmmaPasses = 512;
constexpr int kWgmmaPassesPerSum = kInstructionsPerSum / kWgmmaPerPass;
constexpr double wgmma_flop(int num_sms) {
  return kWgmmaFlop * kWgmmaPerPass * kWgmmaPasses * kWgmmaGroups * num_sms;
}
constexpr int64_t kWgmmaStageElems = int64_t{64 * kWgmmaGroups + 256} * kWgmmaTileK;
/// Number of FP16 values.
constexpr int64_t kWgmmaOperandElems = kWgmmaStages * kWgmmaStageElems;

// ---------------------------------------------------------------------------- launches

/// Number of floats that the kernels store, so that the compiler keeps their work.
constexpr int64_t sink_elems(int num_sms) {
  return int64_t{kReadThreads} * kReadBlocksPerSm * num_sms;
}
static_assert(kReadThreads * kReadBlocksPerSm >= kMmaThreads * kMmaBlocksPerSm &&
              kReadThreads * kReadBlocksPerSm >= kWgmmaThreads);

// The functions enqueue a kernel.  @return NULL, or the reason why they could not
const char *enqueue_read(const Gpu &gpu, const void *data, int64_t pieces, float *sink);
const char *enqueue_mma(const Gpu &gpu, const void *operands, float *sink);
const char *enqueue_wgmma(const Gpu &gpu, const void *operands, float *sink);

}  // namespace mpbench::peaks
