// See fused.h.
#pragma once

#include "kernels/gemm/gemm_wmma.h"
#include "kernels/rnn/fused.h"
#include "kernels/rnn/fused_loaders.h"
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

/// kM rows and kUnits units of dh.
template <class T, class Cell, int kM, int kUnits>
class FusedBackwardTile {
  static constexpr int kStages = 6, kRunsPerRow = kUnits / kVec;

 public:
  using Tile = WmmaTile<kM, kUnits, kM / 2, kUnits, kStages, 1>;

 private:
  using LoadA = MatrixLoader<T, true, kM, Tile::kK, Tile::kThreads>;
  using LoadB = std::conditional_t<kUnits == 16, NarrowLoader<T, Tile>,
                                   MatrixLoader<T, false, Tile::kK, kUnits, Tile::kThreads>>;
  using Loop = WmmaLoop<T, LoadA, LoadB, Tile>;

 public:
  static constexpr size_t kSmemBytes = Loop::kSmemBytes;

  static int64_t tiles(const FusedBackward &args) {
    return args.directions * ceil_div<int64_t>(args.rows, kM) * unit_tiles(args);
  }

  MP_DEVICE FusedBackwardTile(const FusedBackward &args, int64_t number)
      : direction_(number % args.directions),
        m0_(number / args.directions / unit_tiles(args) * kM),
        u0_(number / args.directions % unit_tiles(args) * kUnits),
        args_(args),
        step_(args.steps[direction_]) {}

  MP_DEVICE void run(T *smem) {
    Loop loop;
    loop.clear();
    multiply(smem, loop, 0, 0, args_.gate_rows[0]);
    if (args_.gate_rows[1] > 0)
      multiply(smem, loop, step_.last_slot, args_.gate_rows[0], args_.gate_rows[1]);
    Watch watch(step_.found_inf, nullptr);
    loop.visit_patches(smem, [&](const float *patch, int row0) { apply_cell(patch, row0, watch); });
    watch.finish();
  }

 private:
  static MP_HD int64_t unit_tiles(const FusedBackward &args) {
    return ceil_div<int64_t>(args.steps[0].hidden, kUnits);
  }

  static MP_DEVICE LoadB weights(const T *w, int64_t hidden, int64_t unit, int64_t rows) {
    if constexpr (kUnits == 16)
      return LoadB(w, hidden, unit, rows);
    else
      return LoadB(w + unit, hidden, hidden - unit, rows);
  }

  /// Adds the product of the gradients from `column` on with `count` rows of W_hh.
  MP_DEVICE void multiply(T *smem, Loop &loop, int64_t column, int64_t first, int64_t count) const {
    const Rows &behind = args_.behind[direction_];
    const int64_t hidden = step_.hidden, rows_left = args_.count_behind[direction_] - m0_;
    if (behind.base == nullptr || rows_left <= 0) return;
    const T *const gradients = static_cast<const T *>(behind.base) + m0_ * behind.ld + column;
    const T *const w = static_cast<const T *>(args_.w_hh[direction_]) + first * hidden;
    LoadA load_a(gradients, behind.ld, rows_left, count);
    LoadB load_b = weights(w, hidden, u0_, count);
    loop.multiply_add(smem, load_a, load_b, ceil_div<int64_t>(count, Tile::kK));
  }

  MP_DEVICE void apply_cell(const float *patch, int row0, Watch &watch) const {
    for (int i = lane_index(); i < wmma::kTile * kRunsPerRow; i += kWarpSize) {
      // Neighbouring lanes have neighbouring rows: the patch is read without bank conflicts, and two lanes fill a sector.
      const int row = i % wmma::kTile, in_tile = i / wmma::kTile * kVec;
      const int64_t n = m0_ + row0 + row, unit = u0_ + in_tile;
      const int valid = static_cast<int>(min_of<int64_t>(step_.hidden - unit, kVec));
      if (n >= args_.rows || valid <= 0) continue;
      float product[kVec];
      load_smem_run(product, patch + row * Loop::kPatchPitch + in_tile);
      backward_units<Cell>(step_, n, unit, valid, product, watch);
    }
  }

  const int64_t direction_, m0_, u0_;
  const FusedBackward &args_;
  const BackwardStep &step_;
};

template <class T, class Cell, int kM, int kUnits>
MP_KERNEL((FusedBackwardTile<T, Cell, kM, kUnits>::Tile::kThreads), 1)
rnn_fused_backward(MP_PARAM(FusedBackward) args) {
  using Work = FusedBackwardTile<T, Cell, kM, kUnits>;
  if constexpr (wmma::supported<T, Work::kSmemBytes>()) {
    wait_for_previous_kernel();
    MP_DYN_SHARED(T, smem);
    Work(args, block_index()).run(smem);
  }
}

template <class T, class Cell, int kM, int kUnits>
void launch_backward_tiles(const Device &device, const FusedBackward &args, mp_stream_t stream) {
  using Work = FusedBackwardTile<T, Cell, kM, kUnits>;
  launch("rnn_fused_backward", rnn_fused_backward<T, Cell, kM, kUnits>, device,
         {.num_blocks = Work::tiles(args),
          .num_threads = Work::Tile::kThreads,
          .smem_bytes = Work::kSmemBytes,
          .starts_early = true},
         stream, args);
}

/// As forward.
template <class T>
void launch_fused_backward(const Device &device, const FusedBackward &args, mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    if (FusedBackwardTile<T, Cell, 64, 32>::tiles(args) >= device.num_sms)
      launch_backward_tiles<T, Cell, 64, 32>(device, args, stream);
    else
      launch_backward_tiles<T, Cell, 32, 16>(device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
