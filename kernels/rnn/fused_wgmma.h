// Fused recurrent step for Hopper: TMA, wgmma, and the cell as the epilogue, in one launch.
//
// A step is bound by reading W_hh, so all SMs should share that read although units and rows are
// few.  Narrow tiles would achieve this but reread the rows for each tile.  Instead, the blocks of
// a cluster share one tile of 64 rows and split k.  Each block then sums some of the rows over all
// blocks, in the order of the splits and through distributed shared memory, and runs the cell on
// them.
//
// The number of splits depends only on hidden_size and the device: a sequence has the same bits in
// any batch.
//
// Bytes per SM and step for 64 sequences on 132 SMs, LSTM of 1024 units: forward 96 KiB, plus 24
// KiB from other blocks of the cluster (with the tiles of fused_wmma.cu 192 KiB); backward 128
// KiB plus 14 KiB (384 KiB).
#pragma once

#include "kernels/gemm/wgmma_mainloop.h"
#include "kernels/rnn/fused.h"
#include "kernels/simt/device.h"
#include "kernels/simt/half.h"
#include "kernels/simt/sm90_pdl.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Tile of one warpgroup, whose first warp also issues the loads: kN columns for kUnits units.
template <int kN_, int kUnits_, int kStages_>
struct FusedWgmmaTile {
  static constexpr int kM = 64, kN = kN_, kK = 64, kUnits = kUnits_;
  static constexpr int kStages = kStages_;
  static constexpr bool kPingPong = false;
  static constexpr int kConsumers = 1, kThreads = kWarpgroup, kRows = kM;
  static constexpr int kStagingBuffers = 0;  // no TMA stores
  static constexpr int kBytesA = kM * kK * 2, kBytesB = kN * kK * 2;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kPitch = kN + 8;  ///< columns of a row of sums
  static constexpr size_t kSmemBytes = size_t{1024} + kStages * kStageBytes;  // 1024 for alignment
  // Sums overwrite the stages.
  static_assert(kM * kPitch * int{sizeof(float)} <= kStages * kStageBytes);

  using Tiles = FusedTiles<kM, kUnits>;
};

/// Forward: 64 units, or fewer to fit two blocks per SM, one of them of the next step.
template <class Cell>
constexpr int kFusedWgmmaUnits = Cell::kGates == 4 ? 32 : 64;
template <class Cell>
using FusedWgmmaForwardTile =
    FusedWgmmaTile<Cell::kGates * kFusedWgmmaUnits<Cell>, kFusedWgmmaUnits<Cell>,
                   Cell::kGates == 1   ? 6
                   : Cell::kGates == 3 ? 3
                                       : 4>;
using FusedWgmmaBackwardTile = FusedWgmmaTile<64, 64, 6>;

/// Work of a block: the product of its part of k, then the sum over all parts.
///
/// W_hh is the larger operand, and no step writes it.  A step that follows another one therefore
/// loads it while that one is running (sm90_pdl.h); each leaves room on its SM for the next.
template <class A, class B, class Tile>
class FusedWgmmaBlock {
  using Multiplier = WgmmaMultiplier<Tile>;
  using Ring = typename Multiplier::Ring;
  using Accumulators = typename Multiplier::Accumulators;

 public:
  /// Called first, by all threads.  On return, the barriers of the cluster are initialized.
  MP_DEVICE FusedWgmmaBlock(std::byte *unaligned_smem, uint64_t *barrier_smem)
      : smem_(aligned_stages(unaligned_smem)), barriers_(shuffle(smem_address(barrier_smem), 0)) {
    if (thread_index() == 0) barriers_.init(1);
    cluster_sync_relaxed();
  }

  /// Multiplies this block's part of `k_tiles`, called by all threads; each part has at least one.
  ///
  ///     loads.weights(tile, b, full), loads.rows(tile, a, full)     issue the loads of a k-tile
  ///
  /// @param loads_before_wait  true if the previous kernel is a step, too
  template <class Loads>
  MP_DEVICE void multiply(mp_dtype_t dtype, int k_tiles, bool loads_before_wait,
                          const Loads &loads) const {
    const int first = k_tiles * cluster_rank() / cluster_size();
    const int end = k_tiles * (cluster_rank() + 1) / cluster_size();
    const SmemAddress stages = shuffle(smem_address(smem_), 0);
    const Multiplier multiplier(stages, barriers_, 1, barriers_.of_block(cluster_rank()));
    Ring filled, multiplied;
    int next = first + min_of(end - first, Tile::kStages);
    const auto load_weights = [&] {
      if (!issues_loads()) return;
      for (int tile = first; tile < next; tile++)
        multiplier.fill(filled, [&](SmemAddress, SmemAddress b, SmemAddress full) {
          loads.weights(tile, b, full);
        });
    };
    if (loads_before_wait) {
      load_weights();
      wait_and_launch_dependents();
    } else {
      wait_and_launch_dependents();
      load_weights();
    }
    if (issues_loads())
      for (int s = 0; s < next - first; s++)
        loads.rows(first + s, stages + static_cast<SmemAddress>(s * Tile::kStageBytes),
                   barriers_.full(s));
    warp_sync();
    Accumulators acc;
    const auto fill_one = [&] {
      if (next == end) return;
      if (issues_loads())
        multiplier.fill(filled, [&](SmemAddress a, SmemAddress b, SmemAddress full) {
          loads.weights(next, b, full);
          loads.rows(next, a, full);
        });
      next++;
      warp_sync();
    };
    with_half_type(dtype, [&](auto type) {
      multiplier.template multiply<typename decltype(type)::type>(
          WgmmaLayouts<A, B>{}, 0, end - first, multiplied, acc, fill_one, [] {});
    });
    block_sync();  // all warps have read the last stage
    store_accumulators<Tile::kPitch, Tile::kN / 2>(sums() + warp_index() * 16 * Tile::kPitch,
                                                   acc[0]);
  }

  /// Calls apply(row of the tile, unit of the tile, valid units, sums) for this block's part of the
  /// tile, limited to `rows` x `units`.  sums are 0 if !is_multiplied.
  template <int kGates, class Apply>
  MP_DEVICE void visit(bool is_multiplied, int64_t rows, int64_t units, Apply apply) const {
    constexpr int kRunsPerRow = Tile::kUnits / kVec;
    cluster_sync();
    const int parts = is_multiplied ? cluster_size() : 0;
    const int rows_here = Tile::kM / cluster_size(), first = cluster_rank() * rows_here;
    for (int i = thread_index(); i < rows_here * kRunsPerRow; i += Tile::kThreads) {
      const int row = first + i / kRunsPerRow, unit = i % kRunsPerRow * kVec;
      const int valid = static_cast<int>(min_of<int64_t>(units - unit, kVec));
      if (row >= rows || valid <= 0) continue;
      float sums[kGates][kVec] = {};
      for (int part = 0; part < parts; part++) {
        MP_UNROLL
        for (int g = 0; g < kGates; g++) add_run(sums[g], part, row, g * Tile::kUnits + unit);
      }
      apply(row, unit, valid, sums);
    }
    // Other blocks may still read this one's sums; apply() has used what this one read.
    cluster_sync_relaxed();
  }

 private:
  /// Returns true in the lane of the block that issues TMA loads.
  static MP_DEVICE bool issues_loads() { return is_elected_lane() && thread_index() < kWarpSize; }

  /// Adds kVec sums of block `part`, with the bank-conflict-free order of load_smem_run.
  MP_DEVICE void add_run(float (&sum)[kVec], int part, int row, int col) const {
    const SmemAddress run = in_block(smem_address(sums() + row * Tile::kPitch + col), part);
    const SmemAddress swapped = lane_index() / 4 % 2 * SmemAddress{sizeof(float) * kQuad};
    float one[kQuad], other[kQuad];
    load_cluster(one, run + swapped);
    load_cluster(other, run + (SmemAddress{sizeof(float) * kQuad} - swapped));
    MP_UNROLL
    for (int i = 0; i < kQuad; i++) {
      sum[i] += swapped != 0 ? other[i] : one[i];
      sum[kQuad + i] += swapped != 0 ? one[i] : other[i];
    }
  }

  MP_DEVICE float *sums() const { return reinterpret_cast<float *>(smem_); }

  std::byte *const smem_;
  const Barriers<Tile> barriers_;
};

/// Returns a launch of one cluster per tile, with one block per part of k.
template <class Tile, class Args>
LaunchShape fused_launch_shape(const Device &device, const Args &args, int64_t k_tiles) {
  constexpr int kMaxParts = 8;  // maximum cluster size on every device
  const int64_t in_row = Tile::Tiles::per_row(args.steps[0].hidden);
  int parts = kMaxParts;
  while (parts > 1 && (parts > k_tiles || in_row * parts > device.num_sms)) parts /= 2;
  return {Tile::Tiles::count(args) * parts, Tile::kThreads, Tile::kSmemBytes, parts, true};
}

/// Returns a tensor map of a submatrix, with boxes of 64 x 64.
inline TensorMap fused_map(mp_dtype_t dtype, const RowMatrix &matrix, int64_t row, int64_t column,
                           int64_t rows, int64_t columns) {
  const auto *const base = static_cast<const uint16_t *>(matrix.base) + matrix.at(row, column);
  return tensor_map({.base = base,
                     .dtype = dtype,
                     .extent = {columns, rows, 1},
                     .stride = {matrix.ld, 0},
                     .box = {64, 64},
                     .swizzle_128 = true});
}

}  // namespace mp::MP_TARGET
