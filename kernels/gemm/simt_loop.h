// Main loop of the CUDA-core kernels: operands of any type, multiplied and added in fp32.
//
// A block computes a kM x kN tile.  Each thread keeps kRows x kVec sums in registers and reads
// kRows + kVec values of shared memory per k.  The next k-tile is loaded into registers while the
// current one is multiplied.
//
// A source provides the elements of one operand; x is m of A or n of B:
//
//     bool by_k;                       true if k is the contiguous dimension
//     mp_dtype_t dtype();              type of the elements in memory
//     int64_t extent();                extent of x
//     XCoord x_coord(x);               state that depends only on x; computed once per tile
//     Cursor cursor(k);                state that depends only on k and is expensive to
//                                      compute; NoCursor if there is none
//     void advance(cursor, count);     moves the cursor to k + count
//     void load<T>(values, x_coord, cursor, k, k_end);
//                                      loads kVec elements from (x, k) on along the contiguous
//                                      dimension, zeros outside; T is the type of dtype()
#pragma once

#include "kernels/gemm/tiles.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

struct NoCursor {};

/// Copies a tile of kExtent x kK into shared memory as [k][extent].
template <class Source, int kExtent, int kK, int kThreads>
class OperandTile {
 public:
  static constexpr int kElems = kK * kExtent;

  MP_DEVICE OperandTile(const Source &source, int64_t x0, int64_t k0) : source_(source), k_(k0) {
    MP_UNROLL
    for (int i = 0; i < kXCoords; i++) x_coords_[i] = source.x_coord(x0 + x_of(i));
    MP_UNROLL
    for (int i = 0; i < kRuns; i++)
      if (has_own_cursor(i)) cursors_[cursor_of(i)] = source.cursor(k0 + k_of(i));
  }

  /// Loads the next kK elements of k into registers.
  MP_DEVICE void fetch(int64_t k_end) {
    if (is_idle()) return;
    with_type(source_.dtype(), [&]<class T>(std::type_identity<T>) {
      MP_UNROLL
      for (int i = 0; i < kRuns; i++)
        source_.template load<T>(values_[i], x_coords_[i % kXCoords], cursors_[cursor_of(i)],
                                 k_ + k_of(i), k_end);
    });
    MP_UNROLL
    for (int i = 0; i < kRuns; i++)
      if (has_own_cursor(i)) source_.advance(cursors_[cursor_of(i)], kK);
    k_ += kK;
  }

  MP_DEVICE void put(float *smem) const {
    if (is_idle()) return;
    const int step = source_.by_k ? kExtent : 1;
    MP_UNROLL
    for (int i = 0; i < kRuns; i++) {
      float *const run = smem + k_of(i) * kExtent + x_of(i % kXCoords);
      if (kHasBanks && !source_.by_k) {
        store_smem_run(run, values_[i]);
      } else {
        MP_UNROLL
        for (int j = 0; j < kVec; j++) run[j * step] = values_[i][j];
      }
    }
  }

 private:
  // Neighboring lanes load neighboring vectors of global memory.  If k is contiguous, this would
  // scatter their stores over rows of shared memory, so x varies fastest instead: stores have no
  // bank conflicts, and the next vector uses the other half of each sector.
  static constexpr int kRunsPerRow = kExtent / kVec;  // if x is contiguous
  static constexpr int kAllRuns = kRunsPerRow * kK;
  static constexpr int kRuns = ceil_div(kAllRuns, kThreads);
  static_assert(kAllRuns % kThreads == 0 || kAllRuns < kThreads);
  static_assert(kThreads % kRunsPerRow == 0);
  static_assert(kThreads % kExtent == 0 || kExtent % kThreads == 0);
  /// Number of distinct x of a thread's vectors.  If k is contiguous, vector i has x number i %
  /// kXCoords and the k of the vectors at the other x.  Otherwise all x are equal.
  static constexpr int kXCoords = max_of(kExtent / kThreads, 1);

  /// Returns whether the thread has no vector: a skinny tile has fewer vectors than threads.
  static MP_DEVICE bool is_idle() { return kAllRuns < kThreads && thread_index() >= kAllRuns; }

  MP_DEVICE int x_of(int i) const {
    return source_.by_k ? (i * kThreads + thread_index()) % kExtent
                        : thread_index() % kRunsPerRow * kVec;
  }
  MP_DEVICE int k_of(int i) const {
    if (!source_.by_k) return i * (kThreads / kRunsPerRow) + thread_index() / kRunsPerRow;
    const int of_thread = kThreads > kExtent ? thread_index() / kExtent : 0;
    return (i * kThreads / kExtent + of_thread) * kVec;
  }
  MP_DEVICE int cursor_of(int i) const { return source_.by_k ? i / kXCoords : i; }
  MP_DEVICE bool has_own_cursor(int i) const { return !source_.by_k || i % kXCoords == 0; }

  const Source &source_;
  int64_t k_;
  typename Source::XCoord x_coords_[kXCoords];
  typename Source::Cursor cursors_[kRuns];
  float values_[kRuns][kVec] = {};  // zeros: GCC does not detect that idle threads store none
};

/// Calls store(i, acc[0]) for the first kStored rows of sums, in order.  Not unrolled, so that a
/// long epilogue is compiled once; rows move up because registers cannot be indexed at run time.
template <int kStored, int kSums, class Store>
MP_DEVICE void store_rows(float (&acc)[kSums][kVec], const Store &store) {
  MP_NO_UNROLL
  for (int i = 0; i < kStored; i++) {
    store(i, acc[0]);
    MP_UNROLL
    for (int r = 0; r + 1 < kStored; r++) {
      MP_UNROLL
      for (int j = 0; j < kVec; j++) acc[r][j] = acc[r + 1][j];
    }
  }
}

template <class Tile, class SourceA, class SourceB>
class SimtLoop {
  using TileA = OperandTile<SourceA, Tile::kM, Tile::kK, Tile::kThreads>;
  using TileB = OperandTile<SourceB, Tile::kN, Tile::kK, Tile::kThreads>;
  static constexpr int kStage = TileA::kElems + TileB::kElems;

 public:
  static constexpr int kThreads = Tile::kThreads;
  static constexpr int kSmemFloats = 2 * kStage;

  /// Computes the sums of the tile at (m0, n0) over [k0, k_end).  Inlined on the host too: in a
  /// called function, g++ stores every sum after every multiply-add.
  [[gnu::always_inline]] MP_DEVICE void multiply(float *smem, const SourceA &source_a,
                                                 const SourceB &source_b, int64_t m0, int64_t n0,
                                                 int64_t k0, int64_t k_end) {
    TileA a(source_a, m0, k0);
    TileB b(source_b, n0, k0);
    const auto put = [&](int stage) {
      a.put(smem + stage * kStage);
      b.put(smem + stage * kStage + TileA::kElems);
    };
    // A thread outside D only loads.
    const bool has_sums = m0 + row() < source_a.extent() && n0 + col(0) < source_b.extent();
    int stage = 1;
    // The first iteration only loads: a second copy of the loads would double the code.
    for (int64_t k = k0 - Tile::kK; k < k_end; k += Tile::kK, stage ^= 1) {
      const bool more = k + Tile::kK < k_end;
      if (more) {
        a.fetch(k_end);
        b.fetch(k_end);
      }
      if (has_sums && k >= k0)
        multiply_stage(smem + stage * kStage, smem + stage * kStage + TileA::kElems);
      if (more) put(stage ^ 1);
      block_sync();
    }
  }

  /// Calls store(row, col, x) for vectors x of four columns; row and col are relative to the tile.
  template <class Store>
  MP_DEVICE void store_tile(const Store &store) {
    store_rows<kRows>(acc_, [&](int i, float(&sums)[kVec]) {
      MP_NO_UNROLL
      for (int q = 0; q < 2; q++) {
        float quad[kQuad];
        MP_UNROLL
        for (int j = 0; j < kQuad; j++) quad[j] = q == 0 ? sums[j] : sums[kQuad + j];
        store(row() + i, col(q), quad);
      }
    });
  }

 private:
  static constexpr int kRows = Tile::kRows;
  static constexpr int kThreadsM = Tile::kM / kRows, kThreadsN = Tile::kN / kVec;
  /// Lanes follow the longer side: if D ends within a skinny tile, entire warps have no work.
  static constexpr bool kLanesAlongM = Tile::kM > Tile::kN;
  static constexpr bool kSplitsColumns = kHasBanks && !kLanesAlongM;

  static MP_DEVICE int row() {
    return (kLanesAlongM ? thread_index() % kThreadsM : thread_index() / kThreadsN) * kRows;
  }
  /// Returns the column of a thread's first or second quad (4 columns).  Lanes along n have
  /// neighboring quads in each half of the tile.
  static MP_DEVICE int col(int quad) {
    const int thread = kLanesAlongM ? thread_index() / kThreadsM : thread_index() % kThreadsN;
    return kSplitsColumns ? thread * kQuad + quad * (Tile::kN / 2) : thread * kVec + quad * kQuad;
  }

  static MP_DEVICE void load_columns(float (&x)[kVec], const float *row) {
    if constexpr (kHasBanks) {
      MP_UNROLL
      for (int q = 0; q < 2; q++)
        load_smem_run(reinterpret_cast<float(&)[kQuad]>(x[q * kQuad]), row + col(q));
    } else {
      MP_UNROLL
      for (int j = 0; j < kVec; j++) x[j] = row[col(0) + j];
    }
  }

  MP_DEVICE void multiply_stage(const float *a, const float *b) {
    for (int k = 0; k < Tile::kK; k++) {
      float across[kVec];
      load_columns(across, b + k * Tile::kN);
      MP_UNROLL
      for (int i = 0; i < kRows; i++) multiply_add8(acc_[i], a[k * Tile::kM + row() + i], across);
    }
  }

  float acc_[kRows][kVec] = {};
};

}  // namespace mp::MP_TARGET
