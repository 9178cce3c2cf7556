// How rows x columns are cut into parts whose sums, one per column, are taken by themselves.
//
// Of the shape alone, so that no sum depends on the device.
#pragma once

#include <cstdint>

namespace mp {

struct ColumnPartition {
  static constexpr int kThreads = 256;
  static constexpr int kRun = 8;  ///< columns per thread
  static constexpr int64_t kMaxChunks = 512;

  int lanes;               ///< neighbouring threads that share a row: 1, 2, 4 or 8
  int64_t tiles;           ///< of lanes * kRun columns
  int64_t rows_per_chunk;  ///< rows of a part
  int64_t chunks;

  /// `least_per_thread`: rows.  Chunks are as many as it allows, up to `max_chunks`.
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
  /// a + b may be more than 64 bits hold.
  static int64_t ceil(int64_t a, int64_t b) { return a / b + (a % b != 0); }
};

}  // namespace mp
