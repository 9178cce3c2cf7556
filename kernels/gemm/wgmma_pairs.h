// fp32 D with alpha and beta, as weight gradients need it: straight from the registers.
//
// Four lanes of a quad have eight neighbouring columns: a sector of 32 bytes, so nothing is gained by a
// detour through smem.  C comes into L2 while the main loop runs.
#pragma once

#include "kernels/gemm/wgmma_warp_tile.h"

namespace mp::MP_TARGET {

template <class Tile, class Placement>
class WgmmaPairStore {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Accumulators = typename WarpTile::Accumulators;
  using Pair = Pack<float, 2>;

 public:
  MP_DEVICE explicit WgmmaPairStore(const WarpTile &tile) : tile_(tile), to_(tile.target()) {}

  /// The tile is whole, and all that is read or written is aligned to pairs.
  MP_DEVICE bool can_store() const {
    const auto aligned = [](const void *p, int64_t ld) {
      return reinterpret_cast<uintptr_t>(p) % sizeof(Pair) == 0 && ld % 2 == 0;
    };
    return tile_.is_whole() && aligned(to_.d, to_.ldd) && (!reads_c() || aligned(to_.c, to_.ldc));
  }

  /// Before the main loop: two lanes have a row, every second line of it each.
  MP_DEVICE void start() const {
    if (!reads_c()) return;
    constexpr int kLine = 32;  // elements: 128 bytes
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      const int64_t row = tile_.row0 + i * 64 + lane_index() / 2;
      for (int col = lane_index() % 2 * kLine; col < Tile::kN; col += 2 * kLine) {
        const ColumnRun run = tile_.placement.run(tile_.work.n0 + col, tile_.n());
        if (run.count > 0) prefetch_l2(c() + row * to_.ldc + run.col);
      }
    }
  }

  MP_DEVICE void store(Accumulators &acc, EpilogueWriter &writer) const {
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      MP_UNROLL
      for (int r = 0; r < WarpTile::kRegs; r += kGroup)
        store_group(Place(tile_, i, r), *reinterpret_cast<float(*)[kGroup]>(acc[i] + r), writer);
    }
  }

 private:
  static constexpr int kGroup = 16, kPairs = kGroup / 2;

  /// 16 registers: 32 columns of the rows l / 4 and l / 4 + 8.  Pairs of the two rows alternate, eight
  /// columns apart; runs end at multiples of eight.
  struct Place {
    const int64_t row, col, count;

    MP_DEVICE Place(const WarpTile &tile, int block, int reg)
        : Place(tile, block, tile.placement.run(tile.work.n0 + reg * 2, tile.n())) {}
    MP_DEVICE Place(const WarpTile &tile, int block, const ColumnRun &run)
        : row(tile.row0 + block * 64 + lane_index() / 4),
          col(run.col + lane_index() % 4 * 2),
          count(run.count) {}

    MP_DEVICE bool has(int pair) const { return !Placement::kColumnGaps || pair / 2 * 8 < count; }
    MP_DEVICE int64_t offset(int pair, int64_t ld) const {
      return (row + pair % 2 * 8) * ld + col + pair / 2 * 8;
    }
  };

  MP_DEVICE bool reads_c() const { return tile_.args.problem.out.beta != 0.0f; }
  MP_DEVICE const float *c() const { return static_cast<const float *>(to_.c); }
  MP_DEVICE float *d() const { return static_cast<float *>(to_.d); }

  MP_DEVICE void store_group(const Place &at, float (&z)[kGroup], EpilogueWriter &writer) const {
    MP_UNROLL
    for (int r = 0; r < kGroup; r++) z[r] = at.has(r / 2) ? z[r] * writer.alpha() : 0.0f;
    if (reads_c()) add_c(at, z);
    MP_UNROLL
    for (int p = 0; p < kPairs; p++)
      if (at.has(p)) store_pack(d() + at.offset(p, to_.ldd), Pair{z[2 * p], z[2 * p + 1]});
    if (!writer.measures()) return;
    MP_UNROLL
    for (int r = 0; r < kGroup; r++) {
      // Kept apart, or the products would be words, not floats, for the sake of their bits.
      float measured[1] = {z[r]};
      wgmma_keep(measured);
      writer.count(magnitude_bits(measured[0]));
    }
  }

  MP_DEVICE void add_c(const Place &at, float (&z)[kGroup]) const {
    Pair read[kPairs]{};
    MP_UNROLL
    for (int p = 0; p < kPairs; p++)
      if (at.has(p)) read[p] = *reinterpret_cast<const Pair *>(c() + at.offset(p, to_.ldc));
    MP_UNROLL
    for (int r = 0; r < kGroup; r++)
      if (at.has(r / 2)) z[r] += tile_.args.problem.out.beta * read[r / 2].x[r % 2];
  }

  const WarpTile &tile_;
  const EpilogueTarget to_;
};

}  // namespace mp::MP_TARGET
