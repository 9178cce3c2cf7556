// See fused.h.
#pragma once

#include "kernels/rnn/fused_wmma.h"

namespace mp::MP_TARGET {

/// kM rows; the units of a tile follow from the number of gates.
template <class T, class Cell, int kM>
class FusedForwardTile {
  static constexpr int kGates = Cell::kGates, kUnits = kGates == 1 ? 32 : 16;
  static constexpr int kColumns = kGates * kUnits, kStages = 6;

 public:
  using Tiles = FusedTiles<kM, kUnits>;
  using Tile = WmmaTile<kM, kColumns, kM / 2, kColumns, kStages, 1>;

 private:
  using LoadA = MatrixLoader<T, true, kM, Tile::kK, Tile::kThreads>;
  using LoadB = GateLoader<T, kGates, kUnits, Tile>;
  using Loop = WmmaLoop<T, LoadA, LoadB, Tile>;

 public:
  static constexpr size_t kSmemBytes = Loop::kSmemBytes;

  MP_DEVICE FusedForwardTile(const FusedForward &args, int64_t number)
      : args_(args), place_(Tiles::place(args, number)), step_(args.steps[place_.direction]) {}

  MP_DEVICE void run(T *smem) {
    Loop loop;
    multiply(smem, loop);
    loop.visit_patches(smem, [&](const float *patch, int row0) { apply_cell(patch, row0); });
  }

 private:
  MP_DEVICE void multiply(T *smem, Loop &loop) const {
    const int64_t hidden = step_.hidden, rows_left = step_.count - place_.m0;
    const T *const h = static_cast<const T *>(step_.h.base) + place_.m0 * step_.h.ld;
    const T *const w = static_cast<const T *>(args_.w_hh[place_.direction]);
    LoadA load_a(h, step_.h.ld, rows_left, hidden);
    LoadB load_b(w, hidden, place_.u0);
    loop.multiply(smem, load_a, load_b, rows_left > 0 ? ceil_div<int64_t>(hidden, Tile::kK) : 0);
  }

  MP_DEVICE void apply_cell(const float *patch, int row0) const {
    visit_units<kUnits, Loop::kPatchPitch>(
        patch, place_, row0, args_.rows, step_.hidden,
        [&](int64_t n, int64_t unit, int valid, const float *sums) {
          float q[kGates][kVec];
          MP_UNROLL
          for (int g = 0; g < kGates; g++) load_smem_run(q[g], sums + g * kUnits);
          forward_units<Cell>(step_, n, unit, valid, q);
        });
  }

  const FusedForward &args_;
  const FusedPlace place_;
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
  launch_fused_tiles<FusedForwardTile<T, Cell, kM>>(
      "rnn_fused_forward", rnn_fused_forward<T, Cell, kM>, device, args, stream);
}

/// The larger tile reads W_hh half as often; the smaller one shares the work among twice the SMs.
template <class T>
void launch_fused_forward(const Device &device, const FusedForward &args, mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    if (FusedForwardTile<T, Cell, 64>::Tiles::count(args) >= device.num_sms)
      launch_forward_tiles<T, Cell, 64>(device, args, stream);
    else
      launch_forward_tiles<T, Cell, 32>(device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
