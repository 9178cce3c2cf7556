// Tiles of the plain attention kernels, which support every shape, type, layout and alignment.  The
// type is known at run time: multiply-adds bound the speed, and instances for each type would take
// more than twice as much code.
//
// A block computes kTileRows rows of its outputs and visits tiles of kTileColumns columns.  A
// thread owns kThreadRows rows and kVec columns of a tile of scores, and the same number of
// elements in each panel of kTileColumns columns of an output.  Operands pass through shared memory
// as fp32, kDepth terms of each sum at a time:
//
//     dot_products   scores or dp of a tile: stages kDepth columns of both operands, multiplies
//     store_weights  p or ds of a tile, rounded to the type, to shared memory
//     add_weighted   sums += weights x values: stages kDepth rows of a panel, multiplies
#pragma once

#include "kernels/attention/attention_units.h"

namespace mp::MP_TARGET {

constexpr int kTileRows = kPlainTile.rows, kTileColumns = kPlainTile.columns;
constexpr int kThreadRows = 4;
constexpr int kThreadsPerRow = kTileColumns / kVec;
constexpr int kDepth = 32;
constexpr int kRowPitch = kDepth + 4;           // floats per row in `rows`
constexpr int kWeightPitch = kTileColumns + 4;  // floats per row in `weights`
constexpr int kPartPitch = kThreadsPerRow + 1;  // floats per row in `of_threads`
static_assert(kTileRows / kThreadRows * kThreadsPerRow == kAttentionThreads);
// The threads of a row are in one warp, so values that only they exchange need no block barrier.
static_assert(kWarpSize % kThreadsPerRow == 0);

/// Scores, or an output panel, of a thread.
using ThreadTile = float[kThreadRows][kVec];

struct alignas(16) AttentionSmem {
  float rows[kTileRows * kRowPitch];         ///< [row][term]
  float columns[kDepth * kTileColumns];      ///< [term][column]
  float weights[kTileRows * kWeightPitch];   ///< p or ds, [row][column]
  float of_threads[kTileRows * kPartPitch];  ///< a value per row and thread
};
static_assert(sizeof(AttentionSmem) == kPlainTile.smem_bytes);

/// First row of this thread in a tile of rows, and first column in a tile of columns.
MP_DEVICE int thread_row() {
  return thread_index() / kThreadsPerRow * kThreadRows;
}
MP_DEVICE int thread_column() {
  return thread_index() % kThreadsPerRow * kVec;
}

/// Tiles of columns that the block visits for the tile of rows at x0, and visible columns of the
/// rows of this thread.
struct ThreadBand {
  TileRange tiles;
  int first[kThreadRows], end[kThreadRows];

  MP_DEVICE ThreadBand(const Band &band, int64_t x0)
      : tiles(band.tiles(x0, kTileRows, kTileColumns)) {
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      first[r] = band.first(x0 + thread_row() + r);
      end[r] = band.end(x0 + thread_row() + r);
    }
  }
  MP_DEVICE bool sees(int r, int column) const { return column >= first[r] && column < end[r]; }
  MP_DEVICE bool is_empty(int r) const { return first[r] >= end[r]; }
};

/// Returns a mask of the scores of this thread that are dropped: bit r * kVec + c.
/// @param x0, y0   first row and column of the tiles
/// @tparam kByKey  rows are keys and columns queries
template <bool kByKey>
MP_DEVICE uint32_t dropped_scores(const ScoreDropout &dropout, int64_t x0, int64_t y0) {
  static_assert(kThreadRows * kVec == 32);
  uint32_t mask = 0;
  if (!dropout.is_enabled()) return mask;
  const auto x = static_cast<uint32_t>(x0) + thread_row();
  const auto y = static_cast<uint32_t>(y0) + thread_column();
  MP_NO_UNROLL
  for (int r = 0; r < kThreadRows; r += 2) {
    MP_NO_UNROLL
    for (int c = 0; c < kVec; c += 2) {
      const uint32_t i = kByKey ? y + c : x + r, j = kByKey ? x + r : y + c;  // both even
      const PhiloxWords bytes = dropout.bytes_of(i, j);
      const bool is_low = i % 16 < 8;
      const uint32_t words[2] = {is_low ? bytes.x[0] : bytes.x[2],
                                 is_low ? bytes.x[1] : bytes.x[3]};
      unroll<2, 2>([&](int of_i, int of_j) {
        const bool drops = dropout.drops(words[of_i], j % 16 / 8 * 2 + of_j);
        const int bit = (r + (kByKey ? of_j : of_i)) * kVec + c + (kByKey ? of_i : of_j);
        mask |= static_cast<uint32_t>(drops) << bit;
      });
    }
  }
  return mask;
}

/// Zeroes the values of this thread whose bit in `mask` is 1.
MP_DEVICE void clear_dropped(ThreadTile &values, uint32_t mask) {
  if (mask == 0) return;
  unroll<kThreadRows, kVec>([&](int r, int c) {
    if ((mask >> (r * kVec + c) & 1) != 0) values[r][c] = 0.0f;
  });
}

// ---------------------------------------------------------------------------- products

using InputRows = HeadRows<const void>;

/// Loads the vector of a row at `column`; zeros outside.
MP_DEVICE void load_run(float (&x)[kVec], const InputRows &from, int64_t row, int column) {
  load_vector(x, from.dtype, from.row(row), column,
              row < from.rows ? clamp_to_int(from.width - column, kVec) : 0);
}

/// Copies terms [term, term + kDepth) of a tile of columns to shared memory as [term][column];
/// zeros outside.
MP_DEVICE void stage_transposed(float *smem, const InputRows &from, int64_t first_row, int term) {
  MP_NO_UNROLL
  for (int i = thread_index(); i < kTileColumns * (kDepth / kVec); i += kAttentionThreads) {
    const int row = i % kTileColumns, e = i / kTileColumns * kVec;
    float x[kVec];
    load_run(x, from, first_row + row, term + e);
    unroll<kVec>([&](int j) { smem[(e + j) * kTileColumns + row] = x[j]; });
  }
}

/// Copies kRows rows of kColumns columns to shared memory as [row][column]; zeros outside.
template <int kRows, int kColumns>
MP_DEVICE void stage_rows(float *smem, int pitch, const InputRows &from, int64_t first_row,
                          int first_column) {
  constexpr int kVectors = kColumns / kVec;
  MP_NO_UNROLL
  for (int i = thread_index(); i < kRows * kVectors; i += kAttentionThreads) {
    const int row = i / kVectors, column = i % kVectors * kVec;
    float x[kVec];
    load_run(x, from, first_row + row, first_column + column);
    store_smem_run(smem + row * pitch + column, x);
  }
}

/// sums += rows x columns for `depth` terms, rounded up to a multiple of kQuad: operands have zeros
/// there.  Inlined, with sums in local variables: otherwise g++ stores every sum after every
/// multiply-add.
[[gnu::always_inline]] MP_DEVICE void multiply_staged(ThreadTile &sums, const float *rows,
                                                      int pitch, const float *columns, int depth) {
  ThreadTile own;
  unroll<kThreadRows, kVec>([&](int r, int c) { own[r][c] = sums[r][c]; });
  rows += thread_row() * pitch;
  columns += thread_column();
  MP_NO_UNROLL
  for (int term = 0; term < depth; term += kQuad) {
    Quad factors[kThreadRows];
    unroll<kThreadRows>(
        [&](int r) { factors[r] = *reinterpret_cast<const Quad *>(rows + r * pitch + term); });
    MP_UNROLL
    for (int i = 0; i < kQuad; i++) {
      float x[kVec];
      load_smem_run(x, columns + (term + i) * kTileColumns);
      unroll<kThreadRows>([&](int r) { multiply_add8(own[r], factors[r].x[i], x); });
    }
  }
  unroll<kThreadRows, kVec>([&](int r, int c) { sums[r][c] = own[r][c]; });
}

MP_DEVICE void clear(ThreadTile &sums) {
  unroll<kThreadRows, kVec>([&](int r, int c) { sums[r][c] = 0.0f; });
}
template <int kPanels>
MP_DEVICE void clear(ThreadTile (&sums)[kPanels]) {
  unroll<kPanels>([&](int panel) { clear(sums[panel]); });
}

/// Computes dots[r][c], the dot products of rows from x0 on and rows of `columns` from y0 on.
MP_DEVICE void dot_products(ThreadTile &dots, const InputRows &rows, int64_t x0,
                            const InputRows &columns, int64_t y0, AttentionSmem &smem) {
  clear(dots);
  for (int term = 0; term < rows.width; term += kDepth) {
    block_sync();  // the previous terms have been used
    stage_rows<kTileRows, kDepth>(smem.rows, kRowPitch, rows, x0, term);
    stage_transposed(smem.columns, columns, y0, term);
    block_sync();
    if (y0 + thread_column() < columns.rows)
      multiply_staged(dots, smem.rows, kRowPitch, smem.columns, min_of(rows.width - term, kDepth));
  }
}

/// Stores the weights of this thread, rounded to `dtype`, for add_weighted.  Each warp reads only
/// the weights of its own rows.
MP_DEVICE void store_weights(mp_dtype_t dtype, const ThreadTile &weights, AttentionSmem &smem) {
  ThreadTile rounded;
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    unroll<kThreadRows, kVec>(
        [&](int r, int c) { rounded[r][c] = to_float(round_to<T>(weights[r][c])); });
  });
  float *const own = smem.weights + thread_row() * kWeightPitch + thread_column();
  unroll<kThreadRows>([&](int r) { store_smem_run(own + r * kWeightPitch, rounded[r]); });
}

/// sums += weights times the rows of `values` from y0 on, in the panels from first_panel on.
/// Weights may be stored again after a warp_sync.
template <int kPanels>
MP_DEVICE void add_weighted(ThreadTile (&sums)[kPanels], const InputRows &values, int64_t y0,
                            AttentionSmem &smem, int first_panel = 0) {
  const int count = clamp_to_int(values.rows - y0, kTileColumns);
  MP_UNROLL
  for (int panel = 0; panel < kPanels; panel++) {
    const int first_column = (first_panel + panel) * kTileColumns;
    if (first_column >= values.width) continue;
    for (int row = 0; row < count; row += kDepth) {
      block_sync();  // the weights are stored, and the previous rows have been used
      stage_rows<kDepth, kTileColumns>(smem.columns, kTileColumns, values, y0 + row, first_column);
      block_sync();
      if (first_column + thread_column() < values.width)
        multiply_staged(sums[panel], smem.weights + row, kWeightPitch, smem.columns,
                        min_of(count - row, kDepth));
    }
  }
}

// ---------------------------------------------------------------------------- outputs

/// Stores factor x sums of the tile of rows at x0, in the panels from first_panel on.  Rows
/// without a visible element become 0, even if 0 times hidden values made their sums NaN.
template <int kPanels>
MP_DEVICE void store_sums(const HeadRows<void> &out, int64_t x0, const ThreadTile (&sums)[kPanels],
                          float factor, const ThreadBand &band, AmaxTracker &tracker,
                          int first_panel = 0) {
  MP_UNROLL
  for (int panel = 0; panel < kPanels; panel++) {
    const int column = (first_panel + panel) * kTileColumns + thread_column();
    const int valid = clamp_to_int(out.width - column, kVec);
    ThreadTile values;
    unroll<kThreadRows, kVec>(
        [&](int r, int c) { values[r][c] = band.is_empty(r) ? 0.0f : factor * sums[panel][r][c]; });
    // Not unrolled; the rows move up (wmma_loop.h).
    MP_NO_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      const int64_t x = x0 + thread_row() + r;
      if (x < out.rows) store_run(out, x, column, values[0], valid, tracker);
      MP_UNROLL
      for (int next = 1; next < kThreadRows; next++) {
        unroll<kVec>([&](int c) { values[next - 1][c] = values[next][c]; });
      }
    }
  }
}

}  // namespace mp::MP_TARGET
