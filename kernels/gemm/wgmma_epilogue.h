// From the accumulators of a wgmma tile to D.  Every warp brings its own 16 rows of each 64 out and
// needs no other warp for it.
//
// Three ways.  16-bit D without C: rounded, through stmatrix into a swizzled slab, and away by TMA
// while the warp goes on.  fp32 D with alpha and beta, as weight gradients need it: pairs of columns,
// four lanes of a quad filling a sector of 32 bytes, so nothing is gained by a detour.  All else, and
// tiles at the edge: through a patch of smem and EpilogueWriter.
//
// A wgmma accumulator: lane l holds, of its warp's 16 rows, the columns 8 j + 2 (l % 4) + {0, 1} of
// the rows l / 4 (registers 4 j, 4 j + 1) and l / 4 + 8 (4 j + 2, 4 j + 3).  PTX ISA, wgmma, matrix D.
#pragma once

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/wgmma_tile_scheduler.h"

namespace mp::MP_TARGET {

/// Columns of the product that are neighbours in D too.
struct ColumnRun {
  int64_t col;    ///< of the first one, in D
  int64_t count;  ///< from there on
};

/// Where the 64 columns of a slab go, by the map of D.
struct SlabPlace {
  int x, z;
};

/// The columns of the product are those of D.  A class in its place may leave some out, but keeps 32
/// that begin at a multiple of 32 in one run, and 64 in one slab.
struct DenseColumns {
  static constexpr bool kGaps = false;

  MP_DEVICE explicit DenseColumns(const WgmmaArgs &) {}
  /// `n`: columns of the product.
  MP_DEVICE ColumnRun run(int64_t col, int64_t n) const { return {col, n - col}; }
  MP_DEVICE SlabPlace slab(int col, int z) const { return {col, z}; }
};

template <class Tile, class Columns>
class WgmmaEpilogue {
 public:
  static constexpr int kBlocks = Tile::kRows / 64;
  static constexpr int kRegs = Tile::kN / 2;
  using Accumulators = float[kBlocks][kRegs];

  MP_DEVICE WgmmaEpilogue(const WgmmaArgs &args, const Columns &columns, const WgmmaWorkTile &work,
                          int consumer, std::byte *slabs)
      : args_(args),
        columns_(columns),
        work_(work),
        strip_(warp_index() % 4),
        part_(Tile::kPingPong ? strip_ : consumer * 4 + strip_),
        row0_(work.m0 + (Tile::kPingPong ? 0 : consumer * Tile::kRows) + strip_ * kStrip),
        slab_(slabs + (consumer * 4 + strip_) * kSlabs * kSlabBytes),
        target_(target()),
        writer_(args.problem.out, target_) {}

  /// Split k: leaves this slice's sums in workspace.  The last slice to arrive, in each warp, adds
  /// all of them up in their order and stores D.
  MP_DEVICE void store_slice(const Accumulators &acc) {
    Quad *const own = partials(work_.slice);
    MP_UNROLL
    for (int q = 0; q < kQuads; q++) {
      const float *const x = acc[q / (kRegs / 4)] + q % (kRegs / 4) * 4;
      own[q * kWarpSize] = {x[0], x[1], x[2], x[3]};
    }
    if (!arrived_last()) return;
    for_each_patch([&](int i, int c, float *patch) {
      float sum[kPatchRegs];
      sum_slices((i * kRegs + c * kPatchRegs) / 4, sum);
      fill_patch(patch, sum);
    });
    writer_.finish();
  }

  MP_DEVICE void store(Accumulators &acc) {
    const bool whole = int64_t{work_.m0} + Tile::kM <= target_.m &&  // which may be 2^31 - 1
                       int64_t{work_.n0} + Tile::kN <= target_.n;
    if (args_.store == StorePath::tma && ((whole && !Columns::kGaps) || !args_.extras))
      store_by_tma(acc);
    else if (args_.store == StorePath::direct && whole && pairs_are_aligned())
      store_directly(acc);
    else
      store_through_patch(acc);
    writer_.finish();
  }

  /// Before the warp returns: TMA may still read its slabs.
  static MP_DEVICE void finish() {
    if (lane_index() == 0) tma_store_wait<0>();
    warp_sync();
  }

 private:
  static constexpr int kStrip = 16;  // rows of a warp in 64
  static constexpr int kSlabs = Tile::kSlabs;
  static constexpr int kSlabCols = 64;
  static constexpr int kSlabBytes = kStrip * kSlabCols * 2;
  static_assert(kSlabBytes * 4 == Tile::kSlabBytes);
  static constexpr int kQuads = kBlocks * kRegs / 4;
  static constexpr int kParts = Tile::kPingPong ? 4 : 4 * Tile::kConsumers;  // warps of a tile
  static_assert(kParts <= kTicketsPerTile);

  MP_DEVICE EpilogueTarget target() const {
    const GemmProblem &p = args_.problem;
    if (args_.group_count > 0) {
      const WgmmaItem &item = *work_.item;
      return {item.m, item.n, item.c_data, item.ldc, item.d_data, item.ldd, 0};
    }
    return epilogue_target(p.out, work_.batch_item);
  }

  static constexpr int kPatchCols = 32, kPatchRegs = kPatchCols / 2;

  using Quad = Pack<float, 4>;
  using Pair = Pack<float, 2>;

  // ---- split k

  MP_DEVICE Quad *partials(int slice) const {
    const int64_t part = (int64_t{work_.tile} * args_.scheduler.split_k + slice) * kParts + part_;
    return reinterpret_cast<Quad *>(args_.partials) + part * kQuads * kWarpSize + lane_index();
  }

  /// Every warp has a counter of its own, so it waits for no other.
  MP_DEVICE bool arrived_last() const {
    const uint32_t last = args_.scheduler.split_k - 1;
    uint32_t before = 0;
    warp_sync();
    if (lane_index() == 0) {
      device_fence();
      before = atomic_wrap_inc(args_.tickets + work_.tile * kTicketsPerTile + part_, last);
      device_fence();
    }
    before = shuffle(before, 0);
    warp_sync();
    return before == last;
  }

  /// The registers from quad `first` on.
  MP_DEVICE void sum_slices(int first, float (&sum)[kPatchRegs]) const {
    MP_UNROLL
    for (float &x : sum) x = 0.0f;
    for (int slice = 0; slice < static_cast<int>(args_.scheduler.split_k); slice++) {
      const Quad *const part = partials(slice) + first * kWarpSize;
      MP_UNROLL
      for (int r = 0; r < kPatchRegs; r++) sum[r] += part[r / 4 * kWarpSize].x[r % 4];
    }
  }

  // ---- 16-bit D: stmatrix and TMA

  MP_DEVICE void store_by_tma(Accumulators &acc) {
    const bool leads = lane_index() == 0;
    const TensorMap &map = work_.item != nullptr ? work_.item->d : args_.d;
    if (leads && work_.item != nullptr) tensor_map_acquire(&map);
    const int z = work_.item != nullptr ? 0 : static_cast<int>(work_.batch_item);
    MP_UNROLL
    for (int i = 0; i < kBlocks; i++) {
      MP_UNROLL
      for (int s = 0; s < Tile::kN / kSlabCols; s++) {
        const SmemAddress slab =
            smem_address(slab_) + static_cast<SmemAddress>((i * 4 + s) % kSlabs * kSlabBytes);
        if (leads)
          tma_store_wait_read<kSlabs - 1>();  // the store before the last has read its slab
        warp_sync();
        MP_UNROLL
        for (int j = 0; j < kSlabCols / 16; j++) {
          float(&z8)[8] = *reinterpret_cast<float(*)[8]>(acc[i] + s * 32 + j * 8);
          if (args_.extras)
            alter(z8, work_.n0 + s * kSlabCols + j * 16);
          else
            scale(z8);
          put_16x16(slab, j, z8);
        }
        async_proxy_fence();
        warp_sync();
        if (leads) {
          const SlabPlace to = columns_.slab(work_.n0 + s * kSlabCols, z);
          tma_store(map, slab, to.x, row0_ + i * 64, to.z);
          tma_store_commit();
        }
      }
    }
  }

  MP_DEVICE void scale(float (&z)[8]) const {
    MP_UNROLL
    for (float &x : z) x *= writer_.alpha();
  }

  /// The part of the epilogue that needs nothing but the column: 16 rows x 16 columns from `col`.
  MP_DEVICE void alter(float (&z)[8], int64_t col) {
    const Epilogue &e = args_.problem.out.epilogue;
    scale(z);
    if (e.bias != nullptr) {
      MP_UNROLL
      for (int half = 0; half < 2; half++) {
        float bias[2];
        load_run(bias, e.bias_dtype, e.bias, col + half * 8 + lane_index() % 4 * 2, 2);
        MP_UNROLL
        for (int i = 0; i < 4; i++) z[half * 4 + i] += bias[i % 2];
      }
    }
    if (e.activation == MP_ACT_RELU) {
      MP_UNROLL
      for (float &x : z) x = relu(x);
    }
    writer_.measure(z, 8);
  }

  /// Rounds and writes columns 16 j .. +16 of the slab; chunks of 16 bytes are swizzled as TMA will
  /// read them.
  MP_DEVICE void put_16x16(SmemAddress slab, int j, const float (&z)[8]) const {
    uint32_t pairs[4];
    MP_UNROLL
    for (int i = 0; i < 4; i++)
      pairs[i] = args_.problem.out.dtype == MP_FP16 ? pack_pair<half>(z[2 * i], z[2 * i + 1])
                                                    : pack_pair<bf16>(z[2 * i], z[2 * i + 1]);
    const int row = lane_index() % 16, chunk = 2 * j + lane_index() / 16;
    store_matrix_x4(slab + static_cast<SmemAddress>(row * 128 + ((chunk ^ (row % 8)) << 4)), pairs);
  }

  // ---- fp32 D: straight from the registers

  MP_DEVICE bool pairs_are_aligned() const {
    const auto aligned = [](const void *p, int64_t ld) {
      return reinterpret_cast<uintptr_t>(p) % 8 == 0 && ld % 2 == 0;
    };
    return aligned(target_.d, target_.ldd) &&
           (args_.problem.out.beta == 0.0f || aligned(target_.c, target_.ldc));
  }

  MP_DEVICE void store_directly(Accumulators &acc) {
    constexpr int kGroup = 16;  // registers: as many loads of C are under way at once
    MP_UNROLL
    for (int i = 0; i < kBlocks; i++) {
      const int64_t row = row0_ + i * 64 + lane_index() / 4;
      MP_UNROLL
      for (int r0 = 0; r0 < kRegs; r0 += kGroup)
        store_pairs<kGroup>(acc[i] + r0, row, columns_.run(work_.n0 + r0 * 2, target_.n));
    }
  }

  /// kCount registers, the columns of a run: pairs of `row` and `row` + 8 alternate, eight columns
  /// apart.  Runs end at multiples of eight.
  template <int kCount>
  MP_DEVICE void store_pairs(float *regs, int64_t row, const ColumnRun &run) {
    float(&z)[kCount] = *reinterpret_cast<float(*)[kCount]>(regs);
    const int64_t col = run.col + lane_index() % 4 * 2;
    const auto row_of = [&](int pair) { return row + pair % 2 * 8; };
    const auto col_of = [&](int pair) { return col + pair / 2 * 8; };
    const auto is_there = [&](int pair) { return !Columns::kGaps || pair / 2 * 8 < run.count; };
    MP_UNROLL
    for (int r = 0; r < kCount; r++) z[r] = is_there(r / 2) ? z[r] * writer_.alpha() : 0.0f;
    if (args_.problem.out.beta != 0.0f) {
      const float *const c = static_cast<const float *>(target_.c);
      Pair read[kCount / 2]{};
      MP_UNROLL
      for (int p = 0; p < kCount / 2; p++)
        if (is_there(p))
          read[p] = *reinterpret_cast<const Pair *>(c + row_of(p) * target_.ldc + col_of(p));
      MP_UNROLL
      for (int r = 0; r < kCount; r++)
        if (is_there(r / 2)) z[r] += args_.problem.out.beta * read[r / 2].x[r % 2];
    }
    float *const d = static_cast<float *>(target_.d);
    MP_UNROLL
    for (int p = 0; p < kCount / 2; p++)
      if (is_there(p))
        *reinterpret_cast<Pair *>(d + row_of(p) * target_.ldd + col_of(p)) = {z[2 * p],
                                                                              z[2 * p + 1]};
    if (args_.extras) writer_.measure(z, kCount);
  }
  // ---- everything: a patch of 16 x 32 at a time

  static constexpr int kPatchPitch =
      kPatchCols + 8;  // four rows of pairs fall into different banks
  static_assert(kStrip * kPatchPitch * sizeof(float) <= kSlabs * kSlabBytes);

  /// Calls fill(i, c, patch) for the 32 columns from 32 c on in the i-th 64 rows, and stores them.
  /// Not unrolled, so that the long epilogue is compiled once.
  template <class Fill>
  MP_DEVICE void for_each_patch(Fill fill) {
    float *const patch = reinterpret_cast<float *>(slab_);
    if (lane_index() == 0) tma_store_wait_read<0>();
    MP_NO_UNROLL
    for (int i = 0; i < kBlocks; i++) {
      MP_NO_UNROLL
      for (int c = 0; c < Tile::kN / kPatchCols; c++) {
        warp_sync();
        fill(i, c, patch);
        warp_sync();
        store_patch(patch, row0_ + i * 64, work_.n0 + c * kPatchCols);
      }
    }
    warp_sync();
  }

  /// Registers cannot be indexed at run time: compares every index and selects the wanted ones.
  MP_DEVICE void store_through_patch(Accumulators &acc) {
    for_each_patch([&](int block, int part, float *patch) {
      MP_UNROLL
      for (int i = 0; i < kBlocks; i++) {
        MP_UNROLL
        for (int c = 0; c < Tile::kN / kPatchCols; c++)
          if (i == block && c == part)
            fill_patch(patch, *reinterpret_cast<float(*)[kPatchRegs]>(acc[i] + c * kPatchRegs));
      }
    });
  }

  static MP_DEVICE void fill_patch(float *patch, const float (&regs)[kPatchRegs]) {
    float *const to = patch + lane_index() / 4 * kPatchPitch + lane_index() % 4 * 2;
    MP_UNROLL
    for (int r = 0; r < kPatchRegs; r += 2)
      *reinterpret_cast<Pair *>(to + r / 4 * 8 + r / 2 % 2 * 8 * kPatchPitch) = {regs[r],
                                                                                 regs[r + 1]};
  }

  MP_DEVICE void store_patch(const float *patch, int64_t row0, int64_t col0) {
    constexpr int kRunsPerRow = kPatchCols / kVec;
    const int run = lane_index() % kRunsPerRow * kVec;
    const ColumnRun to = columns_.run(col0, target_.n);
    const int valid = static_cast<int>(min_of<int64_t>(to.count - run, kVec));
    if (valid <= 0) return;
    MP_NO_UNROLL
    for (int r = lane_index() / kRunsPerRow; r < kStrip; r += kWarpSize / kRunsPerRow) {
      if (row0 + r >= target_.m) return;
      float z[kVec];
      MP_UNROLL
      for (int i = 0; i < kVec; i++) z[i] = patch[r * kPatchPitch + run + i];
      writer_.write(row0 + r, to.col + run, z, valid);
    }
  }

  const WgmmaArgs &args_;
  const Columns columns_;
  const WgmmaWorkTile &work_;
  const int strip_, part_;
  const int row0_;
  std::byte *const slab_;
  const EpilogueTarget target_;
  EpilogueWriter writer_;
};

}  // namespace mp::MP_TARGET
