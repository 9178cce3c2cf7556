// Main loop of the WMMA kernels on the tensor cores (sm_70 and newer), with any loader of A and B,
// and the loader of matrices.
//
// A block computes a kM x kN tile of D, and a warp kWarpM x kWarpN of it in 16 x 16 fragments.
// Stages in shared memory form a ring: while one is multiplied, cp.async fills the following ones.
// Rows in shared memory are padded by 8 elements, so that the eight rows that one ldmatrix reads
// fall into different banks (pitches of 80, 144, 272 and 528 bytes).  Both layouts of an operand
// cost the same: a tile is copied in its layout in memory and read as row_major or col_major.
//
// A loader copies one operand:
//
//     static constexpr bool kByK;     rows have kK elements of k; otherwise there are kK rows
//     void load_next(T *smem);        issues the copy of the next k-tile, zeros beyond the end of k
#pragma once

#include "kernels/gemm/tiles.h"
#include "kernels/simt/sm80.h"
#include "kernels/simt/vector.h"
#include "kernels/simt/wmma.h"

namespace mp::MP_TARGET {

/// Assignment of a block's threads to the copy of a kRows x kCols tile: each thread has one column
/// of kVec-element vectors and every kRowStep-th row.
///
/// Eight lanes write 128 bytes at a time.  Rows of at least 128 bytes are copied one after the
/// other.  Two rows of 64 bytes, at a pitch of 80, would overlap in four banks.  For these, eight
/// lanes copy half of every second row of eight; such rows begin eight banks apart.
template <int kRows, int kCols, int kThreads>
struct TileChunks {
  static constexpr int kPitch = kCols + kWmmaPad;
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
  /// Returns the offset of this thread's first vector in the tile.
  static MP_DEVICE int smem_offset() { return pin_to_register(row() * kPitch + col()); }

 private:
  static constexpr bool kHasShortRows = kChunksPerRow == 4;
  static_assert(kHasShortRows || kChunksPerRow % 8 == 0);
};

/// Layout of the stages of both operands in shared memory.
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
  static constexpr int kPitchA = Tile::pitch(Tile::kM, LoadA::kByK);
  static constexpr int kPitchB = Tile::pitch(Tile::kN, LoadB::kByK);

  static MP_DEVICE T *a(std::byte *smem, int stage) {
    return reinterpret_cast<T *>(smem) + stage * kElemsA;
  }
  static MP_DEVICE T *b(std::byte *smem, int stage) {
    return reinterpret_cast<T *>(smem) + Tile::kStages * kElemsA + stage * kElemsB;
  }
};

/// Main loop and accumulators.  The accumulators do not depend on the types and layouts of the
/// operands: a kernel can have loops for several of them, followed by a single epilogue.
template <class Tile>
class WmmaLoop {
 public:
  MP_DEVICE void clear() {
    unroll<kFragsM, kFragsN>([&](int i, int j) { wmma::fill(acc_[i][j], 0.0f); });
  }

  /// Adds the product over `num_k_tiles` k-tiles to the accumulators.  Afterwards `smem` is free.
  template <class T, class LoadA, class LoadB>
  MP_DEVICE void multiply_add(std::byte *smem, LoadA &load_a, LoadB &load_b, int64_t num_k_tiles) {
    using Stages = WmmaStages<T, LoadA, LoadB, Tile>;
    static_assert(Tile::kThreads / kWarpSize * kPatchElems * sizeof(float) <= Stages::kBytes);
    int stage = 1, read = 0;  // stage of k-tile t, and of k-tile t - 1
    // The first iterations only load: a second copy of the loads would double the code.
    for (int64_t t = 1 - Tile::kStages; t < num_k_tiles; t++) {
      copy_async_wait<Tile::kStages - 2>();
      block_sync();  // k-tile t is visible to all threads, and all have finished t - 1
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

  /// Calls store(row, col, x) for vectors x of columns that are stored as 16 bytes, fp32 or 16-bit;
  /// row and col are relative to the tile.
  template <class Store>
  MP_DEVICE void store_tile(std::byte *smem, bool is_fp32, const Store &store) {
    if (is_fp32)
      store_runs_of<kQuad>(smem, store);
    else
      store_runs_of<kVec>(smem, store);
  }

  static constexpr int kPatchPitch = Tile::kWarpN + 8;  // four rows of a fragment cover all banks

  /// Calls visit(patch, row) for every 16 rows of this warp, from `row` on.  All lanes find the
  /// columns, from warp_n() on, in a patch of shared memory with row pitch kPatchPitch.
  ///
  /// Each warp passes its part of the tile through its own patch, because the layout of a WMMA
  /// accumulator is unspecified.  The loop is not unrolled, so that a long epilogue is compiled
  /// once per kernel instead of kFragsM times.  Registers cannot be indexed at run time, so the
  /// accumulators move up instead.
  template <class Visit>
  MP_DEVICE void visit_patches(std::byte *smem, const Visit &visit) {
    float *const patch = reinterpret_cast<float *>(smem) + warp_index() * kPatchElems;
    MP_NO_UNROLL
    for (int i = 0; i < kFragsM; i++) {
      unroll<kFragsN>(
          [&](int j) { wmma::store_row_major(patch + j * wmma::kTile, acc_[0][j], kPatchPitch); });
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
    constexpr int kPitchA = Stages::kPitchA, kPitchB = Stages::kPitchB;
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
      unroll<kFragsM, kFragsN>([&](int i, int j) { wmma::multiply_add(acc_[i][j], fa[i], fb[j]); });
    }
  }

  MP_DEVICE void move_accumulators_up() {
    MP_UNROLL
    for (int i = 0; i + 1 < kFragsM; i++) {
      unroll<kFragsN>([&](int j) { wmma::copy(acc_[i][j], acc_[i + 1][j]); });
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

// ---------------------------------------------------------------------------- loads of a matrix

/// Copies the elements [first, end) of kVec elements; the others become zero.
template <class T>
MP_DEVICE void copy_elements(T *smem, const T *source, int first, int end) {
  MP_UNROLL
  for (int i = 0; i < kVec; i++) smem[i] = first <= i && i < end ? source[i] : T{0};
}

/// Loader of a row-major matrix, in tiles of kRows x kCols: rows are m (A) or n (B) and columns are
/// k, or the reverse.
///
/// Extents and ld are arbitrary: elements outside the matrix are copied as zeros.  Operands whose
/// rows are not all 16-byte aligned are copied element by element.
template <class T, bool kByK_, int kRows, int kCols, int kThreads>
class MatrixLoader {
  using Chunks = TileChunks<kRows, kCols, kThreads>;

 public:
  static constexpr bool kByK = kByK_;

  /// `origin`: first element of the first tile, in a matrix of row stride `ld`.  From there on,
  /// `extent` elements of m or n and `k` elements of k are in bounds.
  MP_DEVICE MatrixLoader(const T *origin, int64_t ld, int64_t extent, int64_t k)
      : row_step_(pin_to_register(Chunks::kRowStep * ld)),
        tile_step_(kByK ? kCols : pin_to_register(kRows * ld)),
        source_(origin + Chunks::row() * ld + Chunks::col()),
        rows_left_((kByK ? extent : k) - Chunks::row()),
        cols_left_((kByK ? k : extent) - Chunks::col()),
        smem_offset_(Chunks::smem_offset()),
        vectorized_(is_aligned_16(origin) && ld % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const int valid = static_cast<int>(min_of<int64_t>(max_of<int64_t>(cols_left_, 0), kVec));
    const int rows = static_cast<int>(min_of<int64_t>(rows_left_, kRows));
    T *const target = smem + smem_offset_;
    if (vectorized_ && valid == kVec)
      copy_whole_chunks(target, rows);
    else
      copy_chunks(target, rows, valid);
    source_ += tile_step_;
    (kByK ? cols_left_ : rows_left_) -= kByK ? kCols : kRows;
  }

 private:
  /// Copies complete vectors, which nearly all are.  A copy of 16 or 0 bytes is one predicated
  /// instruction; for other sizes ptxas adds four, which put the size into the address.
  MP_DEVICE void copy_whole_chunks(T *target, int rows) const {
    const T *source = source_;
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      copy_async_16(target, source, i * Chunks::kRowStep < rows ? 16 : 0);
      target += Chunks::kRowStep * Chunks::kPitch;
      source += row_step_;
    }
  }

  MP_DEVICE void copy_chunks(T *target, int rows, int valid) const {
    const T *source = source_;
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int valid_here = i * Chunks::kRowStep < rows ? valid : 0;
      if (vectorized_)
        copy_async_16(target, source, valid_here * int{sizeof(T)});
      else
        copy_elements(target, source, 0, valid_here);
      target += Chunks::kRowStep * Chunks::kPitch;
      source += row_step_;
    }
  }

  const int64_t row_step_, tile_step_;
  const T *source_;
  int64_t rows_left_, cols_left_;
  const int smem_offset_;
  const bool vectorized_;
};

/// Loader of an operand with kExtent of m or n by kK of k.
template <class T, bool kByK, int kExtent, class Tile>
using OperandLoader =
    MatrixLoader<T, kByK, kByK ? kExtent : Tile::kK, kByK ? Tile::kK : kExtent, Tile::kThreads>;

}  // namespace mp::MP_TARGET
