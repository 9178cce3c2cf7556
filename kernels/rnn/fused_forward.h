// See fused.h.
#pragma once

#include "kernels/gemm/gemm_wmma.h"
#include "kernels/rnn/fused.h"
#include "kernels/rnn/fused_loaders.h"
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

/// kM rows; the units of a tile follow from the number of gates.
template <class T, class Cell, int kM>
class FusedForwardTile {
  static constexpr int kGates = Cell::kGates, kUnits = kGates == 1 ? 32 : 16;
  static constexpr int kColumns = kGates * kUnits, kStages = 6;
  static constexpr int kRunsPerRow = kUnits / kVec;

 public:
  using Tile = WmmaTile<kM, kColumns, kM / 2, kColumns, kStages, 1>;

 private:
  using LoadA = MatrixLoader<T, true, kM, Tile::kK, Tile::kThreads>;
  using LoadB = GateLoader<T, kGates, kUnits, Tile>;
  using Loop = WmmaLoop<T, LoadA, LoadB, Tile>;

 public:
  static constexpr size_t kSmemBytes = Loop::kSmemBytes;

  static int64_t tiles(const FusedForward &args) {
    return args.directions * ceil_div<int64_t>(args.rows, kM) * unit_tiles(args);
  }

  MP_DEVICE FusedForwardTile(const FusedForward &args, int64_t number)
      : direction_(number % args.directions),
        m0_(number / args.directions / unit_tiles(args) * kM),
        u0_(number / args.directions % unit_tiles(args) * kUnits),
        args_(args),
        step_(args.steps[direction_]) {}

  MP_DEVICE void run(T *smem) {
    Loop loop;
    multiply(smem, loop);
    loop.visit_patches(smem, [&](const float *patch, int row0) { apply_cell(patch, row0); });
  }

 private:
  static MP_HD int64_t unit_tiles(const FusedForward &args) {
    return ceil_div<int64_t>(args.steps[0].hidden, kUnits);
  }

  MP_DEVICE void multiply(T *smem, Loop &loop) const {
    const int64_t hidden = step_.hidden, rows_left = step_.count - m0_;
    const T *const h = static_cast<const T *>(step_.h.base) + m0_ * step_.h.ld;
    const T *const w = static_cast<const T *>(args_.w_hh[direction_]);
    LoadA load_a(h, step_.h.ld, rows_left, hidden);
    LoadB load_b(w, hidden, u0_);
    loop.multiply(smem, load_a, load_b, rows_left > 0 ? ceil_div<int64_t>(hidden, Tile::kK) : 0);
  }

  MP_DEVICE void apply_cell(const float *patch, int row0) const {
    for (int i = lane_index(); i < wmma::kTile * kRunsPerRow; i += kWarpSize) {
      // Neighbouring lanes have neighbouring rows: the patch is read without bank conflicts, and two lanes fill a sector.
      const int row = i % wmma::kTile, in_tile = i / wmma::kTile * kVec;
      const int64_t n = m0_ + row0 + row, unit = u0_ + in_tile;
      const int valid = static_cast<int>(min_of<int64_t>(step_.hidden - unit, kVec));
      if (n >= args_.rows || valid <= 0) continue;
      float q[kGates][kVec];
      MP_UNROLL
      for (int g = 0; g < kGates; g++)
        load_smem_run(q[g], patch + row * Loop::kPatchPitch + g * kUnits + in_tile);
      forward_units<Cell>(step_, n, unit, valid, q);
    }
  }

  const int64_t direction_, m0_, u0_;
  const FusedForward &args_;
  const ForwardStep &step_;
};

template <class T, class Cell, int kM>
MP_KERNEL((FusedForwardTile<T, Cell, kM>::Tile::kThreads), 1)
rnn_fused_forward(MP_PARAM(FusedForward) args) {
  using Work = FusedForwardTile<T, Cell, kM>;
  if constexpr (wmma::supported<T, Work::kSmemBytes>()) {
    wait_for_previous_kernel();
    MP_DYN_SHARED(T, smem);
    Work(args, block_index()).run(smem);
  }
}

template <class T, class Cell, int kM>
void launch_forward_tiles(const Device &device, const FusedForward &args, mp_stream_t stream) {
  using Work = FusedForwardTile<T, Cell, kM>;
  launch("rnn_fused_forward", rnn_fused_forward<T, Cell, kM>, device,
         {.num_blocks = Work::tiles(args),
          .num_threads = Work::Tile::kThreads,
          .smem_bytes = Work::kSmemBytes,
          .starts_early = true},
         stream, args);
}

/// The larger tile reads W_hh half as often; the smaller one shares the work among twice the SMs.
template <class T>
void launch_fused_forward(const Device &device, const FusedForward &args, mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    if (FusedForwardTile<T, Cell, 64>::tiles(args) >= device.num_sms)
      launch_forward_tiles<T, Cell, 64>(device, args, stream);
    else
      launch_forward_tiles<T, Cell, 32>(device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
