// The main loop on the CUDA cores: operands of any type, multiplied and added in fp32.
//
// A block computes a kM x kN tile; every thread keeps 8 x 8 sums in registers and reads 8 + 8 values
// of smem per k.  The next k-tile is fetched into registers while this one is multiplied.
//
// A source gives the elements of one operand; x is A's m or B's n:
//
//     bool by_k;                       k is the contiguous direction
//     Place place(x);                  what x alone says; asked once per tile
//     void load(values, place, k, k_end);
//                                      kVec elements from (x, k) on in the contiguous direction,
//                                      zeros outside
#pragma once

#include "kernels/gemm/tiles.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Puts a tile of kExtent x kK into smem as [k][extent].
template <class Source, int kExtent, int kK, int kThreads>
class OperandTile {
 public:
  static constexpr int kElems = kK * kExtent;

  MP_DEVICE OperandTile(const Source &source, int64_t x0) : source_(source) {
    MP_UNROLL
    for (int i = 0; i < kRuns; i++) places_[i] = source.place(x0 + run_of(i).x);
  }

  MP_DEVICE void fetch(int64_t k0, int64_t k_end) {
    MP_UNROLL
    for (int i = 0; i < kRuns; i++) source_.load(values_[i], places_[i], k0 + run_of(i).k, k_end);
  }

  MP_DEVICE void put(float *smem) const {
    MP_UNROLL
    for (int i = 0; i < kRuns; i++) {
      const Run run = run_of(i);
      const int step = source_.by_k ? kExtent : 1;
      MP_UNROLL
      for (int j = 0; j < kVec; j++) smem[run.k * kExtent + run.x + j * step] = values_[i][j];
    }
  }

 private:
  struct Run {
    int x, k;
  };
  static constexpr int kRuns = kExtent * kK / kVec / kThreads;
  static_assert(kRuns * kVec * kThreads == kExtent * kK);

  MP_DEVICE Run run_of(int i) const {
    const int number = i * kThreads + thread_index();
    // Neighbouring lanes take neighbouring runs of gmem.  With k contiguous that scatters their
    // stores over smem rows, so there x goes fastest instead: stores without bank conflicts, and
    // the half-used sectors of gmem are used by the next run.
    if (source_.by_k) return {number % kExtent, number / kExtent * kVec};
    return {number % (kExtent / kVec) * kVec, number / (kExtent / kVec)};
  }

  const Source &source_;
  typename Source::Place places_[kRuns];
  float values_[kRuns][kVec];
};

template <class Tile, class SourceA, class SourceB>
class SimtLoop {
  using TileA = OperandTile<SourceA, Tile::kM, Tile::kK, Tile::kThreads>;
  using TileB = OperandTile<SourceB, Tile::kN, Tile::kK, Tile::kThreads>;
  static constexpr int kStage = TileA::kElems + TileB::kElems;

 public:
  static constexpr int kSmemFloats = 2 * kStage;

  /// The sums of the tile at (m0, n0) over [k0, k_end).
  MP_DEVICE void multiply(float *smem, const SourceA &source_a, const SourceB &source_b, int64_t m0,
                          int64_t n0, int64_t k0, int64_t k_end) {
    TileA a(source_a, m0);
    TileB b(source_b, n0);
    const auto fetch = [&](int64_t k) {
      a.fetch(k, k_end);
      b.fetch(k, k_end);
    };
    const auto put = [&](int stage) {
      a.put(smem + stage * kStage);
      b.put(smem + stage * kStage + TileA::kElems);
    };
    fetch(k0);
    put(0);
    block_sync();
    int stage = 0;
    for (int64_t k = k0; k < k_end; k += Tile::kK, stage ^= 1) {
      const bool more = k + Tile::kK < k_end;
      if (more) fetch(k + Tile::kK);
      multiply_stage(smem + stage * kStage, smem + stage * kStage + TileA::kElems);
      if (more) put(stage ^ 1);
      block_sync();
    }
  }

  /// Calls store(row, col, x) for runs x of kVec columns; row and col in the tile.  Not unrolled, and
  /// rows moved up, for the reason given in wmma_loop.h.
  template <class Store>
  MP_DEVICE void store_tile(const Store &store) {
    MP_NO_UNROLL
    for (int i = 0; i < kVec; i++) {
      store(row() + i, col(), acc_[0]);
      MP_UNROLL
      for (int r = 0; r + 1 < kVec; r++) {
        MP_UNROLL
        for (int j = 0; j < kVec; j++) acc_[r][j] = acc_[r + 1][j];
      }
    }
  }

 private:
  static constexpr int kColumns = Tile::kN / kVec;
  static MP_DEVICE int row() { return thread_index() / kColumns * kVec; }
  static MP_DEVICE int col() { return thread_index() % kColumns * kVec; }

  MP_DEVICE void multiply_stage(const float *a, const float *b) {
    for (int k = 0; k < Tile::kK; k++) {
      float across[kVec];
      MP_UNROLL
      for (int j = 0; j < kVec; j++) across[j] = b[k * Tile::kN + col() + j];
      MP_UNROLL
      for (int i = 0; i < kVec; i++) multiply_add8(acc_[i], a[k * Tile::kM + row() + i], across);
    }
  }

  float acc_[kVec][kVec] = {};
};

}  // namespace mp::MP_TARGET
