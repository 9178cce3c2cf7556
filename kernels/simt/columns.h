// Column sums of a matrix in a fixed order: assignment of rows and columns to blocks and threads,
// and reduction of the partial sums of threads, then of row chunks.
#pragma once

#include "base/workspace_layout.h"
#include "kernels/simt/device.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Work item of a block: column tile `tile` of the rows [begin, end).
struct Part {
  int64_t tile, chunk, begin, end;
};

/// Order in which a block visits its parts.  A second pass in reverse order finds in L2 the data
/// that the first pass read last.
enum class PartOrder { first_to_last, last_to_first };

/// Waits for the previous kernel, then calls visit(part) for each part of this block.  Must be the
/// first step of a kernel that launch_parts launches.
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

/// Elements of a thread: `valid` <= kVec columns, starting at `column`, of rows first + i * stride.
struct RowsOfThread {
  int64_t column;
  int valid;
  int64_t first, stride;
};

/// Returns the elements of this thread.  Threads that share a row are adjacent; `valid` is 0 for
/// lanes beyond the last column.
MP_DEVICE RowsOfThread rows_of_thread(const ColumnPartition &partition, int64_t columns,
                                      const Part &part) {
  const int lane = thread_index() % partition.lanes;
  const int64_t column = (part.tile * partition.lanes + lane) * kVec;
  const int64_t valid = max_of<int64_t>(min_of<int64_t>(columns - column, kVec), 0);
  return {column, static_cast<int>(valid), part.begin + thread_index() / partition.lanes,
          ColumnPartition::kThreads / partition.lanes};
}

/// Reduces the values of the block's threads with operator+, in a fixed order, and calls
/// store(column, value) once for each column of the tile, from any thread.
template <class Value, class Store>
MP_DEVICE void combine_rows(const Value (&own)[kVec], const ColumnPartition &partition,
                            int64_t columns, int64_t tile, Store store) {
  constexpr int kThreads = ColumnPartition::kThreads;
  MP_SHARED(Value, by_thread, [kVec][kThreads + 1]);  // + 1: columns start in different banks
  MP_SHARED(Value, by_group, [kThreads]);
  const int width = partition.lanes * kVec;  // columns of the tile
  const int t = thread_index();
  unroll<kVec>([&](int i) { by_thread[i][t] = own[i]; });
  block_sync();

  // One thread per column and kVec thread rows, then one thread per column.
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

/// Waits for the previous kernel, then reduces the chunks of this block's kVec columns in a fixed
/// order: load(chunk, column) for all chunks, then store(column, value) from any thread.  Must be
/// the first step of a kernel that launch_combine launches.
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
