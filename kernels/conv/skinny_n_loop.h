// The main loop on the CUDA cores for a narrow tile: a thread has whole rows of it.
//
// Nobody else needs a thread's rows of A, so they go from gmem to registers and never through smem.  A
// run of them is multiplied so often that the other warps of the SM hide its latency.  B is small: a
// stage of it holds several runs, and all lanes read the same of its values.  Sources are those of
// simt_loop.h; A's is by k.
#pragma once

#include "kernels/gemm/simt_loop.h"

namespace mp::MP_TARGET {

template <class Tile, class SourceA, class SourceB>
class SkinnyNLoop {
  static constexpr int kRows = 4;         ///< of a thread
  static constexpr int kStageElems = 64;  ///< of k
  static constexpr int kRunsPerRow = Tile::kN / kVec;
  static_assert(SourceA::by_k);

 public:
  static constexpr int kThreads = Tile::kM / kRows;

 private:
  using TileB = OperandTile<SourceB, Tile::kN, kStageElems, kThreads>;

 public:
  static constexpr int kSmemFloats = TileB::kElems;

  /// The sums of the tile at (m0, n0) over [k0, k_end).
  MP_DEVICE void multiply(float *smem, const SourceA &source_a, const SourceB &source_b, int64_t m0,
                          int64_t n0, int64_t k0, int64_t k_end) {
    TileB b(source_b, n0, k0);
    Rows a(source_a, m0, k0);
    const int64_t columns = source_b.extent() - n0;
    for (int64_t k = k0; k < k_end; k += kStageElems) {
      b.fetch(k_end);
      block_sync();  // the stage before is still read
      b.put(smem);
      block_sync();
      multiply_stage(a, smem, columns, k, k_end);
    }
  }

  /// As SimtLoop's.
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

  /// Neighbouring lanes have neighbouring rows.
  static MP_DEVICE int row(int i) { return i * kThreads + thread_index(); }

  /// This thread's rows of A, a run of k at a time.
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

  /// Columns [run * kVec, ...) of all rows; b is theirs.
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
