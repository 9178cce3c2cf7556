// Fused forward step through WMMA, for FP16 and BF16; see fused.h.
#include "kernels/rnn/fused_wmma.h"

namespace mp::MP_TARGET {

namespace {

template <class Cell, int kM>
class FusedForwardBlock {
  static constexpr int kGates = Cell::kGates, kUnits = kFusedForwardUnits<Cell>;

 public:
  using Tiles = FusedTiles<kM, kUnits>;
  using Tile = FusedForwardTile<Cell, kM>;

 private:
  template <class T>
  using LoadA = MatrixLoader<T, true, kM, Tile::kK, Tile::kThreads>;
  template <class T>
  using LoadB = GateLoader<T, kGates, kUnits, Tile>;
  using Loop = WmmaLoop<Tile>;

 public:
  static constexpr size_t kSmemBytes = Tile::smem_bytes(true, true);

  MP_DEVICE FusedForwardBlock(const FusedForward &args, int64_t number)
      : args_(args), place_(Tiles::place(args, number)), step_(args.steps[place_.direction]) {}

  MP_DEVICE void run(std::byte *smem) {
    Loop loop;
    loop.clear();
    with_half_type(step_.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (wmma::supported<T, kSmemBytes>()) multiply<T>(smem, loop);
    });
    loop.visit_patches(smem, [&](const float *patch, int row0) { apply_cell(patch, row0); });
  }

 private:
  template <class T>
  MP_DEVICE void multiply(std::byte *smem, Loop &loop) const {
    const int64_t hidden = step_.hidden, rows_left = step_.count - place_.m0;
    const T *const h = static_cast<const T *>(step_.h.base) + place_.m0 * step_.h.ld;
    const T *const w = static_cast<const T *>(args_.w_hh[place_.direction]);
    LoadA<T> load_a(h, step_.h.ld, rows_left, hidden);
    LoadB<T> load_b(w, hidden, place_.u0);
    loop.template multiply_add<T>(smem, load_a, load_b,
                                  rows_left > 0 ? ceil_div<int64_t>(hidden, Tile::kK) : 0);
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

template <class Cell, int kM>
MP_KERNEL((FusedForwardTile<Cell, kM>::kThreads), 1)
rnn_fused_forward(MP_PARAM(FusedForward) args) {
  using Work = FusedForwardBlock<Cell, kM>;
  if constexpr (wmma::supported<half, Work::kSmemBytes>()) {
    wait_for_previous_kernel();
    MP_DYN_SHARED(std::byte, smem);
    Work(args, block_index()).run(smem);
  }
}

template <class Cell, int kM>
void launch_forward_tiles(const Device &device, const FusedForward &args, mp_stream_t stream) {
  launch_fused_tiles<FusedForwardBlock<Cell, kM>>("rnn_fused_forward", rnn_fused_forward<Cell, kM>,
                                                  device, args, stream);
}

}  // namespace

// Larger tiles halve the reads of W_hh; smaller ones distribute the step to twice as many SMs.
void launch_fused_forward(const Device &device, const FusedForward &args, mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    if (FusedForwardBlock<Cell, 64>::Tiles::count(args) >= device.num_sms)
      launch_forward_tiles<Cell, 64>(device, args, stream);
    else
      launch_forward_tiles<Cell, 32>(device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
