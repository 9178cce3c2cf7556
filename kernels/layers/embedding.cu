// Embedding lookup, and the gradient of the table.
#include <bit>

#include "kernels/layers/layer_args.h"
#include "kernels/simt/columns.h"
#include "kernels/simt/sort.h"
#include "kernels/tensors/runs.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

MP_KERNEL(kRowRunThreads, 8)
embedding_gather(MP_PARAM(EmbeddingArgs) args) {
  wait_for_previous_kernel();
  const mp_embedding_desc_t &desc = args.desc;
  for_each_row_run(
      desc.num_indices, desc.embedding_dim, [&](int64_t row, int64_t column, int valid) {
        const int64_t index = load_integer(desc.dtype_indices, args.indices, row);
        float x[kVec];
        if (index >= 0 && index < desc.num_embeddings) {
          load_vector(x, desc.dtype, args.table, index * desc.ld_table + column, valid);
        } else {
          unroll<kVec>([&](int i) { x[i] = kNaN; });
        }
        store_vector(desc.dtype, args.out, row * desc.ld_out + column, x, valid);
      });
}

}  // namespace

void embedding_forward(const Device &device, const EmbeddingArgs &args, mp_stream_t stream) {
  launch_row_runs("embedding_gather", embedding_gather, device, args.desc.num_indices,
                  args.desc.embedding_dim, kBlocksOfAllRows, args, stream);
}

// ---------------------------------------------------------------------------- gradient

// Each row of the gradient is the sum of the rows of dout with its index.
//
// The indices are sorted stably, so the rows of a segment, which have the same index, are adjacent
// and in their original order.  A segment is divided into stretches of kEmbeddingStretch rows, each
// of which is summed by a group of adjacent lanes.  Most segments are a single stretch and need no
// second step.  The sums of longer ones are stored in the workspace, and one block per segment
// combines them.
//
// A window is a block of kEmbeddingStretch sorted rows.  At most one stretch that is not the first
// of its segment begins in a window, and at most one segment that is longer than a stretch.  Two
// sums per window therefore suffice.

namespace {

constexpr int kStretchRows = static_cast<int>(kEmbeddingStretch);
constexpr int kSumThreads = 2 * kStretchRows;  // rows that the stretches of a window may cover
constexpr int kRowsAtOnce = 4;
constexpr int kMaxLanes = kWarpSize;

/// Arguments of all kernels; each reads only some of them.
struct TableArgs {
  EmbeddingBackwardArgs call;
  uint32_t *keys = nullptr, *values = nullptr;  ///< initially unsorted
  /// num_embeddings + 1: starts of segments, end of the last; NULL without rows
  int32_t *begins = nullptr;
  float *sums = nullptr;  ///< 2 rows of embedding_dim per window
  int64_t windows;
  int lanes;      ///< lanes that share a row
  int64_t tiles;  ///< tiles of lanes * kVec columns
  ColumnPartition combined;

  MP_DEVICE bool accumulates() const {
    return (call.desc.flags & MP_EMBEDDING_FLAG_ACCUMULATE) != 0;
  }
};

// ---------------------------------------------------------------------------- segments

/// Writes the keys of the sort.  Rows that are ignored have the largest key, after all segments.
MP_KERNEL(kRowRunThreads, 8)
embedding_keys(MP_PARAM(TableArgs) args) {
  wait_for_previous_kernel();
  const mp_embedding_desc_t &desc = args.call.desc;
  const bool pads = (desc.flags & MP_EMBEDDING_FLAG_PADDING) != 0;
  for_each_row_run(desc.num_indices, 1, [&](int64_t row, int64_t, int) {
    const int64_t index = load_integer(desc.dtype_indices, args.call.indices, row);
    const bool adds =
        index >= 0 && index < desc.num_embeddings && !(pads && index == desc.padding_index);
    args.keys[row] = static_cast<uint32_t>(adds ? index : desc.num_embeddings);
    args.values[row] = static_cast<uint32_t>(row);
  });
}

/// Returns the index of the first sorted key that is not less than `key`.
MP_DEVICE int64_t lower_bound(const uint32_t *keys, int64_t count, uint32_t key) {
  int64_t first = 0;
  while (count > 0) {
    const int64_t half = count / 2;
    const bool is_less = keys[first + half] < key;
    first = is_less ? first + half + 1 : first;
    count = is_less ? count - half - 1 : half;
  }
  return first;
}

MP_KERNEL(kRowRunThreads, 8)
embedding_begins(MP_PARAM(TableArgs) args) {
  wait_for_previous_kernel();
  const mp_embedding_desc_t &desc = args.call.desc;
  for_each_row_run(int64_t{desc.num_embeddings} + 1, 1, [&](int64_t v, int64_t, int) {
    const int64_t begin = lower_bound(args.keys, desc.num_indices, static_cast<uint32_t>(v));
    args.begins[v] = static_cast<int32_t>(begin);
  });
}

/// Sorted rows [begin, end) that are added to row `v` of the table.
struct Segment {
  int64_t v, begin, end;

  MP_DEVICE Segment(const TableArgs &args, int64_t v)
      : v(v), begin(args.begins[v]), end(args.begins[v + 1]) {}
  MP_DEVICE bool is_long() const { return end - begin > kStretchRows; }
};

/// Returns the sum, in the workspace, of the stretch that begins with sorted row `at`.
MP_DEVICE float *sum_of(const TableArgs &args, const Segment &segment, int64_t at) {
  const int64_t window = at / kStretchRows;
  return args.sums + (2 * window + (at == segment.begin)) * args.call.desc.embedding_dim;
}

/// Stores the complete sums of columns [column, column + valid) of row v.
template <int kRun>
MP_DEVICE void store_gradient(const TableArgs &args, int64_t v, int64_t column, float (&sum)[kRun],
                              int valid, AmaxTracker &watch) {
  const mp_embedding_desc_t &desc = args.call.desc;
  const int64_t at = v * desc.ld_dtable + column;
  if (args.accumulates()) {
    float old[kRun];
    load_vector(old, desc.dtype_dtable, args.call.dtable, at, valid);
    unroll<kRun>([&](int i) { sum[i] += old[i]; });
  }
  store_vector(desc.dtype_dtable, args.call.dtable, at, sum, valid);
  watch.see(desc.dtype_dtable, sum, valid);
}

// ---------------------------------------------------------------------------- stretches

/// Loads x[r] = `valid` columns of row rows[r], or 0 for r >= left.  Issues all loads before the
/// first result is used.
template <class T>
MP_DEVICE void load_listed(float (&x)[kRowsAtOnce][kVec], const T *columns, int64_t ld,
                           const uint32_t *rows, int left, int valid, bool is_whole) {
  using Loaded = Pack<T, kPackElems<T, kVec>>;
  constexpr int kPacks = kVec / kPackElems<T, kVec>;
  if (!is_whole) {
    unroll<kRowsAtOnce>([&](int r) {
      load_vector(x[r], columns + (r < left ? rows[r] * ld : 0), r < left ? valid : 0);
    });
    return;
  }
  Loaded loaded[kRowsAtOnce][kPacks] = {};
  unroll<kRowsAtOnce>([&](int r) {
    if (r >= left) return;
    const auto *const packs = reinterpret_cast<const Loaded *>(columns + rows[r] * ld);
    unroll<kPacks>([&](int i) { loaded[r][i] = packs[i]; });
  });
  unroll<kRowsAtOnce>([&](int r) { widen(x[r], loaded[r]); });
}

/// Sums the rows of a stretch in order.
template <class T>
MP_DEVICE void sum_listed(float (&sum)[kVec], const T *columns, int64_t ld, const uint32_t *rows,
                          int count, int valid) {
  const bool is_whole = valid == kVec && is_aligned_16(columns) && ld * sizeof(T) % 16 == 0;
  unroll<kVec>([&](int i) { sum[i] = 0.0f; });
  for (int first = 0; first < count; first += kRowsAtOnce) {
    float x[kRowsAtOnce][kVec];
    load_listed(x, columns, ld, rows + first, count - first, valid, is_whole);
    add_rows(sum, x);
  }
}

/// Returns the number of rows of the stretch that begins with sorted row `at`, or 0 if none does.
MP_DEVICE int stretch_at(const TableArgs &args, int64_t at) {
  if (at >= args.begins[args.call.desc.num_embeddings]) return 0;
  const Segment segment(args, args.keys[at]);
  if ((at - segment.begin) % kStretchRows != 0) return 0;
  return static_cast<int>(min_of<int64_t>(segment.end - at, kStretchRows));
}

template <class T>
MP_KERNEL(kSumThreads, 4)
embedding_sum(MP_PARAM(TableArgs) args) {
  MP_SHARED(uint32_t, rows, [kSumThreads]);
  MP_SHARED(int, stretches, [kStretchRows]);
  wait_for_previous_kernel();
  const mp_embedding_desc_t &desc = args.call.desc;
  AmaxTracker watch(args.call.stats);
  const int t = thread_index(), group = t / args.lanes, groups = kSumThreads / args.lanes;
  for (int64_t i = block_index(); i < args.windows * args.tiles; i += grid_size()) {
    const int64_t window = i / args.tiles, first = window * kStretchRows;
    const int64_t column = ((i - window * args.tiles) * args.lanes + t % args.lanes) * kVec;
    const int valid = static_cast<int>(min_of<int64_t>(desc.embedding_dim - column, kVec));
    const T *const columns = static_cast<const T *>(args.call.dout) + column;
    block_sync();  // the previous window has been summed
    rows[t] = first + t < desc.num_indices ? args.values[first + t] : 0;
    if (t < kStretchRows) stretches[t] = stretch_at(args, first + t);
    block_sync();
    for (int at = group; at < kStretchRows; at += groups) {
      if (stretches[at] == 0 || valid <= 0) continue;
      float sum[kVec];
      sum_listed(sum, columns, desc.ld_out, rows + at, stretches[at], valid);
      const Segment segment(args, args.keys[first + at]);
      if (segment.is_long())
        store_vector(sum_of(args, segment, first + at) + column, sum, valid);
      else
        store_gradient(args, segment.v, column, sum, valid, watch);
    }
  }
  watch.finish();
}

// ---------------------------------------------------------------------------- long segments

/// Combines the sums of the stretches of long segments.  A long segment is found at the first row
/// of the window after the one in which it begins.
MP_KERNEL(ColumnPartition::kThreads, 4)
embedding_combine(MP_PARAM(TableArgs) args) {
  wait_for_previous_kernel();
  const mp_embedding_desc_t &desc = args.call.desc;
  AmaxTracker watch(args.call.stats);
  const int64_t tiles = args.combined.tiles;
  for (int64_t i = block_index(); i < args.windows * tiles; i += grid_size()) {
    const int64_t window = i / tiles, next = (window + 1) * kStretchRows;
    if (next >= args.begins[desc.num_embeddings]) continue;
    const Segment segment(args, args.keys[next]);
    if (segment.begin / kStretchRows != window || !segment.is_long()) continue;
    const int64_t stretches = ceil_div<int64_t>(segment.end - segment.begin, kStretchRows);
    const Part part{i - window * tiles, 0, 0, stretches};
    const RowsOfThread own = rows_of_thread(args.combined, desc.embedding_dim, part);
    float sum[kVec] = {};
    if (own.valid > 0)
      for (int64_t s = own.first; s < stretches; s += own.stride) {
        float x[kVec];
        const int64_t begin = segment.begin + s * kStretchRows;
        load_vector(x, sum_of(args, segment, begin) + own.column, own.valid);
        unroll<kVec>([&](int j) { sum[j] += x[j]; });
      }
    combine_rows(sum, args.combined, desc.embedding_dim, part.tile,
                 [&](int64_t column, float value) {
                   float total[1] = {value};
                   store_gradient(args, segment.v, column, total, 1, watch);
                 });
  }
  watch.finish();
}

/// Sets the rows of the table without a segment to zero.
MP_KERNEL(kRowRunThreads, 8)
embedding_zeros(MP_PARAM(TableArgs) args) {
  wait_for_previous_kernel();
  const mp_embedding_desc_t &desc = args.call.desc;
  for_each_row_run(desc.num_embeddings, desc.embedding_dim,
                   [&](int64_t v, int64_t column, int valid) {
                     if (args.begins != nullptr && args.begins[v] < args.begins[v + 1]) return;
                     const float zeros[kVec] = {};
                     store_vector(desc.dtype_dtable, args.call.dtable, v * desc.ld_dtable + column,
                                  zeros, valid);
                   });
}

/// Returns the address of an offset in the workspace.
template <class T>
T *placed(const EmbeddingBackwardArgs &args, size_t offset) {
  return reinterpret_cast<T *>(static_cast<std::byte *>(args.workspace) + offset);
}

/// Sorts the indices and sets the pointers of `args` to the results.
void sort(const Device &device, TableArgs &args, mp_stream_t stream) {
  const mp_embedding_desc_t &desc = args.call.desc;
  const EmbeddingWorkspace places(desc);
  SortBuffers buffers{};
  for (int i = 0; i < 2; i++) {
    buffers.keys[i] = placed<uint32_t>(args.call, places.keys[i]);
    buffers.values[i] = placed<uint32_t>(args.call, places.values[i]);
  }
  args.keys = buffers.keys[0], args.values = buffers.values[0];
  args.begins = placed<int32_t>(args.call, places.begins);
  args.sums = placed<float>(args.call, places.sums);
  launch_row_runs("embedding_keys", embedding_keys, device, desc.num_indices, 1, kBlocksOfAllRows,
                  args, stream);
  const Workspace scratch{placed<void>(args.call, places.scratch),
                          sort_scratch_bytes(desc.num_indices)};
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint32_t>(desc.num_embeddings)));
  const int sorted = sort_pairs(device, buffers, desc.num_indices, bits, scratch, stream);
  args.keys = buffers.keys[sorted], args.values = buffers.values[sorted];
  launch_row_runs("embedding_begins", embedding_begins, device, int64_t{desc.num_embeddings} + 1, 1,
                  kBlocksOfAllRows, args, stream);
}

}  // namespace

void embedding_backward(const Device &device, const EmbeddingBackwardArgs &call,
                        mp_stream_t stream) {
  const mp_embedding_desc_t &desc = call.desc;
  int lanes = 1;
  while (lanes < kMaxLanes && lanes * kVec < desc.embedding_dim) lanes *= 2;
  TableArgs args{.call = call,
                 .windows = ceil_div<int64_t>(desc.num_indices, kStretchRows),
                 .lanes = lanes,
                 .tiles = ceil_div<int64_t>(desc.embedding_dim, lanes * kVec),
                 .combined = ColumnPartition(desc.num_indices, desc.embedding_dim)};
  if (desc.num_indices > 0) {
    sort(device, args, stream);
    with_type(desc.dtype, [&]<class T>(std::type_identity<T>) {
      launch("embedding_sum", embedding_sum<T>, device,
             resident_blocks(device, args.windows * args.tiles, kSumThreads), stream, args);
    });
    if (args.windows > 1)
      launch("embedding_combine", embedding_combine, device,
             resident_blocks(device, args.windows * args.combined.tiles, ColumnPartition::kThreads),
             stream, args);
  }
  if ((desc.flags & MP_EMBEDDING_FLAG_ACCUMULATE) == 0)
    launch_row_runs("embedding_zeros", embedding_zeros, device, desc.num_embeddings,
                    desc.embedding_dim, kBlocksOfAllRows, args, stream);
}

}  // namespace mp::MP_TARGET
