// Transposition of consecutive matrices: dst[i][col][row] = round(src[i][row][col]).  An image with
// c channels is a c x hw matrix in NCHW and an hw x c matrix in NHWC.
//
// A tile goes through shared memory: it is read along the rows of src and written along the rows of
// dst, with 16-byte accesses if they are aligned.  Matrices with up to 8 channels (RGB) use tiles
// of 8 rows or columns, so that threads are not idle for absent channels.
#include "kernels/layers/layer_args.h"
#include "kernels/simt/vector.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;
constexpr int kFew = 8;
constexpr int kMany = kTile * kTile / kFew;

/// Tile src[i][row .. row + rows)[col .. col + cols).
struct Tile {
  int64_t src, dst;  ///< first element
  int rows, cols;
};

template <int kRows, int kCols>
MP_DEVICE Tile tile_of(const TransposeArgs &args, int64_t number) {
  const int64_t tiles_along = ceil_div<int64_t>(args.cols, kCols);
  const int64_t tiles_down = ceil_div<int64_t>(args.rows, kRows);
  const int64_t col = number % tiles_along * kCols;
  const int64_t row = number / tiles_along % tiles_down * kRows;
  const int64_t matrix = number / tiles_along / tiles_down * args.rows * args.cols;
  return {matrix + row * args.cols + col, matrix + col * args.rows + row,
          static_cast<int>(min_of<int64_t>(args.rows - row, kRows)),
          static_cast<int>(min_of<int64_t>(args.cols - col, kCols))};
}

/// Calls visit(row, col, valid) for this thread's vectors along the rows of a kRows x kCols tile,
/// of which rows x cols elements exist.
template <int kRows, int kCols, class Visit>
MP_DEVICE void for_each_vector(int rows, int cols, Visit visit) {
  constexpr int kRunsPerRow = kCols / kVec;
  for (int i = thread_index(); i < kRows * kRunsPerRow; i += kThreads) {
    const int row = i / kRunsPerRow, col = i % kRunsPerRow * kVec;
    if (row < rows && col < cols) visit(row, col, min_of(cols - col, kVec));
  }
}

template <int kRows, int kCols>
MP_KERNEL(kThreads, 4)
transpose_tiles(MP_PARAM(TransposeArgs) args) {
  MP_SHARED(float, tile_smem, [kRows][kCols + 1]);  // the next row starts in the next bank
  const int64_t num_tiles =
      args.count * ceil_div<int64_t>(args.rows, kRows) * ceil_div<int64_t>(args.cols, kCols);
  for (int64_t number = block_index(); number < num_tiles; number += grid_size()) {
    const Tile tile = tile_of<kRows, kCols>(args, number);
    for_each_vector<kRows, kCols>(tile.rows, tile.cols, [&](int row, int col, int valid) {
      float x[kVec];
      load_vector(x, args.dtype_src, args.src, tile.src + row * args.cols + col, valid);
      unroll<kVec>([&](int i) { tile_smem[row][col + i] = x[i]; });
    });
    block_sync();
    for_each_vector<kCols, kRows>(tile.cols, tile.rows, [&](int col, int row, int valid) {
      float x[kVec];
      unroll<kVec>([&](int i) { x[i] = i < valid ? tile_smem[row + i][col] : 0.0f; });
      store_vector(args.dtype_dst, args.dst, tile.dst + col * args.rows + row, x, valid);
    });
    block_sync();
  }
}

template <int kRows, int kCols>
void launch_tiles(const Device &device, const TransposeArgs &args, mp_stream_t stream) {
  const int64_t num_tiles =
      args.count * ceil_div<int64_t>(args.rows, kRows) * ceil_div<int64_t>(args.cols, kCols);
  launch("transpose", transpose_tiles<kRows, kCols>, device,
         {min_of(num_tiles, kMaxBlocks), kThreads}, stream, args);
}

}  // namespace

void transpose(const Device &device, const TransposeArgs &args, mp_stream_t stream) {
  if (args.rows == 1 || args.cols == 1)
    return cast(device, args.src, args.dtype_src, args.dst, args.dtype_dst,
                args.count * args.rows * args.cols, stream);
  if (args.rows <= kFew) return launch_tiles<kFew, kMany>(device, args, stream);
  if (args.cols <= kFew) return launch_tiles<kMany, kFew>(device, args, stream);
  launch_tiles<kTile, kTile>(device, args, stream);
}

}  // namespace mp::MP_TARGET
