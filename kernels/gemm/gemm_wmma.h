// D = epilogue(op(A) op(B)) on the tensor cores through WMMA, sm_75 and newer.
//
// A block computes a kTileM x kTileN tile of D, a warp kWarpM x kWarpN of it in 16x16 fragments.
// Stages of smem form a ring: while one is multiplied, cp.async fills those behind it.  Rows in
// smem are padded by 8 halves, so that the eight rows that one ldmatrix reads fall into different
// banks (80, 144, 272 and 528 bytes of pitch).  op T costs nothing: the tile is copied as it lies
// in memory and read as a col_major fragment.
//
// Any m, n, k, ld: what lies outside the matrices is copied as zeros.  Operands that are not
// 16-byte aligned in every row are copied element by element.
#pragma once

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/operand.h"
#include "kernels/simt/sm80.h"
#include "kernels/simt/wmma.h"

namespace mp::MP_TARGET {

/// Copies a kRows x kCols tile of a row-major matrix into smem, for all threads of the block.
/// It moves along k: by columns if k is the contiguous direction, else by rows.
template <class T, int kRows, int kCols, int kThreads>
class TileLoader {
 public:
  static constexpr int kPitch = kCols + 8;
  static constexpr int kElems = kRows * kPitch;

  /// `origin`: first element of the first tile, in a matrix of row stride `ld`.
  MP_DEVICE TileLoader(const T *origin, int64_t ld)
      : row_(thread_index() / kChunksPerRow),
        col_(thread_index() % kChunksPerRow * kVec),
        row_step_(kRowStep * ld),
        source_(origin + row_ * ld + col_),
        vectorised_(is_aligned_16(origin) && ld % kVec == 0) {}

  /// Starts the copy of the current tile; rows and columns beyond `rows`, `cols` become zero.
  MP_DEVICE void load(T *smem, int64_t rows, int64_t cols) const {
    const int valid = static_cast<int>(min_of<int64_t>(max_of<int64_t>(cols - col_, 0), kVec));
    T *const target = smem + row_ * kPitch + col_;
    if (vectorised_)
      copy_vectors(target, rows, valid);
    else
      copy_elements(target, rows, valid);
  }

  MP_DEVICE void advance(int64_t elems) { source_ += elems; }

 private:
  static constexpr int kChunksPerRow = kCols / kVec;
  static constexpr int kRowStep = kThreads / kChunksPerRow;
  static constexpr int kIterations = kRows / kRowStep;
  static_assert(kThreads % kChunksPerRow == 0 && kRows % kRowStep == 0);

  MP_DEVICE void copy_vectors(T *target, int64_t rows, int valid) const {
    const T *source = source_;
    MP_UNROLL
    for (int i = 0; i < kIterations; i++) {
      const int valid_here = row_ + i * kRowStep < rows ? valid : 0;
      copy_async_16(target, valid_here > 0 ? source : source_, valid_here * int{sizeof(T)});
      target += kRowStep * kPitch;
      source += row_step_;
    }
  }

  MP_DEVICE void copy_elements(T *target, int64_t rows, int valid) const {
    const T *source = source_;
    MP_NO_UNROLL
    for (int i = 0; i < kIterations; i++) {
      const int valid_here = row_ + i * kRowStep < rows ? valid : 0;
      MP_UNROLL
      for (int j = 0; j < kVec; j++) target[j] = j < valid_here ? source[j] : T{0};
      target += kRowStep * kPitch;
      source += row_step_;
    }
  }

  int row_, col_;
  int64_t row_step_;
  const T *source_;
  bool vectorised_;
};

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
class GemmWmma {
  static constexpr bool kAByK = op_a == MP_OP_N;  // k is the contiguous direction of A as stored
  static constexpr bool kBByK = op_b == MP_OP_T;

 public:
  static constexpr size_t kSmemBytes = Tile::smem_bytes(kAByK, kBByK);

  MP_DEVICE GemmWmma(const GemmArgs &args, const WorkItem &work)
      : args_(args),
        p_(args.problem),
        work_(work),
        m0_(work.tile_m * Tile::kM),
        n0_(work.tile_n * Tile::kN),
        k_begin_(work.slice * args.slice_k),
        k_end_(min_of(p_.k, k_begin_ + args.slice_k)),
        load_a_(origin_a(), p_.a.ld),
        load_b_(origin_b(), p_.b.ld),
        k_loaded_(k_begin_) {}

  MP_DEVICE void run(T *smem) {
    clear_accumulators();
    const int64_t num_k_tiles = ceil_div(k_end_ - k_begin_, int64_t{Tile::kK});
    MP_NO_UNROLL
    for (int stage = 0; stage < Tile::kStages - 1; stage++) load_next(smem, stage);
    for (int64_t t = 0; t < num_k_tiles; t++) {
      copy_async_wait<Tile::kStages - 2>();
      block_sync();  // tile t is there for all; all have finished with the stage loaded next
      load_next(smem, static_cast<int>((t + Tile::kStages - 1) % Tile::kStages));
      multiply_stage(smem, static_cast<int>(t % Tile::kStages));
    }
    copy_async_wait<0>();
    block_sync();  // smem is free for the epilogue
    store_tile(reinterpret_cast<float *>(smem));
  }

 private:
  using LoadA =
      TileLoader<T, kAByK ? Tile::kM : Tile::kK, kAByK ? Tile::kK : Tile::kM, Tile::kThreads>;
  using LoadB =
      TileLoader<T, kBByK ? Tile::kN : Tile::kK, kBByK ? Tile::kK : Tile::kN, Tile::kThreads>;
  static_assert(kSmemBytes == sizeof(T) * Tile::kStages * (LoadA::kElems + LoadB::kElems));
  static constexpr int kFragsM = Tile::kWarpM / wmma::kTile;
  static constexpr int kFragsN = Tile::kWarpN / wmma::kTile;
  static constexpr int kWarpsN = Tile::kN / Tile::kWarpN;
  static constexpr auto kLayoutA = kAByK ? wmma::Layout::row_major : wmma::Layout::col_major;
  static constexpr auto kLayoutB = kBByK ? wmma::Layout::col_major : wmma::Layout::row_major;

  // The epilogue goes through smem: a WMMA accumulator does not tell which element it holds.
  static constexpr int kPatchPitch = Tile::kWarpN + 4;
  static constexpr int kPatchElems = wmma::kTile * kPatchPitch;
  static_assert(Tile::kThreads / kWarpSize * kPatchElems * sizeof(float) <= kSmemBytes);

  MP_DEVICE const T *origin_a() const {
    const T *const a = static_cast<const T *>(item_address(p_.a, p_.dtype_ab, work_.batch_item));
    return kAByK ? a + m0_ * p_.a.ld + k_begin_ : a + k_begin_ * p_.a.ld + m0_;
  }
  MP_DEVICE const T *origin_b() const {
    const T *const b = static_cast<const T *>(item_address(p_.b, p_.dtype_ab, work_.batch_item));
    return kBByK ? b + n0_ * p_.b.ld + k_begin_ : b + k_begin_ * p_.b.ld + n0_;
  }

  MP_DEVICE void clear_accumulators() {
    MP_UNROLL
    for (int i = 0; i < kFragsM; i++) {
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++) wmma::fill(acc_[i][j], 0.0f);
    }
  }

  static MP_DEVICE T *stage_a(T *smem, int stage) { return smem + stage * LoadA::kElems; }
  static MP_DEVICE T *stage_b(T *smem, int stage) {
    return smem + Tile::kStages * LoadA::kElems + stage * LoadB::kElems;
  }

  /// Starts the copy of the next k-tile; past the end an empty group, to keep the count.
  MP_DEVICE void load_next(T *smem, int stage) {
    const int64_t k_left = k_end_ - k_loaded_;
    if (k_left > 0) {
      const int64_t m_left = p_.m - m0_, n_left = p_.n - n0_;
      load_a_.load(stage_a(smem, stage), kAByK ? m_left : k_left, kAByK ? k_left : m_left);
      load_b_.load(stage_b(smem, stage), kBByK ? n_left : k_left, kBByK ? k_left : n_left);
      load_a_.advance(kAByK ? Tile::kK : Tile::kK * p_.a.ld);
      load_b_.advance(kBByK ? Tile::kK : Tile::kK * p_.b.ld);
      k_loaded_ += Tile::kK;
    }
    copy_async_commit();
  }

  static MP_DEVICE int warp_m() { return warp_index() / kWarpsN * Tile::kWarpM; }
  static MP_DEVICE int warp_n() { return warp_index() % kWarpsN * Tile::kWarpN; }

  MP_DEVICE void multiply_stage(T *smem, int stage) {
    const T *const a = stage_a(smem, stage);
    const T *const b = stage_b(smem, stage);
    MP_UNROLL
    for (int k = 0; k < Tile::kK; k += wmma::kTile) {
      wmma::FragmentA<T, kLayoutA> fa[kFragsM];
      wmma::FragmentB<T, kLayoutB> fb[kFragsN];
      MP_UNROLL
      for (int i = 0; i < kFragsM; i++) {
        const int m = warp_m() + i * wmma::kTile;
        wmma::load(fa[i], a + (kAByK ? m * LoadA::kPitch + k : k * LoadA::kPitch + m),
                   LoadA::kPitch);
      }
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++) {
        const int n = warp_n() + j * wmma::kTile;
        wmma::load(fb[j], b + (kBByK ? n * LoadB::kPitch + k : k * LoadB::kPitch + n),
                   LoadB::kPitch);
      }
      MP_UNROLL
      for (int i = 0; i < kFragsM; i++) {
        MP_UNROLL
        for (int j = 0; j < kFragsN; j++) wmma::multiply_add(acc_[i][j], fa[i], fb[j]);
      }
    }
  }

  /// Each warp passes its part of the tile through a patch of its own, 16 rows at a time.
  ///
  /// The loop is not unrolled, so that the long epilogue is compiled once per kernel instead of
  /// kFragsM times; as registers cannot be indexed at run time, the accumulators move up instead.
  MP_DEVICE void store_tile(float *smem) {
    float *const patch = smem + warp_index() * kPatchElems;
    EpilogueWriter writer(p_, work_.batch_item);
    MP_NO_UNROLL
    for (int i = 0; i < kFragsM; i++) {
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++)
        wmma::store_row_major(patch + j * wmma::kTile, acc_[0][j], kPatchPitch);
      warp_sync();
      store_patch(patch, m0_ + warp_m() + i * wmma::kTile, writer);
      warp_sync();
      move_accumulators_up();
    }
    writer.finish();
  }

  MP_DEVICE void move_accumulators_up() {
    MP_UNROLL
    for (int i = 0; i + 1 < kFragsM; i++) {
      MP_UNROLL
      for (int j = 0; j < kFragsN; j++) wmma::copy(acc_[i][j], acc_[i + 1][j]);
    }
  }

  MP_DEVICE void store_patch(const float *patch, int64_t row0, EpilogueWriter &writer) const {
    constexpr int kChunksPerRow = Tile::kWarpN / kVec;
    constexpr int kRowStep = kWarpSize / kChunksPerRow;
    const int chunk = lane_index() % kChunksPerRow * kVec;
    const int64_t col = n0_ + warp_n() + chunk;
    const int valid = static_cast<int>(min_of<int64_t>(p_.n - col, kVec));
    if (valid <= 0) return;
    MP_NO_UNROLL
    for (int r = lane_index() / kChunksPerRow; r < wmma::kTile; r += kRowStep) {
      if (row0 + r >= p_.m) return;
      float x[kVec];
      MP_UNROLL
      for (int i = 0; i < kVec; i++) x[i] = patch[r * kPatchPitch + chunk + i];
      if (args_.partial_sums != nullptr)
        store_partial(row0 + r, col, x, valid);
      else
        writer.write(row0 + r, col, x, valid);
    }
  }

  /// Split-k: this slice's sums, for split_k.cu to add up.  Layout [slice][batch item][m][n].
  MP_DEVICE void store_partial(int64_t row, int64_t col, const float (&x)[kVec], int valid) const {
    const int64_t matrix = work_.slice * p_.batch_count + work_.batch_item;
    store_run(args_.partial_sums + (matrix * p_.m + row) * p_.n + col, x, valid);
  }

  const GemmArgs &args_;
  const GemmProblem &p_;
  const WorkItem work_;
  const int64_t m0_, n0_;
  const int64_t k_begin_, k_end_;
  LoadA load_a_;
  LoadB load_b_;
  int64_t k_loaded_;
  wmma::Accumulator acc_[kFragsM][kFragsN];
};

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
MP_KERNEL(Tile::kThreads, Tile::kMinBlocks)
gemm_wmma(MP_PARAM(GemmArgs) args) {
  using Gemm = GemmWmma<T, op_a, op_b, Tile>;
  if constexpr (wmma::supported<T, Gemm::kSmemBytes>()) {
    if (args.only_if != nullptr && *args.only_if == 0) return;
    MP_DYN_SHARED(T, smem);
    const int64_t num_items = args.schedule.num_items();
    for (int64_t number = block_index(); number < num_items; number += grid_size()) {
      if (number != block_index()) block_sync();  // the last tile's epilogue still uses smem
      Gemm(args, args.schedule(number)).run(smem);
    }
  }
}

template <class T, mp_op_t op_a, mp_op_t op_b, class Tile>
void launch_gemm_wmma(const char *name, const Device &device, const GemmArgs &args,
                      mp_stream_t stream) {
  const LaunchShape shape{min_of(args.schedule.num_items(), kMaxBlocks), Tile::kThreads,
                          GemmWmma<T, op_a, op_b, Tile>::kSmemBytes};
  launch(name, gemm_wmma<T, op_a, op_b, Tile>, device, shape, stream, args);
}

}  // namespace mp::MP_TARGET
