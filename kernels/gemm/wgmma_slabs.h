// A warp's slabs: smem between its registers and TMA, 16 rows of 64 elements of 16 bits each, in both
// directions.
//
// A slab is swizzled as TMA reads and writes it.  What arrives is waited for by an mbarrier, whose phases
// are counted for the whole life of the kernel, as those of the stages are.
#pragma once

#include "kernels/gemm/wgmma_pipeline.h"

namespace mp::MP_TARGET {

template <class Tile>
class WgmmaSlabs {
 public:
  static constexpr int kSlabs = Tile::kSlabs;
  static constexpr int kCols = 64;
  static constexpr int kBytes = 16 * kCols * 2;
  static_assert(kBytes * 4 == Tile::kSlabBytes);

  /// What a lane has of 16 x 16: pairs of columns, as an accumulator has them (wgmma_warp_tile.h).
  using Pairs = uint32_t[4];

  MP_DEVICE WgmmaSlabs(std::byte *slabs, const Barriers<Tile> &barriers, int consumer)
      : warp_(consumer * 4 + warp_index() % 4),
        smem_(slabs + warp_ * kSlabs * kBytes),
        barriers_(barriers) {}

  MP_DEVICE std::byte *smem() const { return smem_; }

  // ---- from gmem

  /// By one lane, when nothing reads or writes the slab any more.
  MP_DEVICE void fetch(int slab, const TensorMap &map, int x, int y, int z) const {
    tma_load(address(slab), map, expect(slab), x, y, z);
  }
  /// With an im2col map.
  MP_DEVICE void fetch(int slab, const TensorMap &map, const Im2colPlace &at) const {
    tma_load_im2col(address(slab), map, expect(slab), at);
  }

  /// Until what was fetched last has arrived.
  MP_DEVICE void wait(int slab) {
    mbarrier_wait(barriers_.arrived(warp_, slab), parities_ >> slab & 1);
    parities_ ^= 1u << slab;
  }

  // ---- to gmem

  /// The slab that was sent before the last kSlabs - 1 can be written again.
  MP_DEVICE void reuse() const {
    if (lane_index() == 0) tma_store_wait_read<kSlabs - 1>();
    warp_sync();
  }
  /// All slabs can.
  MP_DEVICE void reuse_all() const {
    if (lane_index() == 0) tma_store_wait_read<0>();
    warp_sync();
  }

  /// By all lanes, before one of them stores what they have put.
  MP_DEVICE void publish() const {
    async_proxy_fence();
    warp_sync();
  }
  /// From a row of the slab on.
  MP_DEVICE void store(int slab, int row, const TensorMap &map, int x, int y, int z) const {
    tma_store(map, address(slab) + static_cast<SmemAddress>(row * 128), x, y, z);
  }
  /// A slab's stores are one group.
  MP_DEVICE void commit() const { tma_store_commit(); }

  // ---- columns 16 j .. +16 of a slab

  MP_DEVICE void get(int slab, int j, Pairs &pairs) const {
    load_matrix_x4(chunk(slab, j), pairs);
    warp_sync();  // before what is put in their place
  }
  MP_DEVICE void put(int slab, int j, const Pairs &pairs) const {
    store_matrix_x4(chunk(slab, j), pairs);
  }

  /// The pair of columns 2 l of a row, of lane l.
  MP_DEVICE uint32_t pair(int slab, int row) const {
    const int chunk = lane_index() / 4 ^ (row % 8);
    return *reinterpret_cast<const uint32_t *>(smem_ + slab * kBytes + row * 128 + chunk * 16 +
                                               lane_index() % 4 * 4);
  }

  /// The columns 8 c .. +8 of a row, of either type.
  MP_DEVICE Packed<half> eight(int slab, int row, int c) const {
    Packed<half> x;
    x.load(
        reinterpret_cast<const half *>(smem_ + slab * kBytes + row * 128 + ((c ^ (row % 8)) << 4)));
    return x;
  }

  /// Before the warp returns: TMA may still read its slabs.
  MP_DEVICE void finish() const {
    if (lane_index() == 0) tma_store_wait<0>();
    warp_sync();
  }

 private:
  /// The mbarrier on which the slab arrives.
  MP_DEVICE SmemAddress expect(int slab) const {
    const SmemAddress arrived = barriers_.arrived(warp_, slab);
    mbarrier_arrive_expect(arrived, kBytes);
    return arrived;
  }
  MP_DEVICE SmemAddress address(int slab) const {
    return smem_address(smem_) + static_cast<SmemAddress>(slab * kBytes);
  }
  /// Of this lane's row of one of the four matrices in columns 16 j .. +16: 16 bytes, swizzled.
  MP_DEVICE SmemAddress chunk(int slab, int j) const {
    const int row = lane_index() % 16, column = 2 * j + lane_index() / 16;
    return address(slab) + static_cast<SmemAddress>(row * 128 + ((column ^ (row % 8)) << 4));
  }

  const int warp_;
  std::byte *const smem_;
  const Barriers<Tile> barriers_;
  uint32_t parities_ = 0;  ///< of the next arrival, a bit for each slab
};

}  // namespace mp::MP_TARGET
