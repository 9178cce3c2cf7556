// The main loop of the WMMA kernels: tiles of A and B, however they come into smem, multiplied on
// the tensor cores (sm_70 and newer).
//
// A block computes a kTileM x kTileN tile of D, a warp kWarpM x kWarpN of it in 16x16 fragments.
// Stages of smem form a ring: while one is multiplied, cp.async fills those behind it.  Rows in
// smem are padded by 8 halves, so that the eight rows that one ldmatrix reads fall into different
// banks (80, 144, 272 and 528 bytes of pitch).  Either order of an operand costs the same: the tile
// is copied as it lies in memory and read as a row_major or col_major fragment.
//
// A loader brings one operand:
//
//     static constexpr bool kByK;     rows hold kK elements of k; else there are kK rows
//     static constexpr int kPitch;    elements from row to row in smem
//     void load_next(T *smem);        starts the copy of the next tile along k, zeros beyond its end
#pragma once

#include "kernels/gemm/tiles.h"
#include "kernels/simt/sm80.h"
#include "kernels/simt/vector.h"
#include "kernels/simt/wmma.h"

namespace mp::MP_TARGET {

/// How the threads of a block share the copy of a kRows x kCols tile: each has one column of chunks
/// of kVec elements and every kRowStep-th row.
///
/// Eight lanes write at a time, 128 bytes.  Rows with as many are taken one by one.  Rows of 64 bytes,
/// which lie 80 apart, would overlap in four banks: there eight lanes take half of every second row
/// of eight, and these begin eight banks apart.
template <int kRows, int kCols, int kThreads>
struct TileChunks {
  static constexpr int kPitch = kCols + 8;
  static constexpr int kChunksPerRow = kCols / kVec;
  static constexpr int kRowStep = kThreads / kChunksPerRow;
  static constexpr int kIterations = kRows / kRowStep;
  static_assert(kThreads % kChunksPerRow == 0 && kRows % kRowStep == 0);

  static MP_DEVICE int row() {
    if constexpr (!kHasShortRows) return thread_index() / kChunksPerRow;
    return warp_index() * 8 + lane_index() / 2 % 4 * 2 + lane_index() / 8 % 2;
  }
  static MP_DEVICE int col() {
    if constexpr (!kHasShortRows) return thread_index() % kChunksPerRow * kVec;
    return (lane_index() / 16 * 2 + lane_index() % 2) * kVec;
  }
  /// Of this thread's first chunk in the tile.
  static MP_DEVICE int place() { return pin_to_register(row() * kPitch + col()); }

 private:
  static constexpr bool kHasShortRows = kChunksPerRow == 4;
  static_assert(kHasShortRows || kChunksPerRow % 8 == 0);
};

/// What both loaders leave in smem, and where.
template <class T_, class LoadA_, class LoadB_, class Tile>
struct WmmaStages {
  using T = T_;
  using LoadA = LoadA_;
  using LoadB = LoadB_;

  static constexpr size_t kBytes = Tile::smem_bytes(LoadA::kByK, LoadB::kByK);
  static constexpr int kElemsA = Tile::stage_elems(Tile::kM, LoadA::kByK);
  static constexpr int kElemsB = Tile::stage_elems(Tile::kN, LoadB::kByK);
  static constexpr auto kLayoutA = LoadA::kByK ? wmma::Layout::row_major : wmma::Layout::col_major;
  static constexpr auto kLayoutB = LoadB::kByK ? wmma::Layout::col_major : wmma::Layout::row_major;
  static_assert(LoadA::kPitch == (LoadA::kByK ? Tile::kK : Tile::kM) + Tile::kPad);
  static_assert(LoadB::kPitch == (LoadB::kByK ? Tile::kK : Tile::kN) + Tile::kPad);

  static MP_DEVICE T *a(std::byte *smem, int stage) {
    return reinterpret_cast<T *>(smem) + stage * kElemsA;
  }
  static MP_DEVICE T *b(std::byte *smem, int stage) {
    return reinterpret_cast<T *>(smem) + Tile::kStages * kElemsA + stage * kElemsB;
  }
};

/// The sums do not know of what they are: one kernel can have loops over operands of several types and
/// layouts, and one epilogue behind them.
template <class Tile>
class WmmaLoop {
 public:
  MP_DEVICE void clear() {
    MP_UNROLL
    for (int i = 0; i < kFragsM; i++) {
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++) wmma::fill(acc_[i][j], 0.0f);
    }
  }

  /// Adds the product over `num_k_tiles` of k to the sums of the block's tile; afterwards smem is free.
  template <class T, class LoadA, class LoadB>
  MP_DEVICE void multiply_add(std::byte *smem, LoadA &load_a, LoadB &load_b, int64_t num_k_tiles) {
    using Stages = WmmaStages<T, LoadA, LoadB, Tile>;
    static_assert(Tile::kThreads / kWarpSize * kPatchElems * sizeof(float) <= Stages::kBytes);
    int stage = 1, read = 0;  // that of tile t, and that of the tile before
    // The first rounds load and no more: loads in a second place would double the code of the kernel.
    for (int64_t t = 1 - Tile::kStages; t < num_k_tiles; t++) {
      copy_async_wait<Tile::kStages - 2>();
      block_sync();  // tile t is there for all; all have finished with the one before
      if (t + Tile::kStages - 1 < num_k_tiles) {
        load_a.load_next(Stages::a(smem, read));
        load_b.load_next(Stages::b(smem, read));
      }
      copy_async_commit();  // past the end an empty group, to keep the count
      if (t >= 0) multiply_stage<Stages>(smem, stage);
      read = stage;
      stage = stage + 1 < Tile::kStages ? stage + 1 : 0;
    }
    copy_async_wait<0>();
    block_sync();
  }

  /// Calls store(row, col, x) for runs x of columns: 16 bytes of what is stored, fp32 or of 16 bits; row
  /// and col in the tile.
  template <class Store>
  MP_DEVICE void store_tile(std::byte *smem, bool is_fp32, const Store &store) {
    if (is_fp32)
      store_runs_of<kQuad>(smem, store);
    else
      store_runs_of<kVec>(smem, store);
  }

  static constexpr int kPatchPitch = Tile::kWarpN + 8;  // four rows of a fragment: all banks

  /// Calls visit(patch, row) for every 16 rows that this warp has of the tile, `row` on: all lanes find their
  /// columns, from warp_n() on, in a patch of smem, rows kPatchPitch apart.
  ///
  /// Each warp passes its part of the tile through a patch of its own, because a
  /// WMMA accumulator does not tell which element it holds.  The loop is not unrolled, so that a long
  /// epilogue is compiled once per kernel instead of kFragsM times; as registers cannot be indexed
  /// at run time, the accumulators move up instead.
  template <class Visit>
  MP_DEVICE void visit_patches(std::byte *smem, const Visit &visit) {
    float *const patch = reinterpret_cast<float *>(smem) + warp_index() * kPatchElems;
    MP_NO_UNROLL
    for (int i = 0; i < kFragsM; i++) {
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++)
        wmma::store_row_major(patch + j * wmma::kTile, acc_[0][j], kPatchPitch);
      warp_sync();
      visit(patch, warp_m() + i * wmma::kTile);
      warp_sync();
      move_accumulators_up();
    }
  }

  static MP_DEVICE int warp_m() { return warp_index() / kWarpsN * Tile::kWarpM; }
  static MP_DEVICE int warp_n() { return warp_index() % kWarpsN * Tile::kWarpN; }

 private:
  template <int kRun, class Store>
  MP_DEVICE void store_runs_of(std::byte *smem, const Store &store) {
    visit_patches(smem, [&](const float *patch, int row) { store_patch<kRun>(patch, row, store); });
  }

  static constexpr int kFragsM = Tile::kWarpM / wmma::kTile;
  static constexpr int kFragsN = Tile::kWarpN / wmma::kTile;
  static constexpr int kWarpsN = Tile::kN / Tile::kWarpN;
  static constexpr int kPatchElems = wmma::kTile * kPatchPitch;

  template <class Stages>
  MP_DEVICE void multiply_stage(std::byte *smem, int stage) {
    using T = typename Stages::T;
    using LoadA = typename Stages::LoadA;
    using LoadB = typename Stages::LoadB;
    const T *const a = Stages::a(smem, stage);
    const T *const b = Stages::b(smem, stage);
    constexpr int kPitchA = LoadA::kPitch, kPitchB = LoadB::kPitch;
    MP_UNROLL
    for (int k = 0; k < Tile::kK; k += wmma::kTile) {
      wmma::FragmentA<T, Stages::kLayoutA> fa[kFragsM];
      wmma::FragmentB<T, Stages::kLayoutB> fb[kFragsN];
      MP_UNROLL
      for (int i = 0; i < kFragsM; i++) {
        const int m = warp_m() + i * wmma::kTile;
        wmma::load(fa[i], a + (LoadA::kByK ? m * kPitchA + k : k * kPitchA + m), kPitchA);
      }
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++) {
        const int n = warp_n() + j * wmma::kTile;
        wmma::load(fb[j], b + (LoadB::kByK ? n * kPitchB + k : k * kPitchB + n), kPitchB);
      }
      MP_UNROLL
      for (int i = 0; i < kFragsM; i++) {
        MP_UNROLL
        for (int j = 0; j < kFragsN; j++) wmma::multiply_add(acc_[i][j], fa[i], fb[j]);
      }
    }
  }

  MP_DEVICE void move_accumulators_up() {
    MP_UNROLL
    for (int i = 0; i + 1 < kFragsM; i++) {
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++) wmma::copy(acc_[i][j], acc_[i + 1][j]);
    }
  }

  template <int kRun, class Store>
  static MP_DEVICE void store_patch(const float *patch, int row0, const Store &store) {
    constexpr int kRunsPerRow = Tile::kWarpN / kRun;
    constexpr int kRowStep = kWarpSize / kRunsPerRow;
    const int col = lane_index() % kRunsPerRow * kRun;
    MP_NO_UNROLL
    for (int r = lane_index() / kRunsPerRow; r < wmma::kTile; r += kRowStep) {
      float x[kRun];
      load_smem_run(x, patch + r * kPatchPitch + col);
      store(row0 + r, warp_n() + col, x);
    }
  }

  wmma::Accumulator acc_[kFragsM][kFragsN];
};

}  // namespace mp::MP_TARGET
