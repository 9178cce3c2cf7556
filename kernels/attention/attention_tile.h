// Tiles of the plain attention kernels, which support every shape, type, layout and alignment.
//
// A block computes kTileRows rows of its outputs: of o or dq, one per query, or of dk and dv, one
// per key.  It visits the other side of the scores in tiles of kTileColumns.  "Rows" x are queries
// or keys of the output, "columns" y the keys or queries that are summed over.
//
// A thread owns kThreadRows rows and kVec columns of a tile of scores, and the same number of
// elements in each panel of kTileColumns columns of an output.  Operands pass through shared memory
// as fp32, kDepth terms of each sum at a time:
//
//     dot_products   scores or dp of a tile: stages kDepth columns of both operands, multiplies
//     store_weights  p or ds of a tile, rounded to the type, to shared memory
//     add_weighted   sums += weights x values: stages kDepth rows of a panel, multiplies
#pragma once

#include "kernels/attention/attention_args.h"
#include "kernels/simt/fast_math.h"
#include "kernels/simt/random.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

constexpr int kAttentionThreads = 128;
constexpr int kTileRows = 32, kTileColumns = 128;
constexpr int kThreadRows = 4;
constexpr int kThreadsPerRow = kTileColumns / kVec;
constexpr int kDepth = 32;
constexpr int kRowPitch = kDepth + 4;           // floats per row in `rows`
constexpr int kWeightPitch = kTileColumns + 4;  // floats per row in `weights`
constexpr int kPartPitch = kThreadsPerRow + 1;  // floats per row in `of_threads`
constexpr float kLog2E = 1.4426950409f;
constexpr float kHidden = -HUGE_VALF;  // score of a hidden key
static_assert(kTileRows / kThreadRows * kThreadsPerRow == kAttentionThreads);

/// Scores, or an output panel, of a thread.
using ThreadTile = float[kThreadRows][kVec];

struct alignas(16) AttentionSmem {
  float rows[kTileRows * kRowPitch];         ///< [row][term]
  float columns[kDepth * kTileColumns];      ///< [term][column]
  float weights[kTileRows * kWeightPitch];   ///< p or ds, [row][column]
  float of_threads[kTileRows * kPartPitch];  ///< a value per row and thread
};

/// First row of this thread in a tile of rows, and first column in a tile of columns.
MP_DEVICE int thread_row() {
  return thread_index() / kThreadsPerRow * kThreadRows;
}
MP_DEVICE int thread_column() {
  return thread_index() % kThreadsPerRow * kVec;
}

MP_DEVICE int clamp_to_int(int64_t x, int64_t most) {
  return static_cast<int>(max_of<int64_t>(min_of(x, most), 0));
}

// ---------------------------------------------------------------------------- sequences

/// Rows of a tensor that belong to a sequence.
struct SequenceRows {
  int64_t first;   ///< in the tensor; 0 in the padded form
  int64_t count;   ///< valid rows
  int64_t stored;  ///< rows of outputs that are written
  bool is_valid;   ///< the length is in range
};

/// Returns the rows of sequence `b` in the packed form.  Called by all threads of the block.
MP_DEVICE SequenceRows packed_rows(const int32_t *ends, int b, int64_t rows, int64_t most) {
  int32_t begin = 0;  // the largest end of the preceding sequences
  for (int i = thread_index(); i < b; i += kAttentionThreads) begin = max_of(begin, ends[i]);
  if (b > 0) begin = block_reduce<kAttentionThreads, Max>(begin);
  const int64_t first = min_of<int64_t>(begin, rows);
  const int64_t count = min_of<int64_t>(max_of(begin, ends[b]), rows) - first;
  return {first, count, count, count <= most};
}

MP_DEVICE SequenceRows padded_rows(const int32_t *lengths, int b, int64_t rows) {
  const int64_t count = lengths != nullptr ? lengths[b] : rows;
  return {0, count, rows, count >= 0 && count <= rows};
}

/// Sequence `number` of a call.
struct Sequence {
  int number;
  SequenceRows q, kv;

  /// Called by all threads of the block.
  MP_DEVICE Sequence(const AttentionArgs &args, int b) : number(b) {
    const mp_attention_desc_t &d = args.desc;
    if (is_packed(d)) {
      q = packed_rows(args.q_ends, b, d.q_rows, d.q_len);
      kv = packed_rows(args.kv_ends, b, d.kv_rows, d.kv_len);
    } else {
      q = padded_rows(args.q_lengths, b, d.q_len);
      kv = padded_rows(args.kv_lengths, b, d.kv_len);
    }
  }
  MP_DEVICE bool is_valid() const { return q.is_valid && kv.is_valid; }

  /// Index in lse of query 0.
  MP_DEVICE int64_t lse_index(const mp_attention_desc_t &d, int head) const {
    return is_packed(d) ? head * d.q_rows + q.first : (int64_t{number} * d.heads + head) * d.q_len;
  }
};

/// Rows of one sequence and head of a tensor.
template <class T>
struct HeadRows {
  T *first;
  int64_t stride;
  int64_t rows;
  int width;

  MP_DEVICE T *row(int64_t x) const { return first + x * stride; }
};

/// Returns the rows of a tensor; NULL for tensors that the call does not have.
template <class T, class Void>
MP_DEVICE HeadRows<T> rows_of(Void *tensor, const mp_attention_layout_t &layout,
                              const mp_attention_desc_t &d, int sequence, int64_t first_row,
                              int head, int64_t rows, int width) {
  const int64_t start = is_packed(d) ? first_row * layout.row : sequence * layout.batch;
  T *const first =
      tensor != nullptr ? static_cast<T *>(tensor) + start + head * layout.head : nullptr;
  return {first, layout.row, rows, width};
}

/// Inputs of a sequence and a query head.
template <class T>
struct HeadInputs {
  HeadRows<const T> q, k, v, d_o, o;

  MP_DEVICE HeadInputs(const AttentionArgs &args, const Sequence &s, int head) {
    const mp_attention_desc_t &d = args.desc;
    const int kv_head = head / (d.heads / d.kv_heads), b = s.number;
    q = rows_of<const T>(args.q, d.q, d, b, s.q.first, head, s.q.count, d.head_dim);
    k = rows_of<const T>(args.k, d.k, d, b, s.kv.first, kv_head, s.kv.count, d.head_dim);
    v = rows_of<const T>(args.v, d.v, d, b, s.kv.first, kv_head, s.kv.count, d.head_dim_v);
    d_o = rows_of<const T>(args.d_o, d.o, d, b, s.q.first, head, s.q.count, d.head_dim_v);
    o = rows_of<const T>(args.o, d.o, d, b, s.q.first, head, s.q.count, d.head_dim_v);
  }
};

// ---------------------------------------------------------------------------- visible scores

/// Columns [first(x), end(x)) that row x sees: -before <= y - (x + shift) <= after.
struct Band {
  int64_t shift, before, after;
  int64_t rows, columns;

  /// Keys that each query sees.
  static MP_DEVICE Band of_queries(const mp_attention_desc_t &d, const Sequence &s) {
    constexpr int64_t kUnlimited = int64_t{1} << 40;
    Band band{s.kv.count - s.q.count, kUnlimited, kUnlimited, s.q.count, s.kv.count};
    if ((d.flags & MP_ATTENTION_FLAG_WINDOW) != 0) {
      if (d.window_left >= 0) band.before = d.window_left;
      if (d.window_right >= 0) band.after = d.window_right;
    }
    if ((d.flags & MP_ATTENTION_FLAG_CAUSAL) != 0) band.after = 0;
    return band;
  }
  /// Queries that see each key.
  static MP_DEVICE Band of_keys(const mp_attention_desc_t &d, const Sequence &s) {
    const Band b = of_queries(d, s);
    return {-b.shift, b.after, b.before, b.columns, b.rows};
  }

  MP_DEVICE int first(int64_t x) const { return clamp_to_int(x + shift - before, columns); }
  MP_DEVICE int end(int64_t x) const {
    return x < rows ? clamp_to_int(x + shift + after + 1, columns) : 0;
  }

  /// Tiles of columns [first_tile, end_tile) that some row of the tile of rows at x sees.
  MP_DEVICE int first_tile(int64_t x) const { return first(x) / kTileColumns; }
  MP_DEVICE int end_tile(int64_t x) const {
    if (x >= rows) return 0;
    const int end_column = end(min_of(x + kTileRows, rows) - 1);
    return first(x) < end_column ? ceil_div(end_column, kTileColumns) : 0;
  }
};

/// Tiles of columns [first_tile, end_tile) that the block visits for the tile of rows at x0, and
/// visible columns of the rows of this thread.
struct ThreadBand {
  int first_tile, end_tile;
  int first[kThreadRows], end[kThreadRows];

  MP_DEVICE ThreadBand(const Band &band, int64_t x0)
      : first_tile(band.first_tile(x0)), end_tile(band.end_tile(x0)) {
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      first[r] = band.first(x0 + thread_row() + r);
      end[r] = band.end(x0 + thread_row() + r);
    }
  }
  MP_DEVICE bool sees(int r, int column) const { return column >= first[r] && column < end[r]; }
  MP_DEVICE bool is_empty(int r) const { return first[r] >= end[r]; }
};

// ---------------------------------------------------------------------------- dropout

/// Masks of the scores of a sequence and a query head; attention.h defines them.
class ScoreDropout {
 public:
  MP_DEVICE ScoreDropout(const AttentionArgs &args, int sequence, int head)
      : args_(args), stream_(static_cast<uint32_t>(sequence) * args.desc.heads + head) {}

  /// 1 / (1 - T / 256), the factor of the scores that are kept.
  static MP_DEVICE float keep_factor(const AttentionArgs &args) {
    return 256.0f / static_cast<float>(256 - args.drop_threshold);
  }

  /// Returns a mask of the scores of this thread that are dropped: bit r * kVec + c.
  /// @param x0, y0   first row and column of the tiles
  /// @tparam kByKey  rows are keys and columns queries
  template <bool kByKey>
  MP_DEVICE uint32_t dropped(int64_t x0, int64_t y0) const {
    static_assert(kThreadRows * kVec == 32);
    const auto threshold = static_cast<uint32_t>(args_.drop_threshold);
    uint32_t mask = 0;
    if (threshold == 0) return mask;
    // Read for each tile: otherwise the compiler keeps the keys of all rounds in registers.
    uint64_t key = args_.desc.dropout_seed;
    if (args_.dropout_offset != nullptr) key += *args_.dropout_offset * 0x9E3779B97F4A7C15;
    const auto x = static_cast<uint32_t>(x0) + thread_row();
    const auto y = static_cast<uint32_t>(y0) + thread_column();
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r += 2) {
      MP_UNROLL
      for (int c = 0; c < kVec; c += 2) {
        const uint32_t i = kByKey ? y + c : x + r, j = kByKey ? x + r : y + c;  // both even
        const PhiloxWords random = philox<7>({{pair_of(i), pair_of(j), stream_, 0x6D704154}}, key);
        const bool is_low = i % 16 < 8;
        const uint32_t words[2] = {is_low ? random.x[0] : random.x[2],
                                   is_low ? random.x[1] : random.x[3]};
        MP_UNROLL
        for (int of_i = 0; of_i < 2; of_i++) {
          MP_UNROLL
          for (int of_j = 0; of_j < 2; of_j++) {
            const uint32_t byte = words[of_i] >> (8 * (j % 16 / 8 * 2 + of_j)) & 0xff;
            const int bit = (r + (kByKey ? of_j : of_i)) * kVec + c + (kByKey ? of_i : of_j);
            mask |= static_cast<uint32_t>(byte < threshold) << bit;
          }
        }
      }
    }
    return mask;
  }

 private:
  static MP_DEVICE uint32_t pair_of(uint32_t x) { return x / 16 * 4 + x % 8 / 2; }

  const AttentionArgs &args_;
  const uint32_t stream_;
};

/// Sets the values of this thread whose bit of `mask` is set to 0.
MP_DEVICE void clear_dropped(ThreadTile &values, uint32_t mask) {
  if (mask == 0) return;
  MP_UNROLL
  for (int r = 0; r < kThreadRows; r++) {
    MP_UNROLL
    for (int c = 0; c < kVec; c++)
      if ((mask >> (r * kVec + c) & 1) != 0) values[r][c] = 0.0f;
  }
}

// ---------------------------------------------------------------------------- products

/// Copies terms [term, term + kDepth) of a tile of columns to shared memory as [term][column];
/// zeros outside.
template <class T>
MP_DEVICE void stage_transposed(float *smem, const HeadRows<const T> &from, int64_t first_row,
                                int term) {
  for (int i = thread_index(); i < kTileColumns * (kDepth / kVec); i += kAttentionThreads) {
    const int row = i % kTileColumns, e = i / kTileColumns * kVec;
    const bool exists = first_row + row < from.rows;
    float x[kVec];
    load_vector(x, from.row(first_row + row) + term + e,
                exists ? clamp_to_int(from.width - term - e, kVec) : 0);
    MP_UNROLL
    for (int j = 0; j < kVec; j++) smem[(e + j) * kTileColumns + row] = x[j];
  }
}

/// Copies kRows rows of kColumns columns to shared memory as [row][column]; zeros outside.
template <int kRows, int kColumns, class T>
MP_DEVICE void stage_rows(float *smem, int pitch, const HeadRows<const T> &from, int64_t first_row,
                          int first_column) {
  constexpr int kVectors = kColumns / kVec;
  for (int i = thread_index(); i < kRows * kVectors; i += kAttentionThreads) {
    const int row = i / kVectors, column = i % kVectors * kVec;
    const bool exists = first_row + row < from.rows;
    float x[kVec];
    load_vector(x, from.row(first_row + row) + first_column + column,
                exists ? clamp_to_int(from.width - first_column - column, kVec) : 0);
    store_smem_run(smem + row * pitch + column, x);
  }
}

/// sums += rows x columns for `depth` terms, rounded up to a multiple of kQuad: operands have zeros
/// there.  Inlined, with sums in local variables: otherwise g++ stores every sum after every
/// multiply-add.
[[gnu::always_inline]] MP_DEVICE void multiply_staged(ThreadTile &sums, const float *rows,
                                                      int pitch, const float *columns, int depth) {
  ThreadTile own;
  MP_UNROLL
  for (int r = 0; r < kThreadRows; r++) {
    MP_UNROLL
    for (int c = 0; c < kVec; c++) own[r][c] = sums[r][c];
  }
  rows += thread_row() * pitch;
  columns += thread_column();
  MP_NO_UNROLL
  for (int term = 0; term < depth; term += kQuad) {
    Quad factors[kThreadRows];
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++)
      factors[r] = *reinterpret_cast<const Quad *>(rows + r * pitch + term);
    MP_UNROLL
    for (int i = 0; i < kQuad; i++) {
      float x[kVec];
      load_smem_run(x, columns + (term + i) * kTileColumns);
      MP_UNROLL
      for (int r = 0; r < kThreadRows; r++) multiply_add8(own[r], factors[r].x[i], x);
    }
  }
  MP_UNROLL
  for (int r = 0; r < kThreadRows; r++) {
    MP_UNROLL
    for (int c = 0; c < kVec; c++) sums[r][c] = own[r][c];
  }
}

MP_DEVICE void clear(ThreadTile &sums) {
  MP_UNROLL
  for (int r = 0; r < kThreadRows; r++) {
    MP_UNROLL
    for (int c = 0; c < kVec; c++) sums[r][c] = 0.0f;
  }
}
template <int kPanels>
MP_DEVICE void clear(ThreadTile (&sums)[kPanels]) {
  MP_UNROLL
  for (int panel = 0; panel < kPanels; panel++) clear(sums[panel]);
}

/// dots[r][c] = the products of the rows from x0 on and the rows of `columns` from y0 on.
template <class T>
MP_DEVICE void dot_products(ThreadTile &dots, const HeadRows<const T> &rows, int64_t x0,
                            const HeadRows<const T> &columns, int64_t y0, AttentionSmem &smem) {
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

/// Stores the weights of this thread, rounded to T, for add_weighted.
template <class T>
MP_DEVICE void store_weights(const ThreadTile &weights, AttentionSmem &smem) {
  MP_UNROLL
  for (int r = 0; r < kThreadRows; r++) {
    float rounded[kVec];
    MP_UNROLL
    for (int c = 0; c < kVec; c++) rounded[c] = to_float(round_to<T>(weights[r][c]));
    store_smem_run(smem.weights + (thread_row() + r) * kWeightPitch + thread_column(), rounded);
  }
}

/// sums += weights times the rows of `values` from y0 on, in the panels from first_panel on.
/// Weights may be stored again after a block_sync.
template <int kPanels, class T>
MP_DEVICE void add_weighted(ThreadTile (&sums)[kPanels], const HeadRows<const T> &values,
                            int64_t y0, AttentionSmem &smem, int first_panel = 0) {
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

/// Stores factors[r] x sums of the tile of rows at x0, in the panels from first_panel on.  Rows
/// that see nothing become 0, even if the sums, which contain 0 times hidden values, are NaN.
template <class T, int kPanels>
MP_DEVICE void store_sums(const HeadRows<T> &out, int64_t x0, const ThreadTile (&sums)[kPanels],
                          const float (&factors)[kThreadRows], const ThreadBand &band,
                          AmaxTracker &tracker, int first_panel = 0) {
  MP_UNROLL
  for (int panel = 0; panel < kPanels; panel++) {
    const int column = (first_panel + panel) * kTileColumns + thread_column();
    const int valid = clamp_to_int(out.width - column, kVec);
    MP_UNROLL
    for (int r = 0; r < kThreadRows; r++) {
      const int64_t x = x0 + thread_row() + r;
      if (x >= out.rows) continue;
      float values[kVec];
      MP_UNROLL
      for (int c = 0; c < kVec; c++)
        values[c] = band.is_empty(r) ? 0.0f : factors[r] * sums[panel][r][c];
      store_vector(out.row(x) + column, values, valid);
      tracker.see<T>(values, valid);
    }
  }
}

/// Sets every `step`-th tile of rows to `value`, from the one at x0 on.
template <class T>
MP_DEVICE void fill_rows(const HeadRows<T> &out, int64_t x0, int64_t step, float value,
                         AmaxTracker &tracker) {
  const int vectors = ceil_div(out.width, kVec);
  float values[kVec];
  MP_UNROLL
  for (int c = 0; c < kVec; c++) values[c] = value;
  for (; x0 < out.rows; x0 += step) {
    for (int i = thread_index(); i < kTileRows * vectors; i += kAttentionThreads) {
      const int64_t x = x0 + i / vectors;
      const int column = i % vectors * kVec;
      if (x >= out.rows) continue;
      const int valid = min_of(out.width - column, kVec);
      store_vector(out.row(x) + column, values, valid);
      tracker.see<T>(values, valid);
    }
  }
}

// ---------------------------------------------------------------------------- work

/// Tile of rows of a head of a sequence.
struct AttentionUnit {
  int64_t x0;
  int sequence, head;
};

/// Division of a call into units: a tile of rows each, the last tiles first, because causal rows at
/// the end are the longest.
struct AttentionUnits {
  int64_t tiles;     ///< per sequence and head
  int64_t per_tile;  ///< sequences x heads
  int heads;

  /// Creates at least one tile in the packed form, to fill rows past the last end.
  MP_HD AttentionUnits(const mp_attention_desc_t &d, int64_t length, int heads)
      : tiles(max_of<int64_t>(ceil_div<int64_t>(length, kTileRows), is_packed(d) ? 1 : 0)),
        per_tile(int64_t{d.batch} * heads),
        heads(heads) {}
  MP_HD int64_t count() const { return tiles * per_tile; }
  /// Distance between tiles at which units fill rows outside of valid sequences.
  MP_DEVICE int64_t step() const { return tiles * kTileRows; }

  MP_DEVICE AttentionUnit unit(int64_t number) const {
    const int64_t in_tile = number % per_tile;
    return {(tiles - 1 - number / per_tile) * kTileRows, static_cast<int>(in_tile / heads),
            static_cast<int>(in_tile % heads)};
  }
};

/// Launches a kernel for all units.
inline void launch_units(const char *name, void (*kernel)(MP_PARAM(AttentionArgs)),
                         const Device &device, const AttentionUnits &units,
                         const AttentionArgs &args, mp_stream_t stream) {
  if (units.count() > 0)
    launch(name, kernel, device, {min_of(units.count(), kMaxBlocks), kAttentionThreads}, stream,
           args);
}

}  // namespace mp::MP_TARGET
