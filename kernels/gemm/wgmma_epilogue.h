// Epilogue of the wgmma kernels: stores the accumulators to D through one of three store paths.
//
//     tma     (wgmma_tma_store.h)     16-bit D, through shared memory and TMA
//     direct  (wgmma_direct_store.h)  fp32 D with alpha and beta, directly from registers
//     staged  (wgmma_staged_store.h)  all other cases
//
// With split-k, the sums of each slice are stored as an fp32 D, and split_k.cu adds the slices.
//
// Each warp stores its rows without synchronizing with other warps.  It starts before the main
// loop, so that its loads overlap with the tensor cores.
#pragma once

#include "kernels/gemm/wgmma_direct_store.h"
#include "kernels/gemm/wgmma_staged_store.h"
#include "kernels/gemm/wgmma_tma_store.h"

namespace mp::MP_TARGET {

template <class Tile, class Placement>
class WgmmaEpilogue {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Buffers = WgmmaStagingBuffers<Tile>;
  using Subtiles = WgmmaTmaStore<Tile, Placement>;
  using Pairs = WgmmaDirectStore<Tile, Placement>;
  using Patches = WgmmaStagedStore<Tile, Placement>;

 public:
  using Accumulators = typename WarpTile::Accumulators;

  MP_DEVICE WgmmaEpilogue(const WgmmaArgs &args, const Placement &placement,
                          const WgmmaWorkTile &work, int consumer, Buffers &buffers)
      : args_(args), tile_(args, placement, work, consumer), buffers_(buffers) {}

  /// Starts loads of the epilogue, before the main loop.  A branch between the wgmmas and their
  /// wait is not allowed: ptxas would serialize the wgmmas.
  MP_DEVICE void start() {
    const Output &out = args_.problem.out;
    // A single test for the most frequent case: the tests below are far apart in the code.
    if (out.beta == 0.0f && out.epilogue.bias == nullptr && out.epilogue.aux == nullptr) return;
    if (path() == StorePath::tma) subtiles().start();
    if (path() == StorePath::direct) pairs().start();
  }

  MP_DEVICE void store(Accumulators &acc) {
    const StorePath way = path();
    // The TMA store computes the target only for subtiles that TMA cannot store.
    EpilogueWriter writer(args_.problem.out,
                          way == StorePath::tma ? EpilogueTarget{} : tile_.target(),
                          tile_.has_product());
    if (writer.alpha() == 0.0f) clear(acc);
    switch (way) {
      case StorePath::tma:
        subtiles().store(acc, writer);
        break;
      case StorePath::direct:
        pairs().store(acc, writer);
        break;
      case StorePath::staged:
        buffers_.reuse_all();
        Patches(tile_, buffers_.smem()).store(acc, writer);
        break;
    }
    writer.finish();
  }

 private:
  /// Clears the accumulators once, so that the many places that scale elements need no test for
  /// alpha = 0.
  static MP_DEVICE void clear(Accumulators &acc) {
    MP_UNROLL
    for (auto &block : acc) {
      MP_UNROLL
      for (float &x : block) x = 0.0f;
    }
  }

  static_assert(Patches::kStagedBytes <= Buffers::kStagingBuffers * Buffers::kBytes);

  MP_DEVICE Subtiles subtiles() { return {tile_, buffers_, bias_}; }
  MP_DEVICE Pairs pairs() const { return Pairs(tile_); }

  MP_DEVICE StorePath path() {
    if (args_.store == StorePath::direct && (Placement::kHasStridedRows || !pairs().can_store()))
      return StorePath::staged;
    return args_.store;
  }

  const WgmmaArgs &args_;
  const WarpTile tile_;
  Buffers &buffers_;
  SubtileBias::Words bias_;
};

}  // namespace mp::MP_TARGET
