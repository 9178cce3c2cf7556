// A consumer warp's part of a tile: accumulators, their rows and columns in D, and staging buffers;
// and the store paths without TMA (wgmma_tma_store.h has the other).
//
// Lane l holds columns 8 j + 2 (l % 4) + {0, 1} of two of its warp's 16 rows: row l / 4 in
// registers 4 j and 4 j + 1, row l / 4 + 8 in registers 4 j + 2 and 4 j + 3.  Source: PTX ISA,
// wgmma, matrix D.
#pragma once

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/wgmma_args.h"
#include "kernels/gemm/wgmma_mainloop.h"

namespace mp::MP_TARGET {

/// Columns of the product that are contiguous in D.
struct ColumnSegment {
  int64_t col;    ///< first column, in D
  int64_t count;  ///< number of columns from `col` on
};

/// Coordinates of a staging buffer's 64 columns in the tensor map of D.
struct TmaCoord {
  int x, z;
};

/// Placement of a product whose rows and columns are those of D.  Other placements may omit
/// columns, but keep 32 columns that begin at a multiple of 32 contiguous, and 64 in one staging
/// buffer.  A placement with strided rows also maps rows to D and provides im2col maps of D and the
/// pixels of a subtile (StridePhasePlacement in conv_wgmma.cu).
struct DensePlacement {
  static constexpr bool kHasPaddedColumns = false, kHasStridedRows = false;

  MP_DEVICE explicit DensePlacement(const WgmmaArgs &) {}
  /// Returns the segment that begins at column `col` of the product, which has `n` columns.
  MP_DEVICE ColumnSegment segment(int64_t col, int64_t n) const { return {col, n - col}; }
  MP_DEVICE TmaCoord buffer(int col, int z) const { return {col, z}; }
  /// Returns the row in D of a row of the batch item's product; negative: not in D.
  MP_DEVICE int64_t row(int, int64_t row) const { return row; }
};

/// Rows of a warp: 16 of each 64 rows of its consumer warpgroup, shared with no other warp.
template <class Tile, class Placement>
struct WgmmaWarpTile {
  static constexpr int kRows = kSubtileRows;
  static constexpr int kBlocks = Tile::kRows / 64;
  static constexpr int kRegs = Tile::kN / 2;
  using Accumulators = float[kBlocks][kRegs];

  const WgmmaArgs &args;
  const Placement placement;
  const WgmmaWorkTile &work;
  const int row0;  ///< first row, in the product; that of block i is row0 + 64 i

  MP_DEVICE WgmmaWarpTile(const WgmmaArgs &args, const Placement &placement,
                          const WgmmaWorkTile &work, int consumer)
      : args(args),
        placement(placement),
        work(work),
        row0(work.m0 + (Tile::kPingPong ? 0 : consumer * Tile::kRows) + subtile() * kRows) {}

  // The following values are recomputed on use: keeping them would cost registers in the main loop.

  MP_DEVICE int64_t m() const { return args.group_count == 0 ? args.problem.out.m : item().m; }
  MP_DEVICE int64_t n() const { return args.group_count == 0 ? args.problem.out.n : item().n; }
  /// Returns whether the full tile is in D, which may have 2^31 - 1 rows; false with strided rows.
  MP_DEVICE bool is_full() const {
    return !Placement::kHasStridedRows && int64_t{work.m0} + Tile::kM <= m() &&
           int64_t{work.n0} + Tile::kN <= n();
  }

  /// Returns whether k has elements; false for an empty group of mp_gemm_ragged.
  MP_DEVICE bool has_product() const { return args.group_count == 0 || item().k0 < item().k; }

  /// Returns the row in D of a row of the product; negative: not in D.
  MP_DEVICE int64_t row_in_d(int64_t row) const {
    return row < m() ? placement.row(work.batch_item, row) : -1;
  }

  MP_DEVICE EpilogueTarget target() const {
    EpilogueTarget to = args.group_count == 0 ? epilogue_target(args.problem.out, work.batch_item)
                                              : target_of_item(item());
    // in_gmem() is repeated because the conditional loses the address space.
    to.c = in_gmem(to.c);
    to.d = in_gmem(static_cast<char *>(to.d) + work.slice * args.slice_bytes);
    return to;
  }

 private:
  MP_DEVICE const GroupEntry &item() const { return *in_gmem(work.item); }
  static MP_DEVICE int subtile() { return warp_index() % 4; }
  static MP_DEVICE EpilogueTarget target_of_item(const GroupEntry &item) {
    return {item.m, item.n, item.c_data, item.ld_c, item.d_data, item.ld_d, 0};
  }
};

// ---------------------------------------------------------------------------- staging buffers

/// Staging buffers of a warp: shared memory between registers and TMA, for loads and stores.
///
/// A buffer holds 16 rows of 64 16-bit elements in the 128-byte swizzle of TMA.  A load completes
/// on an mbarrier, whose phases are counted for the lifetime of the kernel, as for the stages.
template <class Tile>
class WgmmaStagingBuffers {
 public:
  static constexpr int kStagingBuffers = Tile::kStagingBuffers;
  static constexpr int kCols = 64;
  static constexpr int kBytes = 16 * kCols * 2;
  static_assert(kBytes * 4 == Tile::kStagingBytes);

  /// A lane's elements of 16 x 16: pairs of columns, like in accumulators.
  using Fragment = uint32_t[4];

  MP_DEVICE WgmmaStagingBuffers(std::byte *buffers, const Barriers<Tile> &barriers, int consumer)
      : warp_(consumer * 4 + warp_index() % 4),
        smem_(buffers + warp_ * kStagingBuffers * kBytes),
        barriers_(barriers) {}

  MP_DEVICE std::byte *smem() const { return smem_; }
  MP_DEVICE SmemAddress address(int buffer) const {
    return smem_address(smem_) + static_cast<SmemAddress>(buffer * kBytes);
  }

  // ---- loads

  /// Announces a TMA load into a buffer, in the lane that issues it, and returns its mbarrier.  All
  /// accesses to the buffer must have ended.
  MP_DEVICE SmemAddress expect(int buffer) const {
    const SmemAddress arrived = barriers_.arrived(warp_, buffer);
    mbarrier_arrive_expect(arrived, kBytes);
    return arrived;
  }

  /// Waits for the last load into the buffer.
  MP_DEVICE void wait(int buffer) {
    mbarrier_wait(barriers_.arrived(warp_, buffer), parities_ >> buffer & 1);
    parities_ ^= 1u << buffer;
  }

  // ---- stores

  /// Waits until TMA has read all buffers but the last kStagingBuffers - 1 that were stored.
  MP_DEVICE void reuse() const {
    if (is_elected_lane()) tma_store_wait_read<kStagingBuffers - 1>();
    warp_sync();
  }
  /// Waits until TMA has read all buffers.
  MP_DEVICE void reuse_all() const {
    if (is_elected_lane()) tma_store_wait_read<0>();
    warp_sync();
  }

  /// Makes stores to a buffer visible to TMA, in all lanes, before one lane issues the TMA store.
  MP_DEVICE void fence_for_tma() const {
    async_proxy_fence();
    warp_sync();
  }

  // ---- columns [16 j, 16 j + 16) of a buffer

  MP_DEVICE void load_matrices(int buffer, int j, Fragment &fragment) const {
    load_matrix_x4([&](int i) { return chunk(buffer, j, i); }, fragment);
    warp_sync();  // before new values are stored in their place
  }
  MP_DEVICE void store_matrices(int buffer, int j, const Fragment &fragment) const {
    store_matrix_x4([&](int i) { return chunk(buffer, j, i); }, fragment);
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
    if (is_elected_lane()) tma_store_wait<0>();
    warp_sync();
  }

 private:
  /// Returns the address of row i of the four matrices in columns [16 j, 16 j + 16): 16 swizzled
  /// bytes.
  MP_DEVICE SmemAddress chunk(int buffer, int j, int i) const {
    const int row = i % 16, column = 2 * j + i / 16;
    return address(buffer) + static_cast<SmemAddress>(row * 128 + ((column ^ (row % 8)) << 4));
  }

  const int warp_;
  std::byte *const smem_;
  const Barriers<Tile> barriers_;
  uint32_t parities_ = 0;  ///< parity of the next load, one bit per buffer
};

// ---------------------------------------------------------------------------- store paths

/// Store path for fp32 D with alpha and beta, used for weight gradients: directly from registers.
///
/// The four lanes of a quad have eight neighboring columns, a sector of 32 bytes, so staging in
/// shared memory has no advantage.  C is prefetched into L2 during the main loop.
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
        const ColumnSegment segment = tile_.placement.segment(tile_.work.n0 + col, to_.n);
        if (segment.count > 0) prefetch_l2(c() + row * to_.ld_c + segment.col);
      }
    }
  }

  /// Loads the C of a group before the previous group is stored, so that loads are in flight
  /// during the stores.
  MP_DEVICE void store(Accumulators &acc, EpilogueWriter &writer) const {
    constexpr int kGroupsPerBlock = WarpTile::kRegs / kGroup;
    constexpr int kGroups = WarpTile::kBlocks * kGroupsPerBlock;
    const auto coord_of = [&](int group) {
      return coord(group / kGroupsPerBlock, group % kGroupsPerBlock * kGroup);
    };
    Group c[2] = {};
    if (reads_c()) load_c(coord_of(0), c[0]);
    MP_UNROLL
    for (int g = 0; g < kGroups; g++) {
      if (g + 1 < kGroups && reads_c()) load_c(coord_of(g + 1), c[(g + 1) % 2]);
      float *const regs = acc[g / kGroupsPerBlock] + g % kGroupsPerBlock * kGroup;
      store_group(coord_of(g), *reinterpret_cast<float(*)[kGroup]>(regs), c[g % 2], writer);
    }
  }

 private:
  static constexpr int kGroup = 16, kPairs = kGroup / 2;
  using Group = Pair[kPairs];

  /// Position in D of 16 registers: 32 columns of rows l / 4 and l / 4 + 8 for lane l.  Pairs of
  /// the two rows alternate; pairs of a row are eight columns apart.
  struct RegisterCoord {
    int64_t row, col;
    int rows, cols;  ///< rows and columns of D from there on

    MP_DEVICE bool has(int pair) const { return pair % 2 * 8 < rows && pair / 2 * 8 < cols; }
    MP_DEVICE int64_t offset(int pair, int64_t ld) const {
      return (row + pair % 2 * 8) * ld + col + pair / 2 * 8;
    }
  };

  MP_DEVICE RegisterCoord coord(int block, int reg) const {
    const int64_t row = tile_.row0 + block * 64 + lane_index() / 4;
    const int first = lane_index() % 4 * 2;
    const ColumnSegment segment = tile_.placement.segment(tile_.work.n0 + reg * 2, to_.n);
    const auto left = [](int64_t count) { return static_cast<int>(min_of<int64_t>(count, 64)); };
    return {row, segment.col + first, left(to_.m - row), left(segment.count - first)};
  }

  MP_DEVICE bool reads_c() const { return tile_.args.problem.out.beta != 0.0f; }
  MP_DEVICE const float *c() const { return static_cast<const float *>(to_.c); }
  MP_DEVICE float *d() const { return static_cast<float *>(to_.d); }

  MP_DEVICE void store_group(const RegisterCoord &at, float (&z)[kGroup], const Group &c,
                             EpilogueWriter &writer) const {
    if (reads_c()) {
      unroll<kGroup>([&](int r) { z[r] += tile_.args.problem.out.beta * c[r / 2].x[r % 2]; });
    }
    unroll<kPairs>([&](int p) {
      if (at.has(p)) store_pack(d() + at.offset(p, to_.ld_d), Pair{z[2 * p], z[2 * p + 1]});
    });
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

  /// Elements outside D are not loaded.
  MP_DEVICE void load_c(const RegisterCoord &at, Group &group) const {
    MP_UNROLL
    for (int p = 0; p < kPairs; p++)
      if (at.has(p)) group[p] = *reinterpret_cast<const Pair *>(c() + at.offset(p, to_.ld_c));
  }

  const WarpTile &tile_;
  const EpilogueTarget to_;
};

/// Store path for all cases that the other paths do not support.  16 x 32 fp32 elements at a time
/// pass through a patch of shared memory, which makes elements of a row contiguous, and then
/// through EpilogueWriter.
template <class Tile, class Placement>
class WgmmaStagedStore {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Accumulators = typename WarpTile::Accumulators;

  static constexpr int kCols = 32, kPatchRegs = kCols / 2;
  static constexpr int kPitch = kCols + 8;

 public:
  static constexpr size_t kStagedBytes = WarpTile::kRows * kPitch * sizeof(float);

  /// `patch`: shared memory for this warp only.
  MP_DEVICE WgmmaStagedStore(const WarpTile &tile, std::byte *patch)
      : tile_(tile), patch_(reinterpret_cast<float *>(patch)) {}

  /// Stores the tile.  The loops are not unrolled, so that the general epilogue is compiled once.
  MP_DEVICE void store(const Accumulators &acc, EpilogueWriter &writer) {
    const bool is_fp32 = tile_.args.problem.out.dtype == MP_FP32;
    MP_NO_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      MP_NO_UNROLL
      for (int c = 0; c < Tile::kN / kCols; c++) {
        warp_sync();
        fill(acc, i, c);
        warp_sync();
        const int row0 = tile_.row0 + i * 64, col0 = tile_.work.n0 + c * kCols;
        if (is_fp32)
          write<kQuad>(row0, col0, writer);
        else
          write<kVec>(row0, col0, writer);
      }
    }
    warp_sync();
  }

 private:
  /// Copies a part of the accumulators to the patch.  Registers cannot be indexed at run time, so
  /// every index is compared.
  MP_DEVICE void fill(const Accumulators &acc, int block, int part) {
    unroll<WarpTile::kBlocks, Tile::kN / kCols>([&](int i, int c) {
      if (i == block && c == part)
        store_accumulators<kPitch, kPatchRegs>(patch_, acc[i] + c * kPatchRegs);
    });
  }

  /// Writes the patch to D in vectors of 16 bytes.
  template <int kRun>
  MP_DEVICE void write(int64_t row0, int64_t col0, EpilogueWriter &writer) {
    constexpr int kRunsPerRow = kCols / kRun;
    const int run = lane_index() % kRunsPerRow * kRun;
    const ColumnSegment to = tile_.placement.segment(col0, tile_.n());
    const int valid = static_cast<int>(min_of<int64_t>(to.count - run, kRun));
    if (valid <= 0) return;
    MP_NO_UNROLL
    for (int r = lane_index() / kRunsPerRow; r < WarpTile::kRows; r += kWarpSize / kRunsPerRow) {
      const int64_t to_row = tile_.row_in_d(row0 + r);
      if (to_row < 0) continue;
      float z[kRun];
      load_smem_run(z, patch_ + r * kPitch + run);
      writer.write(to_row, to.col + run, z, valid);
    }
  }

  const WarpTile &tile_;
  float *const patch_;
};

/// Store path for the only tile of a cluster whose blocks split k.
///
/// Each block stores its sums as a matrix in place of the stages.  A warp then adds patches of its
/// rows, 16 x 32, over all blocks in the order of k, and writes them through EpilogueWriter.  Each
/// block has some of the patches.
template <class Tile, class Placement>
class WgmmaClusterStore {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;

  static constexpr int kCols = 32, kPatchesPerRow = Tile::kN / kCols;
  static constexpr int kPitch = Tile::kN + 8;
  static_assert(Tile::kM * kPitch * int{sizeof(float)} <= Tile::kStages * Tile::kStageBytes);

 public:
  /// `stages`: shared memory that no warp of the block reads any more.
  MP_DEVICE WgmmaClusterStore(const WarpTile &tile, std::byte *stages)
      : tile_(tile),
        row0_(tile.row0 - tile.work.m0),
        sums_(reinterpret_cast<float *>(stages) + row0_ * kPitch) {}

  /// Stores the sums of this block's slice, and waits for those of the other blocks.
  MP_DEVICE void share(const typename WarpTile::Accumulators &acc) const {
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++)
      store_accumulators<kPitch, WarpTile::kRegs>(sums_ + i * 64 * kPitch, acc[i]);
    warp_sync();  // the barrier requires converged warps
    cluster_sync();
  }

  MP_DEVICE void store(EpilogueWriter &writer) const {
    MP_NO_UNROLL
    for (int i = 0; i < WarpTile::kBlocks * kPatchesPerRow; i++) {
      const int row = i / kPatchesPerRow * 64, part = i % kPatchesPerRow;
      const int patch = (row0_ + row) / WarpTile::kRows * kPatchesPerRow + part;
      if (patch % cluster_size() == cluster_rank()) write(row, part * kCols, writer);
    }
    warp_sync();
  }

 private:
  /// Writes the patch at (`row`, `col`) of the warp's tile, in runs of four elements.
  MP_DEVICE void write(int row, int col, EpilogueWriter &writer) const {
    constexpr int kRunsPerRow = kCols / kQuad;
    const int run = lane_index() % kRunsPerRow * kQuad;
    const ColumnSegment to = tile_.placement.segment(tile_.work.n0 + col, tile_.n());
    const int valid = static_cast<int>(min_of<int64_t>(to.count - run, kQuad));
    if (valid <= 0) return;
    MP_NO_UNROLL
    for (int r = lane_index() / kRunsPerRow; r < WarpTile::kRows; r += kWarpSize / kRunsPerRow) {
      const int64_t to_row = tile_.row_in_d(tile_.row0 + row + r);
      if (to_row < 0) continue;
      float z[kQuad];
      add(sums_ + (row + r) * kPitch + col + run, z);
      writer.write(to_row, to.col + run, z, valid);
    }
  }

  /// Adds the runs at the address of `own` in all blocks.  All loads are in flight together.
  static MP_DEVICE void add(const float *own, float (&sum)[kQuad]) {
    float runs[kMaxClusterParts][kQuad] = {};
    MP_UNROLL
    for (int part = 0; part < kMaxClusterParts; part++)
      if (part < cluster_size()) load_cluster(runs[part], in_block(smem_address(own), part));
    MP_UNROLL
    for (int i = 0; i < kQuad; i++) {
      sum[i] = 0.0f;
      MP_UNROLL
      for (const float(&of_block)[kQuad] : runs) sum[i] += of_block[i];
    }
  }

  const WarpTile &tile_;
  const int row0_;     ///< first row of the warp in the tile
  float *const sums_;  ///< rows of this warp, in this block
};

}  // namespace mp::MP_TARGET
