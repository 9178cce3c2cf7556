// Tests of bench/peaks/kernels.h: work of a launch, compared with an independent count.
#include "bench/peaks/kernels.h"

#include <bit>
#include <cmath>
#include <vector>

#include "tests/support/testing.h"

using namespace mpbench::peaks;

namespace {

/// Sum of the products of an instruction: 16 products of values in [-1, 1].
double products(mptest::Random &random) {
  double sum = 0;
  for (int i = 0; i < 16; ++i) sum += random.real(-1, 1) * random.real(-1, 1);
  return sum;
}

/// Rounds towards zero, like tensor cores.
float cut_off(double x) {
  const auto near = static_cast<float>(x);
  return std::abs(near) > std::abs(x) ? std::nextafter(near, 0.0f) : near;
}

/// Average number of accumulator bits that an instruction changes, over `instructions` instructions
/// of many sums, which cycle through `distinct` operands and restart after `per_sum` instructions.
double changing_bits(int instructions, int distinct, int per_sum) {
  constexpr int kSums = 500;
  mptest::Random random(1);
  int64_t bits = 0;
  for (int sum = 0; sum < kSums; ++sum) {
    std::vector<double> addends;
    for (int i = 0; i < distinct; ++i) addends.push_back(products(random));
    float value = 0;
    for (int i = 0; i < instructions; ++i) {
      const float old = value;
      value =
          cut_off((i % per_sum == 0 ? 0.0 : value) + addends[static_cast<size_t>(i % distinct)]);
      bits += std::popcount(std::bit_cast<uint32_t>(old) ^ std::bit_cast<uint32_t>(value));
    }
  }
  return static_cast<double>(bits) / kSums / instructions;
}

}  // namespace

TEST_CASE("bench: accumulators change as many bits as in a GEMM", "[bench]") {
  constexpr int kOfLaunch = kWgmmaPerPass * kWgmmaPasses;
  static_assert(kOfLaunch == kMmaOperands * kMmaPasses);
  const double in_gemm = changing_bits(4096 / 16, 4096 / 16, 4096 / 16);
  for (const int distinct : {kWgmmaPerPass, kMmaOperands}) {
    CAPTURE(distinct, in_gemm);
    CHECK(kInstructionsPerSum % distinct == 0);
    const double here = changing_bits(kOfLaunch, distinct, kInstructionsPerSum);
    CHECK(std::abs(here / in_gemm - 1) < 0.05);
    // The same without restarts.
    CHECK(changing_bits(kOfLaunch, distinct, kOfLaunch) < 0.8 * in_gemm);
  }
}

TEST_CASE("bench: operations of an mma.sync launch match its configuration", "[bench]") {
  int64_t multiplications = 0;
  for (int warp = 0; warp < kMmaBlocksPerSm * kMmaThreads / 32; ++warp)
    for (int turn = 0; turn < kMmaOperands; ++turn)
      for (int sum = 0; sum < kMmaSums; ++sum) multiplications += 16 * 8 * 16;
  CHECK(mma_flop(132) == 2.0 * 132 * kMmaPasses * static_cast<double>(multiplications));
  // A warp's A is 16x16 and its B 16x8, in 32-bit registers of 32 lanes.
  CHECK(kMmaOperandElems == int64_t{kMmaThreads} / 32 * kMmaOperands * (16 * 16 + 16 * 8));
}

TEST_CASE("bench: operations of a wgmma launch match its configuration", "[bench]") {
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
  // Swizzled atoms start at multiples of 1024 bytes, so each matrix must have a multiple of that
  // size.
  CHECK(2 * 64 * kWgmmaTileK % 1024 == 0);
  CHECK(2 * kWgmmaStageElems % 1024 == 0);
}
