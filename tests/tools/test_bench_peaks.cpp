// bench/peaks/kernels.h: what the kernels do in a launch, counted another way.
#include "bench/peaks/kernels.h"

#include "tests/support/testing.h"

using namespace mpbench::peaks;

TEST_CASE("bench: a launch of mma.sync is so many operations", "[bench]") {
  int64_t multiplications = 0;
  for (int warp = 0; warp < kMmaBlocksPerSm * kMmaThreads / 32; ++warp)
    for (int turn = 0; turn < kMmaOperands; ++turn)
      for (int sum = 0; sum < kMmaSums; ++sum) multiplications += 16 * 8 * 16;
  CHECK(mma_flop(132) == 2.0 * 132 * kMmaPasses * static_cast<double>(multiplications));
  // A warp's A is 16x16 and its B 16x8, in 32-bit registers of 32 lanes.
  CHECK(kMmaOperandElems == int64_t{kMmaThreads} / 32 * kMmaOperands * (16 * 16 + 16 * 8));
}

TEST_CASE("bench: a launch of wgmma is so many operations", "[bench]") {
  int64_t multiplications = 0, elems = 0;
  for (int stage = 0; stage < kWgmmaStages; ++stage) {
    for (int group = 0; group < kWgmmaGroups; ++group) {
      elems += 64 * kWgmmaTileK;
      for (int k = 0; k < kWgmmaTileK; k += 16) multiplications += 64 * 256 * 16;
    }
    elems += 256 * kWgmmaTileK;
  }
  CHECK(wgmma_flop(132) == 2.0 * 132 * kWgmmaPasses * static_cast<double>(multiplications));
  CHECK(kWgmmaOperandElems == elems);
  CHECK(2 * elems <= 227 * 1024);  // shared memory of a block, sm_90
  // Swizzled atoms start at multiples of 1024 bytes: every matrix consists of whole ones.
  CHECK(2 * 64 * kWgmmaTileK % 1024 == 0);
  CHECK(2 * kWgmmaStageElems % 1024 == 0);
}

TEST_CASE("bench: memory is read in whole pieces", "[bench]") {
  CHECK(kReadPieceBytes == 65536);
  CHECK(sink_elems(132) == 132 * 2048);
}
