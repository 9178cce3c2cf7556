// Sequences, visible scores and dropout masks of attention, for all kernels.
//
// A block computes a tile of rows of its outputs: of o or dq, one per query, or of dk and dv, one
// per key.  It visits the other side of the scores in tiles of columns.  "Rows" x are queries or
// keys of the output, "columns" y the keys or queries that are summed over.
#pragma once

#include "kernels/attention/attention_plan.h"
#include "kernels/simt/fast_math.h"
#include "kernels/simt/random.h"
#include "kernels/simt/reduce.h"

namespace mp::MP_TARGET {

constexpr int kAttentionThreads = 128;
constexpr float kLog2E = 1.4426950409f;
constexpr float kHidden = -HUGE_VALF;  // score of a hidden key

/// Results of the online softmax of a row.
struct SoftmaxRow {
  float factor;  ///< factor of the weighted sums
  float lse;     ///< logarithm of the sum of exponentials, with the sink

  /// @param top    largest visible score
  /// @param total  sum of exp(score - top)
  /// @param keep   factor of the scores that dropout keeps
  MP_DEVICE SoftmaxRow(float top, float total, float sink, float keep) {
    const float with_sink = max_number(top, sink);
    const float weight = top == kHidden ? kNaN : expf(top - with_sink);  // 1 without a sink
    const float all = total * weight + expf(sink - with_sink);
    factor = keep * weight / all;
    lse = with_sink + logf(all);
  }
};

/// Returns the probability of a visible score that has not been multiplied by the scale.
/// @param to_power  scale x log2(e)
MP_DEVICE float probability(float score, float to_power, float lse) {
  return fast_exp2(fmaf(score, to_power, -lse * kLog2E));
}

// ---------------------------------------------------------------------------- sequences

/// Rows of a tensor that belong to a sequence.
struct SequenceRows {
  int first;      ///< in the tensor; 0 in the padded form
  int count;      ///< valid rows
  bool is_valid;  ///< the length is in range
};

/// Returns the rows of sequence `b` in the packed form.  Called by all threads of the block.
MP_DEVICE SequenceRows packed_rows(const int32_t *ends, int b, int rows, int64_t most) {
  int begin = 0;  // the largest end of the preceding sequences
  for (int i = thread_index(); i < b; i += kAttentionThreads) begin = max_of(begin, ends[i]);
  if (b > 0) begin = block_reduce<kAttentionThreads, Max>(begin);
  const int first = min_of(begin, rows), count = min_of(max_of(begin, ends[b]), rows) - first;
  return {first, count, count <= most};
}

MP_DEVICE SequenceRows padded_rows(const int32_t *lengths, int b, int rows) {
  const int count = lengths != nullptr ? lengths[b] : rows;
  return {0, count, count >= 0 && count <= rows};
}

/// Sequence `number` of a call.
struct Sequence {
  int number;
  SequenceRows q, kv;

  /// Rows of outputs that are written.
  MP_DEVICE int stored_queries(const mp_attention_desc_t &d) const {
    return is_packed(d) ? q.count : static_cast<int>(d.q_len);
  }
  MP_DEVICE int stored_keys(const mp_attention_desc_t &d) const {
    return is_packed(d) ? kv.count : static_cast<int>(d.kv_len);
  }

  /// Called by all threads of the block.
  static MP_DEVICE Sequence of(const AttentionArgs &args, int b) {
    const mp_attention_desc_t &d = args.desc;
    if (is_packed(d))
      return {b, packed_rows(args.q_ends, b, static_cast<int>(d.q_rows), d.q_len),
              packed_rows(args.kv_ends, b, static_cast<int>(d.kv_rows), d.kv_len)};
    return {b, padded_rows(args.q_lengths, b, static_cast<int>(d.q_len)),
            padded_rows(args.kv_lengths, b, static_cast<int>(d.kv_len))};
  }
  MP_DEVICE bool is_valid() const { return q.is_valid && kv.is_valid; }

  /// Index in lse of query 0.
  MP_DEVICE int64_t lse_index(const mp_attention_desc_t &d, int head) const {
    return is_packed(d) ? head * d.q_rows + q.first : (int64_t{number} * d.heads + head) * d.q_len;
  }
};

/// Returns the address of an element of an array, of type `dtype` if T is void.
template <class T>
MP_DEVICE T *element_address(T *base, mp_dtype_t dtype, int64_t index) {
  if constexpr (std::is_void_v<T>) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return static_cast<Byte *>(base) + index * dtype_bytes(dtype);
  } else {
    return base + index;
  }
}

/// Rows of one sequence and head of a tensor.  T is void in kernels for all types.
template <class T>
struct HeadRows {
  T *first;
  int64_t stride;
  int rows, width;
  mp_dtype_t dtype;

  MP_DEVICE T *row(int64_t x) const { return element_address(first, dtype, x * stride); }
};

/// Returns the rows of a tensor; NULL for tensors that the call does not have.
template <class T, class Void>
MP_DEVICE HeadRows<T> rows_of(Void *tensor, const mp_attention_layout_t &layout,
                              const mp_attention_desc_t &d, int sequence, int first_row, int head,
                              int rows, int width) {
  const int64_t start = is_packed(d) ? first_row * layout.row : sequence * layout.batch;
  T *const first = tensor != nullptr ? element_address(static_cast<T *>(tensor), d.dtype,
                                                       start + head * layout.head)
                                     : nullptr;
  return {first, layout.row, rows, width, d.dtype};
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

/// Tiles [first, end) of columns.
struct TileRange {
  int first, end;

  MP_DEVICE bool is_empty() const { return first >= end; }
};

/// Columns [first(x), end(x)) that row x sees: -before <= y - (x + shift) <= after.
struct Band {
  int shift, before, after;
  int rows, columns;

  /// Keys that each query sees.
  static MP_DEVICE Band of_queries(const mp_attention_desc_t &d, const Sequence &s) {
    constexpr int kUnlimited = INT32_MAX;  // no distance is larger
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
  MP_DEVICE bool is_empty(int64_t x) const { return first(x) >= end(x); }

  /// Returns the tiles of `width` columns that some of `count` rows from x on sees.
  MP_DEVICE TileRange tiles(int64_t x, int count, int width) const {
    if (x >= rows) return {0, 0};
    const int end_column = end(last(x, count));
    return {first(x) / width, first(x) < end_column ? ceil_div(end_column, width) : 0};
  }
  /// Returns whether all rows from x on, up to `count`, see `width` columns from y on.
  MP_DEVICE bool is_full(int64_t x, int count, int y, int width) const {
    return first(last(x, count)) <= y && end(x) >= y + width;
  }

 private:
  MP_DEVICE int64_t last(int64_t x, int count) const {
    return min_of<int64_t>(x + count, rows) - 1;
  }
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
  MP_DEVICE bool is_enabled() const { return args_.drop_threshold != 0; }

  /// Returns the random bytes of 16 scores: query i and key j, and those with another bit 0 or 3:
  /// byte 2 ((j mod 16) / 8) + j mod 2 of word 2 ((i mod 16) / 8) + i mod 2.
  MP_DEVICE PhiloxWords bytes_of(uint32_t i, uint32_t j) const {
    // Read for each call: otherwise the compiler keeps the keys of all rounds in registers.
    uint64_t key = args_.desc.dropout_seed;
    if (args_.dropout_offset != nullptr) key += *args_.dropout_offset * 0x9E3779B97F4A7C15;
    return philox<7>({{pair_of(i), pair_of(j), stream_, 0x6D704154}}, key);
  }
  /// Returns whether byte `number` of a word drops its score.
  MP_DEVICE bool drops(uint32_t word, uint32_t number) const {
    return (word >> (8 * number) & 0xff) < static_cast<uint32_t>(args_.drop_threshold);
  }

 private:
  static MP_DEVICE uint32_t pair_of(uint32_t x) { return x / 16 * 4 + x % 8 / 2; }

  const AttentionArgs &args_;
  const uint32_t stream_;
};

}  // namespace mp::MP_TARGET
