// Work of a block of the attention kernels: a tile of rows of one head, and the rows of outputs
// that belong to no valid sequence.
#pragma once

#include "kernels/attention/attention_sequences.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

/// Tile of rows of a head of a sequence.  Kept in shared memory to save registers for the sums.
struct AttentionUnit {
  int x0, head;
  Sequence sequence;
};

/// Division of a call into units: a tile of `rows` rows each, the last tiles first, because causal
/// rows at the end are the longest.
struct AttentionUnits {
  int rows;
  int64_t tiles;     ///< per sequence and head
  int64_t per_tile;  ///< sequences x heads
  int heads;

  /// Creates at least one tile in the packed form, to fill rows past the last end.
  MP_HD AttentionUnits(const mp_attention_desc_t &d, int rows, int64_t length, int heads)
      : rows(rows),
        tiles(max_of<int64_t>(ceil_div<int64_t>(length, rows), is_packed(d) ? 1 : 0)),
        per_tile(int64_t{d.batch} * heads),
        heads(heads) {}
  MP_HD static AttentionUnits of_queries(const mp_attention_desc_t &d, int rows) {
    return {d, rows, d.q_len, d.heads};
  }
  MP_HD static AttentionUnits of_keys(const mp_attention_desc_t &d, int rows) {
    return {d, rows, d.kv_len, d.kv_heads};
  }
  MP_HD int64_t count() const { return tiles * per_tile; }
  /// Returns the rows of all tiles of a head.  Rows outside of valid sequences can exceed the
  /// longest one, so a unit fills its tile and the tiles at multiples of this distance.
  MP_DEVICE int64_t step() const { return tiles * rows; }

  /// Calls compute(unit) for the units of this block.
  template <class Compute>
  MP_DEVICE void visit(const AttentionArgs &args, const Compute &compute) const {
    MP_SHARED(AttentionUnit, unit, [1]);
    for (int64_t i = block_index(); i < count(); i += grid_size()) {
      const int64_t in_tile = i % per_tile;
      const AttentionUnit next{static_cast<int>((tiles - 1 - i / per_tile) * rows),
                               static_cast<int>(in_tile % heads),
                               Sequence::of(args, static_cast<int>(in_tile / heads))};
      block_sync();  // the previous unit still uses shared memory
      if (thread_index() == 0) unit[0] = next;
      block_sync();
      compute(unit[0]);
    }
  }
};

/// Stores a vector of a row and updates the maximum.
template <class T>
MP_DEVICE void store_run(const HeadRows<T> &out, int64_t x, int column, const float (&values)[kVec],
                         int valid, AmaxTracker &tracker) {
  if constexpr (std::is_void_v<T>) {
    store_vector(out.dtype, out.row(x), column, values, valid);
    tracker.see_largest(out.dtype, values, valid);
  } else {
    store_vector(out.row(x) + column, values, valid);
    tracker.see<T>(values, valid);
  }
}

/// Rows of an output outside of valid sequences, which a unit fills.
struct Leftover {
  int64_t x0;   ///< first row of a tile; other tiles follow at multiples of AttentionUnits::step
  int rows;     ///< end of the rows
  float value;  ///< NaN in invalid sequences, 0 in packed rows past the last end
};

/// Sets the rows of `leftover` to its value.
template <class T>
MP_DEVICE void fill_rows(const HeadRows<T> &out, const Leftover &leftover,
                         const AttentionUnits &units, AmaxTracker &tracker) {
  const int vectors = ceil_div(out.width, kVec);
  float values[kVec];
  unroll<kVec>([&](int c) { values[c] = leftover.value; });
  for (int64_t x0 = leftover.x0; x0 < leftover.rows; x0 += units.step()) {
    for (int i = thread_index(); i < units.rows * vectors; i += kAttentionThreads) {
      const int64_t x = x0 + i / vectors;
      const int column = i % vectors * kVec;
      if (x >= leftover.rows) continue;
      store_run(out, x, column, values, min_of(out.width - column, kVec), tracker);
    }
  }
}

// ---------------------------------------------------------------------------- passes

// Outputs.  Kernels call these functions after their loops, which need the registers.

template <class T>
MP_DEVICE HeadRows<T> o_of(const AttentionArgs &args, const AttentionUnit &unit) {
  const mp_attention_desc_t &d = args.desc;
  const Sequence &s = unit.sequence;
  return rows_of<T>(args.o, d.o, d, s.number, s.q.first, unit.head, s.stored_queries(d),
                    d.head_dim_v);
}
MP_DEVICE float *lse_of(const AttentionArgs &args, const AttentionUnit &unit) {
  return args.lse != nullptr ? args.lse + unit.sequence.lse_index(args.desc, unit.head) : nullptr;
}
MP_DEVICE float sink_of(const AttentionArgs &args, const AttentionUnit &unit) {
  return args.sinks != nullptr ? args.sinks[unit.head] : kHidden;
}
template <class T>
MP_DEVICE HeadRows<T> dq_of(const AttentionArgs &args, const AttentionUnit &unit) {
  const mp_attention_desc_t &d = args.desc;
  const Sequence &s = unit.sequence;
  return rows_of<T>(args.dq, d.q, d, s.number, s.q.first, unit.head, s.stored_queries(d),
                    d.head_dim);
}
template <class T>
MP_DEVICE HeadRows<T> dk_of(const AttentionArgs &args, const AttentionUnit &unit) {
  const mp_attention_desc_t &d = args.desc;
  const Sequence &s = unit.sequence;
  return rows_of<T>(args.dk, d.k, d, s.number, s.kv.first, unit.head, s.stored_keys(d), d.head_dim);
}
template <class T>
MP_DEVICE HeadRows<T> dv_of(const AttentionArgs &args, const AttentionUnit &unit) {
  const mp_attention_desc_t &d = args.desc;
  const Sequence &s = unit.sequence;
  return rows_of<T>(args.dv, d.v, d, s.number, s.kv.first, unit.head, s.stored_keys(d),
                    d.head_dim_v);
}

/// Calls compute(unit) for the tiles of valid sequences, and fill(unit, leftover) for all other
/// rows.  The leftover rows are computed after compute(unit), which needs the registers.
template <class Compute, class Fill>
MP_DEVICE void visit_units(const AttentionArgs &args, const AttentionUnits &units, bool are_queries,
                           const Compute &compute, const Fill &fill) {
  const mp_attention_desc_t &d = args.desc;
  units.visit(args, [&](const AttentionUnit &unit) {
    const Sequence &s = unit.sequence;
    if (s.is_valid()) compute(unit);
    const bool has_rest = is_packed(d) && s.number == d.batch - 1;
    // 0: an invalid sequence; 1: packed rows past the last end.  Not unrolled: fill is long code.
    MP_NO_UNROLL
    for (int past_end = s.is_valid() ? 1 : 0; past_end <= (has_rest ? 1 : 0); past_end++) {
      const SequenceRows &own = are_queries ? s.q : s.kv;
      const int all = static_cast<int>(are_queries ? d.q_rows : d.kv_rows);
      const int stored = are_queries ? s.stored_queries(d) : s.stored_keys(d);
      fill(unit, past_end != 0 ? Leftover{int64_t{own.count} + unit.x0, all - own.first, 0.0f}
                               : Leftover{unit.x0, stored, kNaN});
    }
  });
}

/// Computes the sums of a unit over all columns, and stores them.
template <class Tile, class Smem>
MP_DEVICE void compute_tile(const AttentionArgs &args, const AttentionUnit &unit, Smem &smem,
                            AmaxTracker &tracker) {
  Tile tile(args, unit, smem);
  tile.add_columns();
  tile.finish(tracker);
}

/// Computes o and lse by a Tile per unit.
template <class T, class Tile, class Smem>
MP_DEVICE void compute_outputs(const AttentionArgs &args, int rows, Smem &smem) {
  const AttentionUnits units = AttentionUnits::of_queries(args.desc, rows);
  AmaxTracker untracked(nullptr, nullptr);
  const auto compute = [&](const AttentionUnit &unit) {
    compute_tile<Tile>(args, unit, smem, untracked);
  };
  visit_units(args, units, true, compute, [&](const AttentionUnit &unit, const Leftover &leftover) {
    fill_rows(o_of<T>(args, unit), leftover, units, untracked);
    float *const lse = lse_of(args, unit);
    if (lse == nullptr || thread_index() >= rows) return;
    for (int64_t x = leftover.x0 + thread_index(); x < leftover.rows; x += units.step())
      lse[x] = leftover.value == 0.0f ? kHidden : kNaN;
  });
}

/// Computes dq, or dk and dv, by compute(unit, tracker).
/// @tparam kAreQueries  rows are queries and the output is dq
template <class T, bool kAreQueries, class Compute>
MP_DEVICE void compute_gradients(const AttentionArgs &args, int rows, const Compute &compute) {
  const AttentionUnits units = kAreQueries ? AttentionUnits::of_queries(args.desc, rows)
                                           : AttentionUnits::of_keys(args.desc, rows);
  AmaxTracker tracker(args.stats);
  visit_units(
      args, units, kAreQueries, [&](const AttentionUnit &unit) { compute(unit, tracker); },
      [&](const AttentionUnit &unit, const Leftover &leftover) {
        if constexpr (kAreQueries) {
          fill_rows(dq_of<T>(args, unit), leftover, units, tracker);
        } else {
          fill_rows(dk_of<T>(args, unit), leftover, units, tracker);
          fill_rows(dv_of<T>(args, unit), leftover, units, tracker);
        }
      });
  tracker.finish();
}

// ---------------------------------------------------------------------------- launch

// Passes of AttentionKernel::mma, without dsinks.
void attention_forward_mma(const Device &, const AttentionArgs &, mp_stream_t);
void attention_backward_mma(const Device &, const AttentionArgs &, mp_stream_t);

/// Launches a kernel for all units.
inline void launch_units(const char *name, void (*kernel)(MP_PARAM(AttentionArgs)),
                         const Device &device, const AttentionUnits &units,
                         const AttentionArgs &args, mp_stream_t stream, size_t smem_bytes = 0) {
  if (units.count() > 0)
    launch(name, kernel, device, {min_of(units.count(), kMaxBlocks), kAttentionThreads, smem_bytes},
           stream, args);
}

}  // namespace mp::MP_TARGET
