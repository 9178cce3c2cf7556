// Main loops on the CUDA cores for tiles with few columns or few rows.  Sources are those of
// simt_loop.h.
#pragma once

#include "kernels/gemm/simt_loop.h"

namespace mp::MP_TARGET {

/// Main loop on the CUDA cores for skinny N: each thread computes complete rows of the tile.
///
/// A is not shared between threads, so it bypasses shared memory.  Each vector of A takes part in
/// enough products for the other warps of the SM to hide its latency.  B is small: a stage spans
/// several vectors of A, and all lanes read the same element of it.  The source of A is contiguous
/// along k.
template <class Tile, class SourceA, class SourceB>
class SkinnyNLoop {
  static constexpr int kRows = 4;         ///< rows per thread
  static constexpr int kStageElems = 64;  ///< k per stage
  static constexpr int kVectorsPerRow = Tile::kN / kVec;
  static_assert(SourceA::by_k);

 public:
  static constexpr int kThreads = Tile::kM / kRows;

 private:
  using TileB = OperandTile<SourceB, Tile::kN, kStageElems, kThreads>;

 public:
  static constexpr int kSmemFloats = TileB::kElems;

  /// Computes the sums of the tile at (m0, n0) over [k0, k_end).
  MP_DEVICE void multiply(float *smem, const SourceA &source_a, const SourceB &source_b, int64_t m0,
                          int64_t n0, int64_t k0, int64_t k_end) {
    TileB b(source_b, n0, k0);
    Rows a(source_a, m0, k0);
    const int64_t columns = source_b.extent() - n0;
    for (int64_t k = k0; k < k_end; k += kStageElems) {
      b.fetch(k_end);
      block_sync();  // the previous stage may still be read
      b.put(smem);
      block_sync();
      multiply_stage(a, smem, columns, k, k_end);
    }
  }

  /// See SimtLoop::store_tile.
  template <class Store>
  MP_DEVICE void store_tile(const Store &store) {
    store_rows<kVectors>(acc_, [&](int i, float(&sums)[kVec]) {
      store(row(i / kVectorsPerRow), i % kVectorsPerRow * kVec, sums);
    });
  }

 private:
  static constexpr int kVectors = kRows * kVectorsPerRow;

  /// Returns row i of this thread; adjacent lanes have adjacent rows.
  static MP_DEVICE int row(int i) { return i * kThreads + thread_index(); }

  /// Rows of A of this thread, loaded one vector of k at a time.
  class Rows {
   public:
    MP_DEVICE Rows(const SourceA &source, int64_t m0, int64_t k0)
        : source_(source), cursor_(source.cursor(k0)) {
      MP_UNROLL
      for (int i = 0; i < kRows; i++) x_coords_[i] = source.x_coord(m0 + row(i));
    }

    MP_DEVICE void fetch(float (&values)[kRows][kVec], int64_t k, int64_t k_end) {
      with_type(source_.dtype(), [&]<class T>(std::type_identity<T>) {
        MP_UNROLL
        for (int i = 0; i < kRows; i++)
          source_.template load<T>(values[i], x_coords_[i], cursor_, k, k_end);
      });
      source_.advance(cursor_, kVec);
    }

   private:
    const SourceA &source_;
    typename SourceA::XCoord x_coords_[kRows];
    typename SourceA::Cursor cursor_;
  };

  MP_DEVICE void multiply_stage(Rows &a, const float *b, int64_t columns, int64_t k,
                                int64_t k_end) {
    const int64_t stage_end = min_of(k + kStageElems, k_end);
    MP_NO_UNROLL
    for (; k < stage_end; k += kVec, b += kVec * Tile::kN) {
      float rows[kRows][kVec];
      a.fetch(rows, k, k_end);
      MP_UNROLL
      for (int vector = 0; vector < kVectorsPerRow; vector++)
        if (vector * kVec < columns) multiply_vector(rows, b + vector * kVec, vector);
    }
  }

  /// Multiplies kVec columns from vector * kVec on, of all rows; `b` points to their elements.
  MP_DEVICE void multiply_vector(const float (&rows)[kRows][kVec], const float *b, int vector) {
    MP_UNROLL
    for (int k = 0; k < kVec; k++) {
      float across[kVec];
      MP_UNROLL
      for (int j = 0; j < kVec; j++) across[j] = b[k * Tile::kN + j];
      MP_UNROLL
      for (int i = 0; i < kRows; i++)
        multiply_add8(acc_[i * kVectorsPerRow + vector], rows[i][k], across);
    }
  }

  float acc_[kVectors][kVec] = {};
};

/// Main loop on the CUDA cores for skinny M, few rows and many columns: each thread computes all
/// rows of eight columns.
///
/// B is not shared between threads, so it bypasses shared memory.  The halves of a warp sum over
/// different k of the same columns, because there may be few columns too, and add their sums at the
/// end.  The source of B is not contiguous along k and has no cursor.
template <class Tile, class SourceA, class SourceB>
class SkinnyMLoop {
  static constexpr int kStageElems = 128;  ///< k per stage
  static constexpr int kBatch = 4;         ///< k per batch: vectors of B in flight
  static constexpr int kHalf = 16;         ///< lanes of half a warp
  static constexpr int kStoredRows = Tile::kM / 2;
  static_assert(!SourceB::by_k && Tile::kN == kHalf * kVec && Tile::kM % (2 * kVec) == 0);

 public:
  static constexpr int kThreads = 2 * kHalf;

 private:
  using TileA = OperandTile<SourceA, Tile::kM, kStageElems, kThreads>;

 public:
  static constexpr int kSmemFloats = TileA::kElems;

  /// Computes the sums of the tile at (m0, n0) over [k0, k_end).
  MP_DEVICE void multiply(float *smem, const SourceA &source_a, const SourceB &source_b, int64_t m0,
                          int64_t n0, int64_t k0, int64_t k_end) {
    TileA a(source_a, m0, k0);
    const Columns b{source_b, source_b.x_coord(n0 + col())};
    const int64_t rows = n0 + col() < source_b.extent() ? source_a.extent() - m0 : 0;
    for (int64_t k = k0; k < k_end; k += kStageElems) {
      a.fetch(k_end);
      block_sync();  // the previous stage may still be read
      a.put(smem);
      block_sync();
      if (rows > 0) multiply_stage(smem, b, rows, k, k_end);
    }
    add_halves();
  }

  /// See SimtLoop::store_tile.
  template <class Store>
  MP_DEVICE void store_tile(const Store &store) {
    store_rows<kStoredRows>(
        acc_, [&](int i, float(&sums)[kVec]) { store(half() * kStoredRows + i, col(), sums); });
  }

 private:
  static MP_DEVICE int half() { return thread_index() / kHalf; }
  static MP_DEVICE int col() { return thread_index() % kHalf * kVec; }

  /// Columns of B of this thread.
  struct Columns {
    const SourceB &source;
    const typename SourceB::XCoord x_coord;

    MP_DEVICE void load(float (&vectors)[kBatch][kVec], int64_t k, int64_t k_end) const {
      with_type(source.dtype(), [&]<class T>(std::type_identity<T>) {
        MP_UNROLL
        for (int i = 0; i < kBatch; i++)
          source.template load<T>(vectors[i], x_coord, NoCursor{}, k + i, k_end);
      });
    }
  };

  MP_DEVICE void multiply_stage(const float *a, const Columns &b, int64_t rows, int64_t k,
                                int64_t k_end) {
    constexpr int kElems = kStageElems / 2;
    k += half() * kElems;
    a += half() * kElems * Tile::kM;
    MP_NO_UNROLL
    for (int i = 0; i < kElems && k + i < k_end; i += kBatch, a += kBatch * Tile::kM) {
      float vectors[kBatch][kVec];
      b.load(vectors, k + i, k_end);
      MP_UNROLL
      for (int row = 0; row < Tile::kM; row += kVec)
        if (row < rows) multiply_rows(a + row, vectors, row);
    }
  }

  /// Multiplies kVec rows from `row` on; `a` points to their elements.
  MP_DEVICE void multiply_rows(const float *a, const float (&vectors)[kBatch][kVec], int row) {
    MP_UNROLL
    for (int k = 0; k < kBatch; k++) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) multiply_add8(acc_[row + i], a[k * Tile::kM + i], vectors[k]);
    }
  }

  /// Adds the sums of the two halves of the warp; each half keeps half of the rows.
  MP_DEVICE void add_halves() {
    MP_UNROLL
    for (int i = 0; i < kStoredRows; i++) {
      MP_UNROLL
      for (int j = 0; j < kVec; j++) {
        const float low = acc_[i][j], high = acc_[kStoredRows + i][j];
        const float kept = half() == 0 ? low : high, given = half() == 0 ? high : low;
        acc_[i][j] = kept + shuffle_xor(given, kHalf);
      }
    }
  }

  float acc_[Tile::kM][kVec] = {};
};

}  // namespace mp::MP_TARGET
