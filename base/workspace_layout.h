// Layout of a workspace, as capi/ sizes it and kernels divide it, and the partitions that it
// depends on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp {

/// Rounds up to a multiple of `multiple`.
template <class T>
constexpr T align_up(T value, std::type_identity_t<T> multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Regions of a workspace, one after the other, each 256-byte aligned.
class WorkspaceLayout {
 public:
  /// Returns the offset of the next region.
  size_t add(size_t bytes) {
    const size_t offset = size_;
    size_ = align_up(offset + bytes, 256);
    return offset;
  }
  size_t size() const { return size_; }

 private:
  size_t size_ = 0;
};

/// Partition of rows x columns into row blocks whose column sums are computed separately.  Depends
/// on the shape only, so that sums are the same on all devices.
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

/// Returns the bytes of 256-byte aligned scratch of sort_pairs (kernels/simt/sort.h) for `count`
/// pairs of 32-bit keys and values, as an upper bound for all devices.  CUB's onesweep uses 1 KiB
/// per block, which sorts thousands of pairs, and some KiB of histograms.
inline size_t sort_scratch_bytes(int64_t count) {
  constexpr size_t kHistograms = 64 * 1024;
  return kHistograms + static_cast<size_t>(count);
}

}  // namespace mp
