// Kernels that do one thing as fast as a GPU can, and what they do in one launch.
#pragma once

#include <cstdint>

#include "mpcore.h"

namespace mpbench::peaks {

struct Gpu {
  int ordinal, num_sms;
  mp_stream_t stream;
};

// ---------------------------------------------------------------------------- reading

/// Memory is read in pieces of this size.
constexpr int kReadThreads = 512;
constexpr int kVectorsInFlight = 8;
constexpr int64_t kReadPieceBytes = int64_t{16} * kReadThreads * kVectorsInFlight;
constexpr int kReadBlocksPerSm = 4;

// ---------------------------------------------------------------------------- sums

// A sum that has the same products added to it for ever grows: its upper bits stop changing, the addends are
// shifted further and further, and the GPU needs less power than a GEMM does.  So sums begin anew after as
// many instructions as keep the number of bits that change at what it is in a GEMM with k = 4096
// (tests/tools/test_bench_peaks.cpp counts them).
constexpr int kInstructionsPerSum = 64;

// ---------------------------------------------------------------------------- mma.sync

// m16n8k16; 16 warps of an SM have 8 independent sums each, so that no instruction waits for another.
constexpr double kMmaFlop = 2.0 * 16 * 8 * 16;
constexpr int kMmaThreads = 256;
constexpr int kMmaBlocksPerSm = 2;
constexpr int kMmaSums = 8;
constexpr int kMmaOperands = 4;  ///< A and B that are taken in turn
constexpr int kMmaPerPass = kMmaSums * kMmaOperands;
constexpr int kMmaPasses = 1024;
constexpr int kMmaPassesPerSum = kInstructionsPerSum / kMmaOperands;
constexpr double mma_flop(int num_sms) {
  return kMmaFlop * kMmaPerPass * kMmaPasses * (kMmaThreads / 32) * kMmaBlocksPerSm * num_sms;
}
/// FP16 values.
constexpr int64_t kMmaOperandElems = int64_t{kMmaThreads} * kMmaOperands * (8 + 4);

// ---------------------------------------------------------------------------- wgmma

// m64n256k16, A and B in shared memory; two warpgroups, whose A are their own and whose B is shared.
constexpr double kWgmmaFlop = 2.0 * 64 * 256 * 16;
constexpr int kWgmmaGroups = 2;
constexpr int kWgmmaThreads = 128 * kWgmmaGroups;
constexpr int kWgmmaTileK = 64;  ///< a row of 128 bytes, as wide as the swizzle
constexpr int kWgmmaStages = 2;  ///< A and B that are taken in turn
constexpr int kWgmmaPerPass = kWgmmaStages * kWgmmaTileK / 16;
constexpr int kWgmmaPasses = 512;
constexpr int kWgmmaPassesPerSum = kInstructionsPerSum / kWgmmaPerPass;
constexpr double wgmma_flop(int num_sms) {
  return kWgmmaFlop * kWgmmaPerPass * kWgmmaPasses * kWgmmaGroups * num_sms;
}
constexpr int64_t kWgmmaStageElems = int64_t{64 * kWgmmaGroups + 256} * kWgmmaTileK;
/// FP16 values.
constexpr int64_t kWgmmaOperandElems = kWgmmaStages * kWgmmaStageElems;

// ---------------------------------------------------------------------------- launches

/// Floats that the kernels leave behind, so that their work is not for nothing.
constexpr int64_t sink_elems(int num_sms) {
  return int64_t{kReadThreads} * kReadBlocksPerSm * num_sms;
}
static_assert(kReadThreads * kReadBlocksPerSm >= kMmaThreads * kMmaBlocksPerSm &&
              kReadThreads * kReadBlocksPerSm >= kWgmmaThreads);

// They enqueue.  @return NULL, or why they could not
const char *enqueue_read(const Gpu &gpu, const void *data, int64_t pieces, float *sink);
const char *enqueue_mma(const Gpu &gpu, const void *operands, float *sink);
const char *enqueue_wgmma(const Gpu &gpu, const void *operands, float *sink);

}  // namespace mpbench::peaks
