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
  /// Returns the rows of all tiles of a head.  To fill rows outside of valid sequences, which can
  /// exceed the longest one, a unit fills its tile and the tiles at multiples of this distance.
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

/// Sets the tiles of `out` at x0, x0 + step ... to `value`.
template <class T>
MP_DEVICE void fill_rows(const HeadRows<T> &out, int64_t x0, const AttentionUnits &units,
                         float value, AmaxTracker &tracker) {
  const int vectors = ceil_div(out.width, kVec);
  float values[kVec];
  MP_UNROLL
  for (int c = 0; c < kVec; c++) values[c] = value;
  for (; x0 < out.rows; x0 += units.step()) {
    for (int i = thread_index(); i < units.rows * vectors; i += kAttentionThreads) {
      const int64_t x = x0 + i / vectors;
      const int column = i % vectors * kVec;
      if (x >= out.rows) continue;
      store_run(out, x, column, values, min_of(out.width - column, kVec), tracker);
    }
  }
}

/// Same for o and lse.
template <class T>
MP_DEVICE void fill_outputs(const HeadRows<T> &out, float *lse, int64_t x0,
                            const AttentionUnits &units, float value, float value_of_lse) {
  AmaxTracker untracked(nullptr, nullptr);
  fill_rows(out, x0, units, value, untracked);
  if (lse == nullptr || thread_index() >= units.rows) return;
  for (int64_t x = x0 + thread_index(); x < out.rows; x += units.step()) lse[x] = value_of_lse;
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

/// Returns the rows from row `first` to the end of the tensor, which has `all` rows.
template <class T>
MP_DEVICE HeadRows<T> with_rest(HeadRows<T> rows, int64_t all, int first) {
  rows.rows = static_cast<int>(all - first);
  return rows;
}

// Each function calls compute for the tiles of valid sequences.  Tiles of others become NaN, packed
// rows past the last end zeros.

/// @param compute  (unit)
template <class T, class Compute>
MP_DEVICE void compute_outputs(const AttentionArgs &args, int rows, const Compute &compute) {
  const mp_attention_desc_t &d = args.desc;
  const AttentionUnits units = AttentionUnits::of_queries(d, rows);
  units.visit(args, [&](const AttentionUnit &unit) {
    const Sequence &s = unit.sequence;
    if (s.is_valid())
      compute(unit);
    else
      fill_outputs(o_of<T>(args, unit), lse_of(args, unit), unit.x0, units, kInvalid, kInvalid);
    if (is_packed(d) && s.number == d.batch - 1)
      fill_outputs(with_rest(o_of<T>(args, unit), d.q_rows, s.q.first), lse_of(args, unit),
                   int64_t{s.q.count} + unit.x0, units, 0.0f, kHidden);
  });
}

/// @param compute  (unit, tracker)
template <class T, class Compute>
MP_DEVICE void compute_dq(const AttentionArgs &args, int rows, const Compute &compute) {
  const mp_attention_desc_t &d = args.desc;
  const AttentionUnits units = AttentionUnits::of_queries(d, rows);
  AmaxTracker tracker(args.stats);
  units.visit(args, [&](const AttentionUnit &unit) {
    const Sequence &s = unit.sequence;
    if (s.is_valid())
      compute(unit, tracker);
    else
      fill_rows(dq_of<T>(args, unit), unit.x0, units, kInvalid, tracker);
    if (is_packed(d) && s.number == d.batch - 1)
      fill_rows(with_rest(dq_of<T>(args, unit), d.q_rows, s.q.first), int64_t{s.q.count} + unit.x0,
                units, 0.0f, tracker);
  });
  tracker.finish();
}

/// @param compute  (unit, tracker)
template <class T, class Compute>
MP_DEVICE void compute_dkv(const AttentionArgs &args, int rows, const Compute &compute) {
  const mp_attention_desc_t &d = args.desc;
  const AttentionUnits units = AttentionUnits::of_keys(d, rows);
  AmaxTracker tracker(args.stats);
  units.visit(args, [&](const AttentionUnit &unit) {
    const Sequence &s = unit.sequence;
    if (s.is_valid()) {
      compute(unit, tracker);
    } else {
      fill_rows(dk_of<T>(args, unit), unit.x0, units, kInvalid, tracker);
      fill_rows(dv_of<T>(args, unit), unit.x0, units, kInvalid, tracker);
    }
    if (is_packed(d) && s.number == d.batch - 1) {
      const int64_t x0 = int64_t{s.kv.count} + unit.x0;
      fill_rows(with_rest(dk_of<T>(args, unit), d.kv_rows, s.kv.first), x0, units, 0.0f, tracker);
      fill_rows(with_rest(dv_of<T>(args, unit), d.kv_rows, s.kv.first), x0, units, 0.0f, tracker);
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
