// Product of a tile whose k is divided among the blocks of a cluster (sm_90a).
//
// A product of few rows is bound by reading its other operand, the weights.  All SMs should share
// that read although there are few tiles.  Narrow tiles would achieve this but reread the rows for
// each tile.  Instead, the blocks of a cluster compute one tile and split k.  Each block then sums
// some rows of the tile over all blocks, in the order of the parts and through distributed shared
// memory.
//
// Users: fused recurrent steps (kernels/rnn/fused_wgmma.cu) and thin products (gemm_thin.cu).
#pragma once

#include "kernels/gemm/wgmma_mainloop.h"
#include "kernels/simt/half.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Work of a block: the product of its part of k, then the sum over all parts.
///
/// The weights are the larger operand.  If the previous kernel does not write them, their first
/// loads are issued while that kernel is running (sm90_tma.h).
template <class Tile>
class ClusterProduct {
  using Multiplier = WgmmaMultiplier<Tile>;
  using Ring = typename Multiplier::Ring;
  using Accumulators = typename Multiplier::Accumulators;

 public:
  /// Called first, by all threads.  On return, the barriers of the cluster are initialized.
  MP_DEVICE ClusterProduct(std::byte *unaligned_smem, uint64_t *barrier_smem)
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
  /// @param prepare  called by all threads while the first loads are in flight
  template <class Layouts, class Loads, class Prepare>
  MP_DEVICE void multiply(Layouts layouts, mp_dtype_t dtype, int k_tiles, bool loads_before_wait,
                          const Loads &loads, const Prepare &prepare) const {
    const auto begin_of = [&](int rank) {  // division of unsigned integers is shorter
      return static_cast<int>(static_cast<uint32_t>(k_tiles * rank) /
                              static_cast<uint32_t>(cluster_size()));
    };
    const int first = begin_of(cluster_rank()), end = begin_of(cluster_rank() + 1);
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
    prepare();
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

  /// Calls prepare(row, column, valid columns) for the first vector of this thread, if it has one:
  /// kVec columns of this block's rows of sums, limited to `rows` x `columns`.
  template <class Prepare>
  MP_DEVICE void prepare_first(int64_t rows, int64_t columns, const Prepare &prepare) const {
    const Vector own = vector_of(thread_index(), rows, columns);
    if (own.valid > 0) prepare(own.row, own.column, own.valid);
  }

  /// Calls apply(row, column, valid columns, sums) for all vectors of this thread.  Calls prepare
  /// before apply, except for the first vector.  A row consists of kGroups groups of Tile::kColumns
  /// columns.  sums are 0 if !is_multiplied.
  template <int kGroups, class Prepare, class Apply>
  MP_DEVICE void visit(bool is_multiplied, int64_t rows, int64_t columns, const Prepare &prepare,
                       const Apply &apply) const {
    cluster_sync();
    const int parts = is_multiplied ? cluster_size() : 0;
    for (int i = thread_index();; i += Tile::kThreads) {
      const Vector own = vector_of(i, rows, columns);
      if (own.row >= Tile::kSumRows) break;
      if (own.valid <= 0) continue;
      if (i >= Tile::kThreads) prepare(own.row, own.column, own.valid);
      float sums[kGroups][kVec] = {};
      add_parts(sums, parts, own.row, own.column);
      apply(own.row, own.column, own.valid, sums);
    }
    // Other blocks may still read this one's sums; apply() has used what this one read.
    warp_sync();  // the barrier requires converged warps
    cluster_sync_relaxed();
  }

 private:
  /// Returns true in the lane of the block that issues TMA loads.
  static MP_DEVICE bool issues_loads() { return is_elected_lane() && thread_index() < kWarpSize; }

  struct Vector {
    int row, column, valid;
  };

  /// Blocks have every cluster_size()-th row, so that they share the rows of a small batch.
  static MP_DEVICE Vector vector_of(int i, int64_t rows, int64_t columns) {
    constexpr int kVectorsPerRow = Tile::kColumns / kVec;
    const int row = i / kVectorsPerRow * cluster_size() + cluster_rank();
    const int column = i % kVectorsPerRow * kVec;
    const bool has_row = row < min_of<int64_t>(rows, Tile::kSumRows);
    return {row, column, has_row ? static_cast<int>(min_of<int64_t>(columns - column, kVec)) : 0};
  }

  /// Adds the sums of the first `parts` blocks in order, several of which are in flight.  As in
  /// load_smem_run, half of the lanes load the second quad of a vector first.
  template <int kGroups>
  MP_DEVICE void add_parts(float (&sums)[kGroups][kVec], int parts, int row, int column) const {
    constexpr int kInFlight = min_of(4, 6 / kGroups);  // limited by registers
    constexpr SmemAddress kQuadBytes = sizeof(float) * kQuad;
    const SmemAddress swapped = lane_index() / 4 % 2 * kQuadBytes;
    const SmemAddress vector = smem_address(this->sums() + row * Tile::kPitch + column) + swapped;
    const auto add = [&](int first, auto count) {
      constexpr int kCount = decltype(count)::value;
      float quads[kCount][kGroups][2][kQuad];
      MP_UNROLL
      for (int p = 0; p < kCount; p++) {
        const SmemAddress there = in_block(vector, first + p);
        MP_UNROLL
        for (int g = 0; g < kGroups; g++) {
          const SmemAddress one = there + g * Tile::kColumns * SmemAddress{sizeof(float)};
          load_cluster(quads[p][g][0], one);
          load_cluster(quads[p][g][1], one + (kQuadBytes - 2 * swapped));
        }
      }
      unroll<kCount, kGroups, kVec>(
          [&](int p, int g, int i) { sums[g][i] += quads[p][g][i / kQuad][i % kQuad]; });
    };
    int part = 0;
    MP_NO_UNROLL
    for (; part + kInFlight <= parts; part += kInFlight)
      add(part, std::integral_constant<int, kInFlight>{});
    MP_NO_UNROLL
    for (; part < parts; part++) add(part, std::integral_constant<int, 1>{});
    unroll<kGroups, kQuad>([&](int g, int i) {
      const float one = sums[g][i], other = sums[g][kQuad + i];
      sums[g][i] = swapped != 0 ? other : one;
      sums[g][kQuad + i] = swapped != 0 ? one : other;
    });
  }

  MP_DEVICE float *sums() const { return reinterpret_cast<float *>(smem_); }

  std::byte *const smem_;
  const Barriers<Tile> barriers_;
};

}  // namespace mp::MP_TARGET
