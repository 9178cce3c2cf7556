// Store path for fp32 D with alpha and beta, used for weight gradients: directly from registers.
//
// The four lanes of a quad have eight neighboring columns, a sector of 32 bytes, so staging in
// shared memory has no advantage.  C is prefetched into L2 during the main loop.
#pragma once

#include "kernels/gemm/wgmma_warp_tile.h"

namespace mp::MP_TARGET {

template <class Tile, class Placement>
class WgmmaDirectStore {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Accumulators = typename WarpTile::Accumulators;
  using Pair = Pack<float, 2>;

 public:
  MP_DEVICE explicit WgmmaDirectStore(const WarpTile &tile) : tile_(tile), to_(tile.target()) {}

  /// Returns whether D has an even number of columns, and C and D are aligned to pairs.
  MP_DEVICE bool can_store() const {
    const auto aligned = [](const void *p, int64_t ld) {
      return has_aligned_pairs(reinterpret_cast<uintptr_t>(p), ld);
    };
    return to_.n % 2 == 0 && aligned(to_.d, to_.ld_d) && (!reads_c() || aligned(to_.c, to_.ld_c));
  }

  /// Prefetches C before the main loop: two lanes share a row and alternate between its lines.
  MP_DEVICE void start() const {
    if (!reads_c()) return;
    constexpr int kLine = 32;  // elements: 128 bytes
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      const int64_t row = tile_.row0 + i * 64 + lane_index() / 2;
      if (row >= to_.m) return;
      for (int col = lane_index() % 2 * kLine; col < Tile::kN; col += 2 * kLine) {
        const ColumnSegment run = tile_.placement.run(tile_.work.n0 + col, to_.n);
        if (run.count > 0) prefetch_l2(c() + row * to_.ld_c + run.col);
      }
    }
  }

  MP_DEVICE void store(Accumulators &acc, EpilogueWriter &writer) const {
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      MP_UNROLL
      for (int r = 0; r < WarpTile::kRegs; r += kGroup)
        store_group(place(i, r), *reinterpret_cast<float(*)[kGroup]>(acc[i] + r), writer);
    }
  }

 private:
  static constexpr int kGroup = 16, kPairs = kGroup / 2;

  /// Position in D of 16 registers: 32 columns of rows l / 4 and l / 4 + 8 for lane l.  Pairs of
  /// the two rows alternate; pairs of a row are eight columns apart.
  struct Place {
    int64_t row, col;
    int rows, cols;  ///< rows and columns of D from there on

    MP_DEVICE bool has(int pair) const { return pair % 2 * 8 < rows && pair / 2 * 8 < cols; }
    MP_DEVICE int64_t offset(int pair, int64_t ld) const {
      return (row + pair % 2 * 8) * ld + col + pair / 2 * 8;
    }
  };

  MP_DEVICE Place place(int block, int reg) const {
    const int64_t row = tile_.row0 + block * 64 + lane_index() / 4;
    const int first = lane_index() % 4 * 2;
    const ColumnSegment run = tile_.placement.run(tile_.work.n0 + reg * 2, to_.n);
    const auto left = [](int64_t count) { return static_cast<int>(min_of<int64_t>(count, 64)); };
    return {row, run.col + first, left(to_.m - row), left(run.count - first)};
  }

  MP_DEVICE bool reads_c() const { return tile_.args.problem.out.beta != 0.0f; }
  MP_DEVICE const float *c() const { return static_cast<const float *>(to_.c); }
  MP_DEVICE float *d() const { return static_cast<float *>(to_.d); }

  MP_DEVICE void store_group(const Place &at, float (&z)[kGroup], EpilogueWriter &writer) const {
    MP_UNROLL
    for (int r = 0; r < kGroup; r++) z[r] *= writer.alpha();
    if (reads_c()) add_c(at, z);
    MP_UNROLL
    for (int p = 0; p < kPairs; p++)
      if (at.has(p)) store_pack(d() + at.offset(p, to_.ld_d), Pair{z[2 * p], z[2 * p + 1]});
    if (!writer.measures()) return;
    MP_UNROLL
    for (int r = 0; r < kGroup; r++) {
      // A separate copy: otherwise the compiler holds the products as integers, because their bits
      // are read.
      float measured[1] = {z[r]};
      fence_accumulators(measured);
      if (at.has(r / 2)) writer.count(magnitude_bits(measured[0]));
    }
  }

  MP_DEVICE void add_c(const Place &at, float (&z)[kGroup]) const {
    Pair read[kPairs]{};
    MP_UNROLL
    for (int p = 0; p < kPairs; p++)
      if (at.has(p)) read[p] = *reinterpret_cast<const Pair *>(c() + at.offset(p, to_.ld_c));
    MP_UNROLL
    for (int r = 0; r < kGroup; r++) z[r] += tile_.args.problem.out.beta * read[r / 2].x[r % 2];
  }

  const WarpTile &tile_;
  const EpilogueTarget to_;
};

}  // namespace mp::MP_TARGET
