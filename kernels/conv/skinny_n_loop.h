// Main loop on the CUDA cores for skinny N: each thread computes complete rows of the tile.
//
// A is not shared between threads, so it bypasses shared memory.  Each vector of A takes part in
// enough products for the other warps of the SM to hide its latency.  B is small: a stage spans
// several vectors of A, and all lanes read the same element of it.  Sources are those of
// simt_loop.h; that of A is contiguous along k.
#pragma once

#include "kernels/gemm/simt_loop.h"

namespace mp::MP_TARGET {

template <class Tile, class SourceA, class SourceB>
class SkinnyNLoop {
  static constexpr int kRows = 4;         ///< rows per thread
  static constexpr int kStageElems = 64;  ///< k per stage
  static constexpr int kRunsPerRow = Tile::kN / kVec;
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
    MP_NO_UNROLL
    for (int i = 0; i < kRuns; i++) {
      store(row(i / kRunsPerRow), i % kRunsPerRow * kVec, acc_[0]);
      MP_UNROLL
      for (int r = 0; r + 1 < kRuns; r++) {
        MP_UNROLL
        for (int j = 0; j < kVec; j++) acc_[r][j] = acc_[r + 1][j];
      }
    }
  }

 private:
  static constexpr int kRuns = kRows * kRunsPerRow;

  /// Returns row i of this thread; adjacent lanes have adjacent rows.
  static MP_DEVICE int row(int i) { return i * kThreads + thread_index(); }

  /// Rows of A of this thread, loaded one vector of k at a time.
  class Rows {
   public:
    MP_DEVICE Rows(const SourceA &source, int64_t m0, int64_t k0)
        : source_(source), cursor_(source.cursor(k0)) {
      MP_UNROLL
      for (int i = 0; i < kRows; i++) places_[i] = source.place(m0 + row(i));
    }

    MP_DEVICE void fetch(float (&values)[kRows][kVec], int64_t k, int64_t k_end) {
      with_type(source_.dtype(), [&](auto type) {
        MP_UNROLL
        for (int i = 0; i < kRows; i++)
          source_.template load<typename decltype(type)::type>(values[i], places_[i], cursor_, k,
                                                               k_end);
      });
      source_.advance(cursor_, kVec);
    }

   private:
    const SourceA &source_;
    typename SourceA::Place places_[kRows];
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
      for (int run = 0; run < kRunsPerRow; run++)
        if (run * kVec < columns) multiply_run(rows, b + run * kVec, run);
    }
  }

  /// Multiplies kVec columns from run * kVec on, of all rows; `b` points to their elements.
  MP_DEVICE void multiply_run(const float (&rows)[kRows][kVec], const float *b, int run) {
    MP_UNROLL
    for (int k = 0; k < kVec; k++) {
      float across[kVec];
      MP_UNROLL
      for (int j = 0; j < kVec; j++) across[j] = b[k * Tile::kN + j];
      MP_UNROLL
      for (int i = 0; i < kRows; i++)
        multiply_add8(acc_[i * kRunsPerRow + run], rows[i][k], across);
    }
  }

  float acc_[kRuns][kVec] = {};
};

}  // namespace mp::MP_TARGET
