// Fused steps through WMMA, for FP16 and BF16; see fused.h.
#include "kernels/rnn/fused_wmma.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- forward

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
  using Inputs = ForwardInputs<Cell, HalfAccess<false>>;

 public:
  static constexpr size_t kSmemBytes = Tile::smem_bytes(true, true);

  MP_DEVICE FusedForwardBlock(const FusedForward &args, uint32_t number)
      : args_(args), place_(Tiles::place(args, number)), step_(args.steps[place_.direction]) {}

  MP_DEVICE void run(std::byte *smem) {
    Loop loop;
    UnitVectors<Loop, kUnits, Inputs, FusedForward, ForwardStep> vectors(args_, place_, step_);
    loop.clear();
    vectors.before_products();
    with_half_type(step_.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (wmma::supported<T, kSmemBytes>()) multiply<T>(smem, loop);
    });
    vectors.visit(smem, loop,
                  [&](int64_t n, int64_t unit, int valid, Inputs &in, const float *sums) {
                    float q[kGates][kVec];
                    MP_UNROLL
                    for (int g = 0; g < kGates; g++) load_smem_run(q[g], sums + g * kUnits);
                    forward_units(step_, n, unit, valid, in, q);
                  });
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

  const FusedForward &args_;
  const FusedCoord place_;
  const ForwardStep &step_;
};

template <class Cell, int kM>
MP_KERNEL((FusedForwardTile<Cell, kM>::kThreads), 1)
rnn_fused_forward(MP_PARAM(FusedForward) args) {
  using Work = FusedForwardBlock<Cell, kM>;
  if constexpr (wmma::supported<half, Work::kSmemBytes>()) {
    wait_for_previous_kernel();
    MP_DYN_SHARED(std::byte, smem);
    Work(args, static_cast<uint32_t>(block_index())).run(smem);
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

// ---------------------------------------------------------------------------- backward

namespace {

template <class Cell, int kM, int kUnits>
class FusedBackwardBlock {
 public:
  using Tiles = FusedTiles<kM, kUnits>;
  using Tile = FusedBackwardTile<kM, kUnits>;

 private:
  template <class T>
  using LoadA = MatrixLoader<T, true, kM, Tile::kK, Tile::kThreads>;
  template <class T>
  using LoadB = std::conditional_t<kUnits == 16, NarrowLoader<T, Tile>,
                                   MatrixLoader<T, false, Tile::kK, kUnits, Tile::kThreads>>;
  using Loop = WmmaLoop<Tile>;
  using Inputs = BackwardInputs<Cell, HalfAccess<false>>;

 public:
  static constexpr size_t kSmemBytes = Tile::smem_bytes(true, false);

  MP_DEVICE FusedBackwardBlock(const FusedBackward &args, uint32_t number)
      : args_(args), place_(Tiles::place(args, number)), step_(args.steps[place_.direction]) {}

  MP_DEVICE void run(std::byte *smem) {
    Loop loop;
    UnitVectors<Loop, kUnits, Inputs, FusedBackward, BackwardStep> vectors(args_, place_, step_);
    loop.clear();
    vectors.before_products();
    with_half_type(step_.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (wmma::supported<T, kSmemBytes>()) multiply_gates<T>(smem, loop);
    });
    AmaxTracker watch(step_.found_inf, nullptr);
    vectors.visit(smem, loop,
                  [&](int64_t n, int64_t unit, int valid, Inputs &in, const float *sums) {
                    float product[kVec];
                    load_smem_run(product, sums);
                    backward_units(step_, n, unit, valid, in, product, watch);
                  });
    watch.finish();
  }

 private:
  template <class T>
  MP_DEVICE void multiply_gates(std::byte *smem, Loop &loop) const {
    MP_NO_UNROLL
    for (int part = 0; part < 2; part++) {
      const int64_t count = args_.gate_rows[part];
      if (count == 0) continue;
      multiply<T>(smem, loop, part == 0 ? 0 : step_.last_slot, part == 0 ? 0 : args_.gate_rows[0],
                  count);
    }
  }

  template <class T>
  static MP_DEVICE LoadB<T> weights(const T *w, int64_t hidden, int64_t unit, int64_t rows) {
    if constexpr (kUnits == 16)
      return LoadB<T>(w, hidden, unit, rows);
    else
      return LoadB<T>(w + unit, hidden, hidden - unit, rows);
  }

  /// Adds the product of the gradients from `column` on and `count` rows of W_hh from `first` on.
  template <class T>
  MP_DEVICE void multiply(std::byte *smem, Loop &loop, int64_t column, int64_t first,
                          int64_t count) const {
    const RowMatrix &behind = args_.behind[place_.direction];
    const int64_t hidden = step_.hidden,
                  rows_left = args_.count_behind[place_.direction] - place_.m0;
    if (behind.base == nullptr || rows_left <= 0) return;
    const T *const gradients = static_cast<const T *>(behind.base) + place_.m0 * behind.ld + column;
    const T *const w = static_cast<const T *>(args_.w_hh[place_.direction]) + first * hidden;
    LoadA<T> load_a(gradients, behind.ld, rows_left, count);
    LoadB<T> load_b = weights(w, hidden, place_.u0, count);
    loop.template multiply_add<T>(smem, load_a, load_b, ceil_div<int64_t>(count, Tile::kK));
  }

  const FusedBackward &args_;
  const FusedCoord place_;
  const BackwardStep &step_;
};

template <class Cell, int kM, int kUnits>
MP_KERNEL((FusedBackwardTile<kM, kUnits>::kThreads), 1)
rnn_fused_backward(MP_PARAM(FusedBackward) args) {
  using Work = FusedBackwardBlock<Cell, kM, kUnits>;
  if constexpr (wmma::supported<half, Work::kSmemBytes>()) {
    wait_for_previous_kernel();
    MP_DYN_SHARED(std::byte, smem);
    Work(args, static_cast<uint32_t>(block_index())).run(smem);
  }
}

template <class Cell, int kM, int kUnits>
void launch_backward_tiles(const Device &device, const FusedBackward &args, mp_stream_t stream) {
  launch_fused_tiles<FusedBackwardBlock<Cell, kM, kUnits>>(
      "rnn_fused_backward", rnn_fused_backward<Cell, kM, kUnits>, device, args, stream);
}

}  // namespace

// Tile sizes are selected like those of launch_fused_forward.
void launch_fused_backward(const Device &device, const FusedBackward &args, mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    if (FusedBackwardBlock<Cell, 64, 32>::Tiles::count(args) >= device.num_sms)
      launch_backward_tiles<Cell, 64, 32>(device, args, stream);
    else
      launch_backward_tiles<Cell, 32, 16>(device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
