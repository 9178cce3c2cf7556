// Product of a tile whose k is divided among the blocks of a cluster (sm_90a).
//
// A product of few rows is bound by reading its other operand, the weights.  All SMs should share
// that read although there are few tiles.  Narrow tiles would achieve this but reread the rows for
// each tile.  Instead, the blocks of a cluster compute one tile and split k.  Each block then sums
// some rows of the tile over all blocks, in the order of the parts and through distributed shared
// memory.
//
// Users: fused recurrent steps (kernels/rnn/fused_wgmma.h) and thin products (gemm_thin.cu).
#pragma once

#include "kernels/gemm/wgmma_mainloop.h"
#include "kernels/simt/half.h"
#include "kernels/simt/sm90_pdl.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Work of a block: the product of its part of k, then the sum over all parts.
///
/// The weights are the larger operand.  If the previous kernel does not write them, their first
/// loads are issued while that kernel is running (sm90_pdl.h).
template <class Tile>
class WgmmaClusterBlock {
  using Multiplier = WgmmaMultiplier<Tile>;
  using Ring = typename Multiplier::Ring;
  using Accumulators = typename Multiplier::Accumulators;

 public:
  /// Called first, by all threads.  On return, the barriers of the cluster are initialized.
  MP_DEVICE WgmmaClusterBlock(std::byte *unaligned_smem, uint64_t *barrier_smem)
      : smem_(aligned_stages(unaligned_smem)), barriers_(shuffle(smem_address(barrier_smem), 0)) {
    if (thread_index() == 0) barriers_.init(1);
    cluster_sync_relaxed();
  }

  /// Multiplies this block's part of `k_tiles`, called by all threads; each part has at least one.
  ///
  ///     loads.weights(tile, a, b, full)     issues the loads of the weights of a k-tile,
  ///     loads.rows(tile, a, b, full)        and those of its rows
  ///
  /// @param loads_before_wait  true if the previous kernel does not write the weights and calls
  ///     wait_and_launch_dependents
  template <class Layouts, class Loads>
  MP_DEVICE void multiply(Layouts layouts, mp_dtype_t dtype, int k_tiles, bool loads_before_wait,
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
        multiplier.fill(filled, [&](SmemAddress a, SmemAddress b, SmemAddress full) {
          loads.weights(tile, a, b, full);
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
      for (int s = 0; s < next - first; s++) {
        const SmemAddress a = stages + static_cast<SmemAddress>(s * Tile::kStageBytes);
        loads.rows(first + s, a, a + Tile::kBytesA, barriers_.full(s));
      }
    warp_sync();
    Accumulators acc;
    const auto fill_one = [&] {
      if (next == end) return;
      if (issues_loads())
        multiplier.fill(filled, [&](SmemAddress a, SmemAddress b, SmemAddress full) {
          loads.weights(next, a, b, full);
          loads.rows(next, a, b, full);
        });
      next++;
      warp_sync();
    };
    with_half_type(dtype, [&](auto type) {
      multiplier.template multiply<typename decltype(type)::type>(layouts, 0, end - first,
                                                                  multiplied, acc, fill_one, [] {});
    });
    block_sync();  // all warps have read the last stage
    if constexpr (Tile::kTransposed)
      store_transposed_accumulators<Tile::kPitch, Tile::kN / 2>(sums() + warp_index() * 16, acc[0]);
    else
      store_accumulators<Tile::kPitch, Tile::kN / 2>(sums() + warp_index() * 16 * Tile::kPitch,
                                                     acc[0]);
  }

  /// Calls apply(row, column, valid columns, sums) for this block's rows of sums, limited to
  /// `rows` x `columns`.  A row consists of kGroups groups of Tile::kColumns columns.  sums are 0
  /// if !is_multiplied.
  template <int kGroups, class Apply>
  MP_DEVICE void visit(bool is_multiplied, int64_t rows, int64_t columns, Apply apply) const {
    constexpr int kRunsPerRow = Tile::kColumns / kVec;
    cluster_sync();
    const int parts = is_multiplied ? cluster_size() : 0;
    const int rows_here = Tile::kSumRows / cluster_size(), first = cluster_rank() * rows_here;
    for (int i = thread_index(); i < rows_here * kRunsPerRow; i += Tile::kThreads) {
      const int row = first + i / kRunsPerRow, column = i % kRunsPerRow * kVec;
      const int valid = static_cast<int>(min_of<int64_t>(columns - column, kVec));
      if (row >= rows || valid <= 0) continue;
      float sums[kGroups][kVec] = {};
      for (int part = 0; part < parts; part++) {
        MP_UNROLL
        for (int g = 0; g < kGroups; g++) add_run(sums[g], part, row, g * Tile::kColumns + column);
      }
      apply(row, column, valid, sums);
    }
    // Other blocks may still read this one's sums; apply() has used what this one read.
    warp_sync();  // the barrier requires converged warps
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

}  // namespace mp::MP_TARGET
