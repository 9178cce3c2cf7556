// Partition of rows x columns into row blocks whose column sums are computed separately.
//
// Depends on the shape only, so that sums are the same on all devices.
#pragma once

#include <cstdint>

namespace mp {

struct ColumnPartition {
  static constexpr int kThreads = 256;
  static constexpr int kRun = 8;  ///< columns per thread
  static constexpr int64_t kMaxChunks = 512;

  int lanes;               ///< adjacent threads that share a row: 1, 2, 4 or 8
  int64_t tiles;           ///< groups of lanes * kRun columns
  int64_t rows_per_chunk;  ///< rows per row block
  int64_t chunks;

  /// Creates up to `max_chunks` chunks, with at least `least_per_thread` rows per thread.
  ColumnPartition(int64_t rows, int64_t columns, int64_t max_chunks = kMaxChunks,
                  int64_t least_per_thread = 16)
      : lanes(1) {
    while (lanes < 8 && lanes * kRun < columns) lanes *= 2;
    tiles = ceil(columns, lanes * kRun);
    const int64_t least = kThreads / lanes * least_per_thread;
    rows_per_chunk = ceil(rows, max_chunks);
    if (rows_per_chunk < least) rows_per_chunk = least;
    chunks = ceil(rows, rows_per_chunk);
  }

 private:
  /// Divides with rounding up; a + b may exceed 64 bits.
  static int64_t ceil(int64_t a, int64_t b) { return a / b + (a % b != 0); }
};

}  // namespace mp
