// Fused recurrent steps for Hopper, for FP16 and BF16: TMA, wgmma, and the cell as the epilogue, in
// one launch.
//
// The blocks of a cluster share one tile of 64 rows and split k (cluster_product.h).  Each block
// then sums some of the rows and runs the cell on them.
//
// The number of splits depends only on hidden_size and the device: a sequence has the same bits in
// any batch.
//
// Bytes per SM and step for 64 sequences on 132 SMs, LSTM of 1024 units: forward 96 KiB, plus 24
// KiB from other blocks of the cluster (with the tiles of fused_wmma.cu 192 KiB); backward 128
// KiB plus 14 KiB (384 KiB).
#include "kernels/rnn/fused.h"
#include "kernels/rnn/units.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

namespace {

/// Returns the tile of this block's cluster.
template <class Tile, class Args>
MP_DEVICE FusedCoord fused_coord(const Args &args) {
  const uint32_t block = static_cast<uint32_t>(block_index());
  return Tile::Tiles::coord(args, block / static_cast<uint32_t>(cluster_size()));
}

/// Returns a launch of one cluster per tile, with one block per part of k.
template <class Tile, class Args>
LaunchShape fused_launch_shape(const Device &device, const Args &args, int64_t k_tiles) {
  const int64_t in_row = Tile::Tiles::per_row(args.steps[0].hidden);
  int parts = kMaxClusterParts;
  while (parts > 1 && (parts > k_tiles || in_row * parts > device.num_sms)) parts /= 2;
  return {Tile::Tiles::count(args) * parts, Tile::kThreads, Tile::kSmemBytes, parts, true};
}

/// Returns a tensor map of a submatrix, with boxes of 64 x 64.
TensorMap fused_map(mp_dtype_t dtype, const RowMatrix &matrix, int64_t row, int64_t column,
                    int64_t rows, int64_t columns) {
  const auto *const base = static_cast<const uint16_t *>(matrix.base) + matrix.at(row, column);
  return tensor_map({.base = base,
                     .dtype = dtype,
                     .extent = {columns, rows, 1},
                     .stride = {matrix.ld, 0},
                     .box = {64, 64},
                     .swizzle_128 = true});
}

/// Runs Work in the kernel of a step.
template <class Work, class Args>
MP_DEVICE void run_fused_wgmma(const Args &args) {
  if constexpr (wgmma_supported<Work::Tile::kSmemBytes>()) {
    MP_DYN_SHARED(std::byte, smem);
    MP_SHARED(uint64_t, barriers, [Barriers<typename Work::Tile>::kCount]);
    const typename Work::Block block(smem, barriers);
    Work(args).run(block);
  }
}

// ---------------------------------------------------------------------------- forward

struct FusedWgmmaForward : FusedForward {
  TensorMap h_map[2];     ///< per direction: rows of the state
  TensorMap w_hh_map[2];  ///< per direction: one matrix per gate
};

/// Forward step.  A stage holds a k-tile of h, and of the W_hh rows of the units, gate by gate.
template <class Cell, bool kIsWhole>
class FusedWgmmaForwardStep {
  static constexpr int kGates = Cell::kGates;

 public:
  using Tile = FusedWgmmaForwardTile<Cell>;
  using Block = ClusterProduct<Tile>;

  static MP_HD int64_t k_tiles(const FusedForward &args) {
    return ceil_div<int64_t>(args.steps[0].hidden, Tile::kK);
  }

  MP_DEVICE explicit FusedWgmmaForwardStep(const FusedWgmmaForward &args) : args_(args) {}

  MP_DEVICE void run(const Block &block) const {
    const int64_t rows = args_.rows - coord_.m0, units = step_.hidden - coord_.u0;
    Inputs in;
    const auto load = [&](int row, int unit, int valid) {
      in.load(step_, coord_.m0 + row, coord_.u0 + unit, valid);
    };
    block.multiply(Layouts{}, step_.dtype, static_cast<int>(k_tiles(args_)), args_.follows_step,
                   *this, [&] { block.prepare_first(rows, units, load); });
    block.template visit<kGates>(
        true, rows, units, load, [&](int row, int unit, int valid, float(&q)[kGates][kVec]) {
          forward_units(step_, coord_.m0 + row, coord_.u0 + unit, valid, in, q);
        });
  }

  MP_DEVICE void rows(int tile, SmemAddress a, SmemAddress, SmemAddress full) const {
    tma_load(a, args_.h_map[coord_.direction], full, tile * Tile::kK, coord_.row(), 0);
  }
  MP_DEVICE void weights(int tile, SmemAddress, SmemAddress b, SmemAddress full) const {
    for (int gate = 0; gate < kGates; gate++)
      tma_load_before_wait(b + static_cast<SmemAddress>(gate) * kGateBytes,
                           args_.w_hh_map[coord_.direction], full, tile * Tile::kK, coord_.unit(),
                           gate);
  }

 private:
  using Inputs = ForwardInputs<Cell, HalfAccess<kIsWhole>>;
  using Layouts =
      WgmmaLayouts<StagedOperand<Major::k, Tile::kM>, StagedOperand<Major::k, Tile::kN>>;
  static constexpr SmemAddress kGateBytes = Tile::kUnits * Tile::kK * 2;

  const FusedWgmmaForward &args_;
  const FusedCoord coord_ = fused_coord<Tile>(args_);
  const ForwardStep &step_ = args_.steps[coord_.direction];
};

template <class Cell, bool kIsWhole>
MP_KERNEL(FusedWgmmaForwardTile<Cell>::kThreads, 1)
rnn_fused_wgmma_forward(MP_PARAM(FusedWgmmaForward) args) {
  run_fused_wgmma<FusedWgmmaForwardStep<Cell, kIsWhole>>(args);
}

FusedWgmmaForward with_maps(const FusedForward &args, int gates, int box_units) {
  FusedWgmmaForward mapped{};
  static_cast<FusedForward &>(mapped) = args;
  for (int64_t d = 0; d < args.directions; d++) {
    const ForwardStep &step = args.steps[d];
    mapped.h_map[d] = fused_map(step.dtype, step.h, 0, 0, args.rows, step.hidden);
    mapped.w_hh_map[d] = tensor_map({.base = args.w_hh[d],
                                     .dtype = step.dtype,
                                     .extent = {step.hidden, step.hidden, gates},
                                     .stride = {step.hidden, step.hidden * step.hidden},
                                     .box = {64, box_units},
                                     .swizzle_128 = true});
  }
  return mapped;
}

}  // namespace

void launch_fused_wgmma_forward(const Device &device, const FusedForward &args,
                                mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    using Work = FusedWgmmaForwardStep<Cell, true>;
    launch("rnn_fused_wgmma_forward",
           has_whole_vectors(args) ? rnn_fused_wgmma_forward<Cell, true>
                                   : rnn_fused_wgmma_forward<Cell, false>,
           device, fused_launch_shape<typename Work::Tile>(device, args, Work::k_tiles(args)),
           stream, with_maps(args, Cell::kGates, Work::Tile::kUnits));
  });
}

// ---------------------------------------------------------------------------- backward

namespace {

/// Arguments with tensor maps.  k runs over the gates: first gate_rows[0], then gate_rows[1], which
/// have separate maps.
struct FusedWgmmaBackward : FusedBackward {
  TensorMap gradients_map[2][2];  ///< per direction and part of k: rows of the next time step
  TensorMap w_hh_map[2][2];

  MP_HD bool is_multiplied(int64_t direction) const {
    return behind[direction].base != nullptr && count_behind[direction] > 0;
  }
};

/// Backward step.  A stage holds a k-tile of the gradients and 64 rows of W_hh, not transposed.
template <class Cell, bool kIsWhole>
class FusedWgmmaBackwardStep {
 public:
  using Tile = FusedWgmmaBackwardTile;
  using Block = ClusterProduct<Tile>;

  static MP_HD int64_t k_tiles(const FusedBackward &args) {
    return first_tiles(args) + ceil_div<int64_t>(args.gate_rows[1], Tile::kK);
  }

  MP_DEVICE explicit FusedWgmmaBackwardStep(const FusedWgmmaBackward &args) : args_(args) {}

  MP_DEVICE void run(const Block &block) const {
    const bool is_multiplied = args_.is_multiplied(coord_.direction);
    const int64_t rows = args_.rows - coord_.m0, units = step_.hidden - coord_.u0;
    Inputs in;
    const auto load = [&](int row, int unit, int valid) {
      in.load(step_, coord_.m0 + row, coord_.u0 + unit, valid);
    };
    const auto load_first = [&] { block.prepare_first(rows, units, load); };
    if (is_multiplied) {
      block.multiply(Layouts{}, step_.dtype, static_cast<int>(k_tiles(args_)), args_.follows_step,
                     *this, load_first);
    } else {
      wait_and_launch_dependents();
      load_first();
    }
    AmaxTracker watch(step_.found_inf, nullptr);
    block.template visit<1>(
        is_multiplied, rows, units, load, [&](int row, int unit, int valid, float(&sums)[1][kVec]) {
          backward_units(step_, coord_.m0 + row, coord_.u0 + unit, valid, in, sums[0], watch);
        });
    watch.finish();
  }

  /// Elements outside the next step's rows, or outside the gates, are loaded as zeros.
  MP_DEVICE void rows(int tile, SmemAddress a, SmemAddress, SmemAddress full) const {
    const Part part = part_of(tile);
    tma_load(a, args_.gradients_map[coord_.direction][part.index], full, part.k, coord_.row(), 0);
  }
  MP_DEVICE void weights(int tile, SmemAddress, SmemAddress b, SmemAddress full) const {
    const Part part = part_of(tile);
    tma_load_before_wait(b, args_.w_hh_map[coord_.direction][part.index], full, coord_.unit(),
                         part.k, 0);
  }

 private:
  using Inputs = BackwardInputs<Cell, HalfAccess<kIsWhole>>;
  using Layouts =
      WgmmaLayouts<StagedOperand<Major::k, Tile::kM>, StagedOperand<Major::mn, Tile::kN>>;

  struct Part {
    int index, k;
  };

  static MP_HD int64_t first_tiles(const FusedBackward &args) {
    return ceil_div<int64_t>(args.gate_rows[0], Tile::kK);
  }
  MP_DEVICE Part part_of(int tile) const {
    const int first = static_cast<int>(first_tiles(args_)), index = tile < first ? 0 : 1;
    return {index, (tile - index * first) * Tile::kK};
  }

  const FusedWgmmaBackward &args_;
  const FusedCoord coord_ = fused_coord<Tile>(args_);
  const BackwardStep &step_ = args_.steps[coord_.direction];
};

template <class Cell, bool kIsWhole>
MP_KERNEL(FusedWgmmaBackwardTile::kThreads, 1)
rnn_fused_wgmma_backward(MP_PARAM(FusedWgmmaBackward) args) {
  run_fused_wgmma<FusedWgmmaBackwardStep<Cell, kIsWhole>>(args);
}

FusedWgmmaBackward with_maps(const FusedBackward &args) {
  FusedWgmmaBackward mapped{};
  static_cast<FusedBackward &>(mapped) = args;
  for (int64_t d = 0; d < args.directions; d++) {
    const BackwardStep &step = args.steps[d];
    const RowMatrix &behind = args.behind[d],
                    weights{const_cast<void *>(args.w_hh[d]), step.hidden};
    if (!mapped.is_multiplied(d)) continue;
    const int64_t columns[2] = {0, step.last_slot}, rows[2] = {0, args.gate_rows[0]};
    for (int part = 0; part < 2; part++) {
      const int64_t count = args.gate_rows[part];
      if (count == 0) continue;
      mapped.gradients_map[d][part] =
          fused_map(step.dtype, behind, 0, columns[part], args.count_behind[d], count);
      mapped.w_hh_map[d][part] = fused_map(step.dtype, weights, rows[part], 0, count, step.hidden);
    }
  }
  return mapped;
}

}  // namespace

void launch_fused_wgmma_backward(const Device &device, const FusedBackward &args,
                                 mp_stream_t stream) {
  with_fused_cell(args.steps[0], [&](auto cell) {
    using Cell = decltype(cell);
    using Work = FusedWgmmaBackwardStep<Cell, true>;
    launch("rnn_fused_wgmma_backward",
           has_whole_vectors(args) ? rnn_fused_wgmma_backward<Cell, true>
                                   : rnn_fused_wgmma_backward<Cell, false>,
           device, fused_launch_shape<typename Work::Tile>(device, args, Work::k_tiles(args)),
           stream, with_maps(args));
  });
}

}  // namespace mp::MP_TARGET
