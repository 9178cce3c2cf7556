// Staging buffers of a warp: shared memory between registers and TMA, for loads and stores.
//
// A buffer holds 16 rows of 64 16-bit elements in the 128-byte swizzle of TMA.  A load completes on
// an mbarrier, whose phases are counted for the lifetime of the kernel, like those of the stages.
#pragma once

#include "kernels/gemm/wgmma_pipeline.h"

namespace mp::MP_TARGET {

template <class Tile>
class WgmmaStagingBuffers {
 public:
  static constexpr int kStagingBuffers = Tile::kStagingBuffers;
  static constexpr int kCols = 64;
  static constexpr int kBytes = 16 * kCols * 2;
  static_assert(kBytes * 4 == Tile::kStagingBytes);

  /// A lane's elements of 16 x 16: pairs of columns, like in accumulators (wgmma_warp_tile.h).
  using Pairs = uint32_t[4];

  MP_DEVICE WgmmaStagingBuffers(std::byte *buffers, const Barriers<Tile> &barriers, int consumer)
      : warp_(consumer * 4 + warp_index() % 4),
        smem_(buffers + warp_ * kStagingBuffers * kBytes),
        barriers_(barriers) {}

  MP_DEVICE std::byte *smem() const { return smem_; }

  // ---- loads

  /// Issues a TMA load into a buffer, in one lane.  All accesses to the buffer must have ended.
  MP_DEVICE void fetch(int buffer, const TensorMap &map, int x, int y, int z) const {
    tma_load(address(buffer), map, expect(buffer), x, y, z);
  }
  /// Issues a load with an im2col map.
  MP_DEVICE void fetch(int buffer, const TensorMap &map, const Im2colCoord &at) const {
    tma_load_im2col(address(buffer), map, expect(buffer), at);
  }

  /// Waits for the last load into the buffer.
  MP_DEVICE void wait(int buffer) {
    mbarrier_wait(barriers_.arrived(warp_, buffer), parities_ >> buffer & 1);
    parities_ ^= 1u << buffer;
  }

  // ---- stores

  /// Waits until TMA has read all buffers but the last kStagingBuffers - 1 that were stored.
  MP_DEVICE void reuse() const {
    if (lane_index() == 0) tma_store_wait_read<kStagingBuffers - 1>();
    warp_sync();
  }
  /// Waits until TMA has read all buffers.
  MP_DEVICE void reuse_all() const {
    if (lane_index() == 0) tma_store_wait_read<0>();
    warp_sync();
  }

  /// Makes stores to a buffer visible to TMA, in all lanes, before one lane issues the TMA store.
  MP_DEVICE void fence_for_tma() const {
    async_proxy_fence();
    warp_sync();
  }
  /// Issues a TMA store of a box, from `row` of the buffer on, in one lane.
  MP_DEVICE void store(int buffer, int row, const TensorMap &map, int x, int y, int z) const {
    tma_store(map, address(buffer) + static_cast<SmemAddress>(row * 128), x, y, z);
  }
  /// Commits the stores of a buffer as one group.
  MP_DEVICE void commit() const { tma_store_commit(); }

  // ---- columns [16 j, 16 j + 16) of a buffer

  MP_DEVICE void load_matrices(int buffer, int j, Pairs &pairs) const {
    load_matrix_x4(chunk(buffer, j), pairs);
    warp_sync();  // before new values are stored in their place
  }
  MP_DEVICE void store_matrices(int buffer, int j, const Pairs &pairs) const {
    store_matrix_x4(chunk(buffer, j), pairs);
  }

  /// Returns columns 2 l and 2 l + 1 of a row, in lane l.
  MP_DEVICE uint32_t pair(int buffer, int row) const {
    const int chunk = lane_index() / 4 ^ (row % 8);
    return *reinterpret_cast<const uint32_t *>(smem_ + buffer * kBytes + row * 128 + chunk * 16 +
                                               lane_index() % 4 * 4);
  }

  /// Returns columns [8 c, 8 c + 8) of a row, of either 16-bit type.
  MP_DEVICE Packed<half> load_8(int buffer, int row, int c) const {
    Packed<half> x;
    x.load(reinterpret_cast<const half *>(smem_ + buffer * kBytes + row * 128 +
                                          ((c ^ (row % 8)) << 4)));
    return x;
  }

  /// Waits for all stores, before the warp returns: TMA may still read its buffers.
  MP_DEVICE void finish() const {
    if (lane_index() == 0) tma_store_wait<0>();
    warp_sync();
  }

 private:
  /// Announces the bytes of a load, and returns the buffer's mbarrier.
  MP_DEVICE SmemAddress expect(int buffer) const {
    const SmemAddress arrived = barriers_.arrived(warp_, buffer);
    mbarrier_arrive_expect(arrived, kBytes);
    return arrived;
  }
  MP_DEVICE SmemAddress address(int buffer) const {
    return smem_address(smem_) + static_cast<SmemAddress>(buffer * kBytes);
  }
  /// Returns the address of this lane's row of one of the four matrices in columns [16 j,
  /// 16 j + 16): 16 swizzled bytes.
  MP_DEVICE SmemAddress chunk(int buffer, int j) const {
    const int row = lane_index() % 16, column = 2 * j + lane_index() / 16;
    return address(buffer) + static_cast<SmemAddress>(row * 128 + ((column ^ (row % 8)) << 4));
  }

  const int warp_;
  std::byte *const smem_;
  const Barriers<Tile> barriers_;
  uint32_t parities_ = 0;  ///< parity of the next load, one bit per buffer
};

}  // namespace mp::MP_TARGET
