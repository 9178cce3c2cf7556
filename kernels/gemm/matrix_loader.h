// Loads of a matrix into shared memory, for the loop of wmma_loop.h.
//
// Extents and ld are arbitrary: elements outside the matrix are copied as zeros.  Operands whose
// rows are not all 16-byte aligned are copied element by element.
#pragma once

#include "kernels/gemm/wmma_loop.h"

namespace mp::MP_TARGET {

/// Copies the elements [first, end) of kVec elements; the others become zero.
template <class T>
MP_DEVICE void copy_elements(T *smem, const T *source, int first, int end) {
  MP_UNROLL
  for (int i = 0; i < kVec; i++) smem[i] = first <= i && i < end ? source[i] : T{0};
}

/// Copies kRows x kCols tiles of a row-major matrix into shared memory.  Rows are m (A) or n (B)
/// and columns are k, or the reverse.
template <class T, bool kByK_, int kRows, int kCols, int kThreads>
class MatrixLoader {
  using Chunks = TileChunks<kRows, kCols, kThreads>;

 public:
  static constexpr bool kByK = kByK_;
  static constexpr int kPitch = Chunks::kPitch;

  /// `origin`: first element of the first tile, in a matrix of row stride `ld`.  From there on,
  /// `extent` elements of m or n and `k` elements of k are in bounds.
  MP_DEVICE MatrixLoader(const T *origin, int64_t ld, int64_t extent, int64_t k)
      : row_step_(pin_to_register(Chunks::kRowStep * ld)),
        tile_step_(kByK ? kCols : pin_to_register(kRows * ld)),
        source_(origin + Chunks::row() * ld + Chunks::col()),
        rows_left_((kByK ? extent : k) - Chunks::row()),
        cols_left_((kByK ? k : extent) - Chunks::col()),
        place_(Chunks::place()),
        vectorised_(is_aligned_16(origin) && ld % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const int valid = static_cast<int>(min_of<int64_t>(max_of<int64_t>(cols_left_, 0), kVec));
    const int rows = static_cast<int>(min_of<int64_t>(rows_left_, kRows));
    T *const target = smem + place_;
    if (vectorised_ && valid == kVec)
      copy_whole_chunks(target, rows);
    else
      copy_chunks(target, rows, valid);
    source_ += tile_step_;
    (kByK ? cols_left_ : rows_left_) -= kByK ? kCols : kRows;
  }

 private:
  /// Copies complete vectors, which nearly all are.  A copy of 16 or 0 bytes is one predicated
  /// instruction; for other sizes ptxas adds four, which put the size into the address.
  MP_DEVICE void copy_whole_chunks(T *target, int rows) const {
    const T *source = source_;
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      copy_async_16(target, source, i * Chunks::kRowStep < rows ? 16 : 0);
      target += Chunks::kRowStep * kPitch;
      source += row_step_;
    }
  }

  MP_DEVICE void copy_chunks(T *target, int rows, int valid) const {
    const T *source = source_;
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int valid_here = i * Chunks::kRowStep < rows ? valid : 0;
      if (vectorised_)
        copy_async_16(target, source, valid_here * int{sizeof(T)});
      else
        copy_elements(target, source, 0, valid_here);
      target += Chunks::kRowStep * kPitch;
      source += row_step_;
    }
  }

  const int64_t row_step_, tile_step_;
  const T *source_;
  int64_t rows_left_, cols_left_;
  const int place_;
  const bool vectorised_;
};

/// Loader of an operand with kExtent of m or n by kK of k.
template <class T, bool kByK, int kExtent, class Tile>
using OperandLoader =
    MatrixLoader<T, kByK, kByK ? kExtent : Tile::kK, kByK ? Tile::kK : kExtent, Tile::kThreads>;

}  // namespace mp::MP_TARGET
