// From the accumulators of a wgmma tile to D, in three ways.
//
//     strips  (wgmma_strips.h)  16-bit D, through smem and TMA
//     pairs   (wgmma_pairs.h)   fp32 D with alpha and beta, straight from the registers
//     patches (wgmma_patch.h)   all else
//
// Every warp brings its own rows out and needs no other warp for it.  It starts before the main loop, so
// that what it needs from memory comes while tensor cores work.
#pragma once

#include "kernels/gemm/wgmma_pairs.h"
#include "kernels/gemm/wgmma_patch.h"
#include "kernels/gemm/wgmma_strips.h"

namespace mp::MP_TARGET {

template <class Tile, class Placement>
class WgmmaEpilogue {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Slabs = WgmmaSlabs<Tile>;
  using Strips = WgmmaStripStore<Tile, Placement>;
  using Pairs = WgmmaPairStore<Tile, Placement>;
  using Patches = WgmmaPatchStore<Tile, Placement>;

 public:
  using Accumulators = typename WarpTile::Accumulators;

  MP_DEVICE WgmmaEpilogue(const WgmmaArgs &args, const Placement &placement,
                          const WgmmaWorkTile &work, int consumer, Slabs &slabs)
      : args_(args), tile_(args, placement, work, consumer), slabs_(slabs) {}

  /// Before the main loop.  Nothing may stand between its products and the wait for them: ptxas would
  /// serialise them for fear of a branch there.
  MP_DEVICE void start() {
    if (!is_split()) start_reading();
  }

  MP_DEVICE void store(Accumulators &acc) {
    if (is_split()) {
      put_slice(acc);
      if (!arrived_last()) return;
      start_reading();
      sum_slices(acc);
    }
    EpilogueWriter writer(args_.problem.out, tile_.target());
    switch (path()) {
      case StorePath::strips:
        strips().store(acc, writer);
        break;
      case StorePath::pairs:
        pairs().store(acc, writer);
        break;
      case StorePath::patches:
        slabs_.reuse_all();
        Patches(tile_, slabs_.smem()).store(acc, writer);
        break;
    }
    writer.finish();
  }

 private:
  static_assert(Patches::kPatchBytes <= Slabs::kSlabs * Slabs::kBytes);

  MP_DEVICE Strips strips() { return {tile_, slabs_, bias_}; }
  MP_DEVICE Pairs pairs() const { return Pairs(tile_); }

  MP_DEVICE StorePath path() {
    if (args_.store == StorePath::pairs && (Placement::kScattersRows || !pairs().can_store()))
      return StorePath::patches;
    return args_.store;
  }

  MP_DEVICE void start_reading() {
    if (path() == StorePath::strips) strips().start();
    if (path() == StorePath::pairs) pairs().start();
  }

  // ---- split k: a slice's sums wait in workspace; the last slice to arrive, in each warp, adds all of
  // them up in their order

  static constexpr int kQuads = WarpTile::kRegs / 4;                         // of a block
  static constexpr int kParts = Tile::kPingPong ? 4 : 4 * Tile::kConsumers;  // warps of a tile
  static_assert(kParts <= kTicketsPerTile);

  MP_DEVICE bool is_split() const { return args_.partials != nullptr; }
  MP_DEVICE int slices() const { return static_cast<int>(args_.scheduler.split_k); }

  MP_DEVICE Quad *partials(int slice) const {
    const int64_t part = (int64_t{tile_.work.tile} * slices() + slice) * kParts + tile_.part;
    return reinterpret_cast<Quad *>(args_.partials) +
           part * WarpTile::kBlocks * kQuads * kWarpSize + lane_index();
  }

  MP_DEVICE void put_slice(const Accumulators &acc) const {
    Quad *const own = partials(tile_.work.slice);
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      MP_UNROLL
      for (int q = 0; q < kQuads; q++)
        own[(i * kQuads + q) * kWarpSize] = {acc[i][4 * q], acc[i][4 * q + 1], acc[i][4 * q + 2],
                                             acc[i][4 * q + 3]};
    }
  }

  /// Every warp has a counter of its own, so it waits for no other.
  MP_DEVICE bool arrived_last() const {
    const uint32_t last = args_.scheduler.split_k - 1;
    uint32_t before = 0;
    warp_sync();
    if (lane_index() == 0) {
      device_fence();
      before =
          atomic_wrap_inc(args_.tickets + tile_.work.tile * kTicketsPerTile + tile_.part, last);
      device_fence();
    }
    before = shuffle(before, 0);
    warp_sync();
    return before == last;
  }

  MP_DEVICE void sum_slices(Accumulators &acc) const {
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      MP_UNROLL
      for (int q = 0; q < kQuads; q += kQuadsAtOnce) {
        float(&sum)[4 * kQuadsAtOnce] =
            *reinterpret_cast<float(*)[4 * kQuadsAtOnce]>(acc[i] + 4 * q);
        // Not cleared first: a memset would make words of them, and of the products before.
        Quad part[kQuadsAtOnce];
        get_quads(0, i * kQuads + q, part);
        MP_UNROLL
        for (int r = 0; r < 4 * kQuadsAtOnce; r++) sum[r] = 0.0f + part[r / 4].x[r % 4];
        MP_NO_UNROLL
        for (int slice = 1; slice < slices(); slice++) {
          get_quads(slice, i * kQuads + q, part);
          MP_UNROLL
          for (int r = 0; r < 4 * kQuadsAtOnce; r++) sum[r] += part[r / 4].x[r % 4];
        }
      }
    }
  }

  static constexpr int kQuadsAtOnce = 8;  // loads of 16 bytes that are under way
  MP_DEVICE void get_quads(int slice, int first, Quad (&part)[kQuadsAtOnce]) const {
    const Quad *const from = partials(slice) + first * kWarpSize;
    MP_UNROLL
    for (int q = 0; q < kQuadsAtOnce; q++) part[q] = from[q * kWarpSize];
  }

  const WgmmaArgs &args_;
  const WarpTile tile_;
  Slabs &slabs_;
  StripBias::Words bias_;
};

}  // namespace mp::MP_TARGET
