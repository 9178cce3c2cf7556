// Fused steps through WMMA, for FP16 and BF16; see fused.h.
#include "kernels/rnn/fused.h"
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

namespace {

// ---------------------------------------------------------------------------- loaders of W_hh

// If rows are aligned, hidden is a multiple of kVec, and each 16-byte vector is full or zero.

/// Forward: kK columns of the rows of all gates for kUnits units, ordered by gate, then unit.
template <class T, int kGates, int kUnits, class Tile>
class GateLoader {
  static constexpr int kRows = 16;  ///< rows that a block copies at a time
  using Chunks = TileChunks<kRows, Tile::kK, Tile::kThreads>;
  static_assert(Chunks::kIterations == 1 && kUnits % kRows == 0 && Tile::kN == kGates * kUnits);

 public:
  static constexpr bool kByK = true;

  /// W_hh has gates x hidden rows of `hidden` elements; the tile begins at unit `unit`.
  MP_DEVICE GateLoader(const T *w, int64_t hidden, int64_t unit)
      : gate_step_(hidden * hidden),
        source_(w + (unit + Chunks::row()) * hidden + Chunks::col()),
        ld_(hidden),
        units_left_(static_cast<int>(min_of<int64_t>(hidden - unit, kUnits)) - Chunks::row()),
        k_left_(hidden - Chunks::col()),
        smem_offset_(Chunks::smem_offset()),
        vectorized_(is_aligned_16(w) && hidden % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const int valid = static_cast<int>(min_of<int64_t>(max_of<int64_t>(k_left_, 0), kVec));
    T *target = smem + smem_offset_;
    const auto copy_next = [&](int i, auto copy) {
      const int gate = i / kPerGate, u = i % kPerGate * kRows;
      copy(source_ + gate * gate_step_ + u * ld_, u < units_left_ ? valid : 0);
      target += kRows * Chunks::kPitch;
    };
    if (vectorized_) {
      MP_UNROLL
      for (int i = 0; i < kGates * kPerGate; i++)
        copy_next(i, [&](const T *source, int valid_here) {
          copy_async_16(target, source, valid_here > 0 ? 16 : 0);
        });
    } else {
      MP_NO_UNROLL
      for (int i = 0; i < kGates * kPerGate; i++)
        copy_next(i, [&](const T *source, int valid_here) {
          copy_elements(target, source, 0, valid_here);
        });
    }
    source_ += Tile::kK;
    k_left_ -= Tile::kK;
  }

 private:
  static constexpr int kPerGate = kUnits / kRows;

  const int64_t gate_step_;
  const T *source_;
  const int64_t ld_;
  const int units_left_;
  int64_t k_left_;
  const int smem_offset_;
  const bool vectorized_;
};

/// Backward: kK rows of W_hh, 16 units wide.
template <class T, class Tile>
class NarrowLoader {
  static_assert(Tile::kN == 16 && Tile::kThreads == 2 * Tile::kK);  // two vectors per row

 public:
  static constexpr bool kByK = false;
  static constexpr int kPitch = Tile::kN + kWmmaPad;

  MP_DEVICE NarrowLoader(const T *w, int64_t hidden, int64_t unit, int64_t rows)
      : source_(w + row() * hidden + unit + col()),
        step_(Tile::kK * hidden),
        rows_left_(rows - row()),
        valid_(static_cast<int>(min_of<int64_t>(max_of<int64_t>(hidden - unit - col(), 0), kVec))),
        smem_offset_(pin_to_register(row() * kPitch + col())),
        vectorized_(is_aligned_16(w) && hidden % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const int valid = rows_left_ > 0 ? valid_ : 0;
    T *const target = smem + smem_offset_;
    if (vectorized_)
      copy_async_16(target, source_, valid > 0 ? 16 : 0);
    else
      copy_elements(target, source_, 0, valid);
    source_ += step_;
    rows_left_ -= Tile::kK;
  }

 private:
  /// Eight lanes store at a time, to eight rows 48 bytes apart: no bank conflicts.
  static MP_DEVICE int row() {
    return warp_index() * 16 + lane_index() / 16 * 8 + lane_index() % 8;
  }
  static MP_DEVICE int col() { return lane_index() / 8 % 2 * kVec; }

  const T *source_;
  const int64_t step_;
  int64_t rows_left_;
  const int valid_, smem_offset_;
  const bool vectorized_;
};

// ---------------------------------------------------------------------------- units

/// Vectors of units of a warp, patch by patch.  The inputs of the first are loaded before the
/// products.
template <class Loop, int kUnits, class Inputs, class Args, class Step>
class UnitVectors {
 public:
  MP_DEVICE UnitVectors(const Args &args, const FusedCoord &coord, const Step &step)
      : args_(args), coord_(coord), step_(step) {}

  MP_DEVICE void before_products() {
    visit_one(lane_index(), Loop::warp_m(),
              [&](int64_t n, int64_t unit, int valid, int) { in_.load(step_, n, unit, valid); });
  }

  /// Calls apply(n, unit, valid, inputs, sums).
  template <class Apply>
  MP_DEVICE void visit(std::byte *smem, Loop &loop, const Apply &apply) {
    loop.visit_patches(smem, [&](const float *patch, int row0) {
      for (int i = lane_index(); i < wmma::kTile * kUnits / kVec; i += kWarpSize)
        visit_one(i, row0, [&](int64_t n, int64_t unit, int valid, int at) {
          if (i >= kWarpSize || row0 != Loop::warp_m()) in_.load(step_, n, unit, valid);
          apply(n, unit, valid, in_, patch + at);
        });
    });
  }

 private:
  /// Calls visit(row of the state, unit, valid units, index in the patch) for vector `i` of a patch
  /// that begins at row `row0` of the tile, if the vector is in bounds.
  template <class Visit>
  MP_DEVICE void visit_one(int i, int row0, const Visit &visit) const {
    // Adjacent lanes have adjacent rows: no bank conflicts, and two lanes fill a sector.
    const int row = i % wmma::kTile, in_tile = i / wmma::kTile * kVec;
    const int64_t n = coord_.m0 + row0 + row, unit = coord_.u0 + in_tile;
    const int valid = static_cast<int>(min_of<int64_t>(step_.hidden - unit, kVec));
    if (n < args_.rows && valid > 0) visit(n, unit, valid, row * Loop::kPatchPitch + in_tile);
  }

  const Args &args_;
  const FusedCoord &coord_;
  const Step &step_;
  Inputs in_;
};

/// Returns a launch of one block per tile of Work.
template <class Work, class Args>
LaunchShape shape_of_tiles(const Args &args) {
  return {.num_blocks = Work::Tiles::count(args),
          .num_threads = Work::Tile::kThreads,
          .smem_bytes = Work::kSmemBytes,
          .uses_pdl = true};
}

/// Runs Work in the kernel of a step.
template <class Work, class Args>
MP_DEVICE void run_fused_tile(const Args &args) {
  if constexpr (wmma::supported<half, Work::kSmemBytes>()) {
    wait_for_previous_kernel();
    MP_DYN_SHARED(std::byte, smem);
    Work(args).run(smem);
  }
}

// ---------------------------------------------------------------------------- forward

template <class Cell, int kM>
class FusedForwardBlock {
  static constexpr int kGates = Cell::kGates, kUnits = kFusedForwardUnits<Cell>;

 public:
  using Tiles = FusedTiles<kM, kUnits>;
  using Tile = FusedForwardTile<Cell, kM>;
  static constexpr size_t kSmemBytes = Tile::smem_bytes(true, true);

  MP_DEVICE explicit FusedForwardBlock(const FusedForward &args) : args_(args) {}

  MP_DEVICE void run(std::byte *smem) {
    Loop loop;
    UnitVectors<Loop, kUnits, Inputs, FusedForward, ForwardStep> vectors(args_, coord_, step_);
    loop.clear();
    vectors.before_products();
    with_half_type(step_.dtype, [&]<class T>(std::type_identity<T>) {
      if constexpr (wmma::supported<T, kSmemBytes>()) multiply<T>(smem, loop);
    });
    vectors.visit(smem, loop,
                  [&](int64_t n, int64_t unit, int valid, Inputs &in, const float *sums) {
                    float q[kGates][kVec];
                    unroll<kGates>([&](int g) { load_smem_run(q[g], sums + g * kUnits); });
                    forward_units(step_, n, unit, valid, in, q);
                  });
  }

 private:
  using Loop = WmmaLoop<Tile>;
  using Inputs = ForwardInputs<Cell, HalfAccess<false>>;

  template <class T>
  MP_DEVICE void multiply(std::byte *smem, Loop &loop) const {
    const int64_t hidden = step_.hidden, rows_left = step_.count - coord_.m0;
    const T *const h = static_cast<const T *>(step_.h.base) + coord_.m0 * step_.h.ld;
    const T *const w = static_cast<const T *>(args_.w_hh[coord_.direction]);
    MatrixLoader<T, true, kM, Tile::kK, Tile::kThreads> load_a(h, step_.h.ld, rows_left, hidden);
    GateLoader<T, kGates, kUnits, Tile> load_b(w, hidden, coord_.u0);
    loop.template multiply_add<T>(smem, load_a, load_b,
                                  rows_left > 0 ? ceil_div<int64_t>(hidden, Tile::kK) : 0);
  }

  const FusedForward &args_;
  const FusedCoord coord_ = Tiles::coord(args_, static_cast<uint32_t>(block_index()));
  const ForwardStep &step_ = args_.steps[coord_.direction];
};

template <class Cell, int kM>
MP_KERNEL((FusedForwardTile<Cell, kM>::kThreads), 1)
rnn_fused_forward(MP_PARAM(FusedForward) args) {
  run_fused_tile<FusedForwardBlock<Cell, kM>>(args);
}

}  // namespace

// Larger tiles halve the reads of W_hh; smaller ones distribute the step to twice as many SMs.
void launch_fused_forward(const Device &device, const FusedForward &args, mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    using Large = FusedForwardBlock<Cell, 64>;
    const bool is_large = Large::Tiles::count(args) >= device.num_sms;
    launch(
        "rnn_fused_forward", is_large ? rnn_fused_forward<Cell, 64> : rnn_fused_forward<Cell, 32>,
        device,
        is_large ? shape_of_tiles<Large>(args) : shape_of_tiles<FusedForwardBlock<Cell, 32>>(args),
        stream, args);
  });
}

// ---------------------------------------------------------------------------- backward

namespace {

template <class Cell, int kM, int kUnits>
class FusedBackwardBlock {
 public:
  using Tiles = FusedTiles<kM, kUnits>;
  using Tile = FusedBackwardTile<kM, kUnits>;
  static constexpr size_t kSmemBytes = Tile::smem_bytes(true, false);

  MP_DEVICE explicit FusedBackwardBlock(const FusedBackward &args) : args_(args) {}

  MP_DEVICE void run(std::byte *smem) {
    Loop loop;
    UnitVectors<Loop, kUnits, Inputs, FusedBackward, BackwardStep> vectors(args_, coord_, step_);
    loop.clear();
    vectors.before_products();
    with_half_type(step_.dtype, [&]<class T>(std::type_identity<T>) {
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
  using Loop = WmmaLoop<Tile>;
  using Inputs = BackwardInputs<Cell, HalfAccess<false>>;

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
  static MP_DEVICE auto weights(const T *w, int64_t hidden, int64_t unit, int64_t rows) {
    if constexpr (kUnits == 16)
      return NarrowLoader<T, Tile>(w, hidden, unit, rows);
    else
      return MatrixLoader<T, false, Tile::kK, kUnits, Tile::kThreads>(w + unit, hidden,
                                                                      hidden - unit, rows);
  }

  /// Adds the product of the gradients from `column` on and `count` rows of W_hh from `first` on.
  template <class T>
  MP_DEVICE void multiply(std::byte *smem, Loop &loop, int64_t column, int64_t first,
                          int64_t count) const {
    const RowMatrix &behind = args_.behind[coord_.direction];
    const int64_t hidden = step_.hidden,
                  rows_left = args_.count_behind[coord_.direction] - coord_.m0;
    if (behind.base == nullptr || rows_left <= 0) return;
    const T *const gradients = static_cast<const T *>(behind.base) + coord_.m0 * behind.ld + column;
    const T *const w = static_cast<const T *>(args_.w_hh[coord_.direction]) + first * hidden;
    MatrixLoader<T, true, kM, Tile::kK, Tile::kThreads> load_a(gradients, behind.ld, rows_left,
                                                               count);
    auto load_b = weights(w, hidden, coord_.u0, count);
    loop.template multiply_add<T>(smem, load_a, load_b, ceil_div<int64_t>(count, Tile::kK));
  }

  const FusedBackward &args_;
  const FusedCoord coord_ = Tiles::coord(args_, static_cast<uint32_t>(block_index()));
  const BackwardStep &step_ = args_.steps[coord_.direction];
};

template <class Cell, int kM, int kUnits>
MP_KERNEL((FusedBackwardTile<kM, kUnits>::kThreads), 1)
rnn_fused_backward(MP_PARAM(FusedBackward) args) {
  run_fused_tile<FusedBackwardBlock<Cell, kM, kUnits>>(args);
}

}  // namespace

// Tile sizes are selected like those of launch_fused_forward.
void launch_fused_backward(const Device &device, const FusedBackward &args, mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    using Large = FusedBackwardBlock<Cell, 64, 32>;
    const bool is_large = Large::Tiles::count(args) >= device.num_sms;
    launch("rnn_fused_backward",
           is_large ? rnn_fused_backward<Cell, 64, 32> : rnn_fused_backward<Cell, 32, 16>, device,
           is_large ? shape_of_tiles<Large>(args)
                    : shape_of_tiles<FusedBackwardBlock<Cell, 32, 16>>(args),
           stream, args);
  });
}

}  // namespace mp::MP_TARGET
