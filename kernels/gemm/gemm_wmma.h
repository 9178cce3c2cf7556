// D = epilogue(op(A) op(B)) on the tensor cores through WMMA, sm_75 and newer: the loop of
// wmma_loop.h over matrices.
//
// Any m, n, k, ld: what lies outside the matrices is copied as zeros.  Operands that are not
// 16-byte aligned in every row are copied element by element.
#pragma once

#include "kernels/gemm/dispatch.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_work.h"
#include "kernels/gemm/operand.h"
#include "kernels/gemm/partial_sums.h"
#include "kernels/gemm/wmma_loop.h"

namespace mp::MP_TARGET {

/// Copies kRows x kCols tiles of a row-major matrix into smem: rows are A's m or B's n, with k along
/// them, or the other way round.
template <class T, bool kByK_, int kRows, int kCols, int kThreads>
class MatrixLoader {
  using Chunks = TileChunks<kRows, kCols, kThreads>;

 public:
  static constexpr bool kByK = kByK_;
  static constexpr int kPitch = Chunks::kPitch;

  /// `origin`: first element of the first tile, in a matrix of row stride `ld`; so many elements from
  /// there on are inside, beside k and along k.
  MP_DEVICE MatrixLoader(const T *origin, int64_t ld, int64_t extent, int64_t k)
      : row_step_(Chunks::kRowStep * ld),
        tile_step_(kByK ? kCols : kRows * ld),
        source_(origin + Chunks::row() * ld + Chunks::col()),
        rows_left_((kByK ? extent : k) - Chunks::row()),
        cols_left_((kByK ? k : extent) - Chunks::col()),
        vectorised_(is_aligned_16(origin) && ld % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const int valid = static_cast<int>(min_of<int64_t>(max_of<int64_t>(cols_left_, 0), kVec));
    T *const target = smem + Chunks::row() * kPitch + Chunks::col();
    if (vectorised_)
      copy_vectors(target, valid);
    else
      copy_elements(target, valid);
    source_ += tile_step_;
    (kByK ? cols_left_ : rows_left_) -= kByK ? kCols : kRows;
  }

 private:
  MP_DEVICE void copy_vectors(T *target, int valid) const {
    const T *source = source_;
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int valid_here = i * Chunks::kRowStep < rows_left_ ? valid : 0;
      copy_async_16(target, valid_here > 0 ? source : source_, valid_here * int{sizeof(T)});
      target += Chunks::kRowStep * kPitch;
      source += row_step_;
    }
  }

  MP_DEVICE void copy_elements(T *target, int valid) const {
    const T *source = source_;
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int valid_here = i * Chunks::kRowStep < rows_left_ ? valid : 0;
      MP_UNROLL
      for (int j = 0; j < kVec; j++) target[j] = j < valid_here ? source[j] : T{0};
      target += Chunks::kRowStep * kPitch;
      source += row_step_;
    }
  }

  const int64_t row_step_, tile_step_;
  const T *source_;
  int64_t rows_left_, cols_left_;
  const bool vectorised_;
};

/// The loader of an operand with kExtent of m or n beside kK of k.
template <class T, bool kByK, int kExtent, class Tile>
using OperandLoader =
    MatrixLoader<T, kByK, kByK ? kExtent : Tile::kK, kByK ? Tile::kK : kExtent, Tile::kThreads>;

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
class GemmWmma {
  static constexpr bool kAByK = op_a == MP_OP_N;  // k is the contiguous direction of A as stored
  static constexpr bool kBByK = op_b == MP_OP_T;
  using LoadA = OperandLoader<T, kAByK, Tile::kM, Tile>;
  using LoadB = OperandLoader<T, kBByK, Tile::kN, Tile>;
  using Loop = WmmaLoop<T, LoadA, LoadB, Tile>;

 public:
  static constexpr size_t kSmemBytes = Loop::kSmemBytes;

  MP_DEVICE GemmWmma(const GemmArgs &args, const GemmWork &work)
      : args_(args), p_(args.problem), work_(work) {}

  MP_DEVICE void run(T *smem) {
    const int64_t k_elems = work_.k_end - work_.k0;
    LoadA load_a(origin<kAByK>(p_.a, work_.m0), p_.a.ld, work_.m_end - work_.m0, k_elems);
    LoadB load_b(origin<kBByK>(p_.b, work_.n0), p_.b.ld, p_.out.n - work_.n0, k_elems);
    Loop loop;
    loop.multiply(smem, load_a, load_b, ceil_div(k_elems, int64_t{Tile::kK}));
    EpilogueWriter writer(p_.out, work_.batch_item);
    const bool is_split = args_.partial_sums != nullptr, is_fp32 = p_.out.dtype == MP_FP32;
    loop.store_tile(smem, is_split || is_fp32, [&]<int kRun>(int r, int c, float(&x)[kRun]) {
      const int64_t row = work_.m0 + r, col = work_.n0 + c;
      const int valid = static_cast<int>(min_of<int64_t>(p_.out.n - col, kRun));
      if (row >= work_.m_end || valid <= 0) return;
      if (kRun == kQuad && is_split)
        store_run(partial_sum(args_.partial_sums, p_.out, work_.slice, work_.batch_item, row, col),
                  x, valid);
      else
        writer.write(row, col, x, valid);
    });
    writer.finish();
  }

 private:
  template <bool kByK>
  MP_DEVICE const T *origin(const Operand &operand, int64_t mn) const {
    const T *const item =
        static_cast<const T *>(item_address(operand, p_.dtype_ab, work_.batch_item));
    return kByK ? item + mn * operand.ld + work_.k0 : item + work_.k0 * operand.ld + mn;
  }

  const GemmArgs &args_;
  const GemmProblem &p_;
  const GemmWork work_;
};

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
MP_KERNEL(Tile::kThreads, Tile::kMinBlocks)
gemm_wmma(MP_PARAM(GemmArgs) args) {
  using Gemm = GemmWmma<T, op_a, op_b, Tile>;
  if constexpr (wmma::supported<T, Gemm::kSmemBytes>()) {
    if (args.only_if != nullptr && *args.only_if == 0) return;
    MP_DYN_SHARED(T, smem);
    const int64_t num_work_tiles = args.scheduler.num_work_tiles();
    for (int64_t number = block_index(); number < num_work_tiles; number += grid_size()) {
      const GemmWork work = gemm_work<Tile>(args, number, args.ends != nullptr);
      if (work.is_none()) break;
      if (number != block_index()) block_sync();  // the last tile's epilogue still uses smem
      Gemm(args, work).run(smem);
    }
  }
}

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
void launch_gemm_wmma(const char *name, const Device &device, const GemmArgs &args,
                      mp_stream_t stream) {
  const LaunchShape shape{min_of(args.scheduler.num_work_tiles(), kMaxBlocks), Tile::kThreads,
                          GemmWmma<T, op_a, op_b, Tile>::kSmemBytes};
  launch(name, gemm_wmma<T, op_a, op_b, Tile>, device, shape, stream, args);
}

/// One type of operands; the .cu files have one instantiation each.
template <class T>
void launch_wmma(const GemmChoice &choice, const Device &device, const GemmArgs &args,
                 mp_stream_t stream) {
  with_ops(args.problem.op_a, args.problem.op_b, [&](auto op_a, auto op_b) {
    with_tile(WmmaTiles{}, *choice.kernel, [&](auto tile) {
      launch_gemm_wmma<T, decltype(op_a)::value, decltype(op_b)::value,
                       typename decltype(tile)::type>(choice.name, device, args, stream);
    });
  });
}

}  // namespace mp::MP_TARGET
