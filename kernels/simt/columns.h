// Passes over a matrix in which every column is summed, in a fixed order: who works on which rows and
// columns, and how the sums of threads, and then of chunks of rows, are combined.
#pragma once

#include "base/column_partition.h"
#include "kernels/simt/device.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// One part: tile `tile` of the rows [begin, end).
struct Part {
  int64_t tile, chunk, begin, end;
};

/// A second pass over what the first has read finds in L2 what that came to last.
enum class PartOrder { first_to_last, last_to_first };

/// The first step of a kernel for launch_parts: calls visit(part) for the parts of this block.
template <PartOrder order = PartOrder::first_to_last, class Visit>
MP_DEVICE void for_each_part(const ColumnPartition &partition, int64_t rows, Visit visit) {
  wait_for_previous_kernel();
  const int64_t parts = partition.tiles * partition.chunks;
  for (int64_t i = block_index(); i < parts; i += grid_size()) {
    const int64_t number = order == PartOrder::first_to_last ? i : parts - 1 - i;
    const int64_t chunk = number / partition.tiles, begin = chunk * partition.rows_per_chunk;
    visit(Part{number - chunk * partition.tiles, chunk, begin,
               min_of(begin + partition.rows_per_chunk, rows)});
  }
}

template <class Args>
void launch_parts(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                  const Args &args, mp_stream_t stream) {
  const int64_t blocks = min_of(args.partition.tiles * args.partition.chunks, kMaxBlocks);
  launch(name, kernel, device,
         {.num_blocks = blocks, .num_threads = ColumnPartition::kThreads, .uses_pdl = true}, stream,
         args);
}

/// The part of a thread: `valid` <= kVec columns of the rows first, first + stride, ...
struct RowsOfThread {
  int64_t column;
  int valid;
  int64_t first, stride;
};

/// Threads that share a row are neighbours.  Lanes that stick out of the last tile have no columns.
MP_DEVICE RowsOfThread rows_of_thread(const ColumnPartition &partition, int64_t columns,
                                      const Part &part) {
  const int lane = thread_index() % partition.lanes;
  const int64_t column = (part.tile * partition.lanes + lane) * kVec;
  const int64_t valid = max_of<int64_t>(min_of<int64_t>(columns - column, kVec), 0);
  return {column, static_cast<int>(valid), part.begin + thread_index() / partition.lanes,
          ColumnPartition::kThreads / partition.lanes};
}

/// Combines what the threads of the block found in their rows, in a fixed order; calls
/// store(column, value) for each column of the tile, in some thread.  Combining is operator+.
template <class Value, class Store>
MP_DEVICE void combine_rows(const Value (&own)[kVec], const ColumnPartition &partition,
                            int64_t columns, int64_t tile, Store store) {
  constexpr int kThreads = ColumnPartition::kThreads;
  MP_SHARED(Value, by_thread, [kVec][kThreads + 1]);  // the next column starts in another bank
  MP_SHARED(Value, by_group, [kThreads]);
  const int width = partition.lanes * kVec;  // columns of the tile
  const int t = thread_index();
  MP_UNROLL
  for (int i = 0; i < kVec; i++) by_thread[i][t] = own[i];
  block_sync();

  // A thread per column and group of kVec rows; then one per column.
  const int lane = t % width / kVec;
  const auto &partials = by_thread[t % kVec];
  Value value = partials[t / width * kVec * partition.lanes + lane];
  for (int r = 1; r < kVec; r++)
    value = value + partials[(t / width * kVec + r) * partition.lanes + lane];
  by_group[t] = value;
  block_sync();
  if (t >= width || tile * width + t >= columns) return;
  for (int group = t + width; group < kThreads; group += width) value = value + by_group[group];
  store(tile * width + t, value);
}

/// The first step of a kernel for launch_combine: combines the chunks of kVec columns, those of this
/// block, in a fixed order: load(chunk, column) of all chunks, then store(column, value) in some thread.
template <class Value, class Load, class Store>
MP_DEVICE void combine_chunks(int64_t chunks, int64_t columns, Load load, Store store) {
  constexpr int kThreads = ColumnPartition::kThreads;
  wait_for_previous_kernel();
  MP_SHARED(Value, by_thread, [kThreads]);
  const int t = thread_index();
  const int64_t column = block_index() * kVec + t % kVec;
  Value value{};
  if (column < columns)
    for (int64_t c = t / kVec; c < chunks; c += kThreads / kVec) value = value + load(c, column);
  by_thread[t] = value;
  block_sync();
  if (t >= kVec || column >= columns) return;
  for (int other = t + kVec; other < kThreads; other += kVec) value = value + by_thread[other];
  store(column, value);
}

template <class Args>
void launch_combine(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                    int64_t columns, const Args &args, mp_stream_t stream) {
  const int64_t blocks = ceil_div<int64_t>(columns, kVec);
  launch(name, kernel, device,
         {.num_blocks = blocks, .num_threads = ColumnPartition::kThreads, .uses_pdl = true}, stream,
         args);
}

}  // namespace mp::MP_TARGET
