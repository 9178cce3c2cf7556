// A step in one launch on Hopper: TMA, wgmma, and the cell as the epilogue of both.
//
// What a step has to wait for is the reading of W_hh, so all SMs are to share it, though there are few units and few
// rows.  Narrow tiles would do that and read the rows once more for each; here the blocks of a cluster have one
// tile of 64 rows in common, and a part of k each.  Then each block adds up some of the rows, in the order of the
// parts, from the shared memory of all of them, and runs the cell on these.
//
// How many parts there are follows from hidden_size and the device alone: a sequence has the same bits in any batch.
//
// Bytes through an SM and step, 64 sequences on 132 SMs, LSTM of 1024 units: forward 96 KiB and 24 KiB from its
// neighbours, with the tiles of fused_forward.cu 192 KiB; backward 128 and 14 KiB, and 384.
#pragma once

#include "kernels/gemm/wgmma_multiply.h"
#include "kernels/rnn/fused.h"
#include "kernels/simt/device.h"
#include "kernels/simt/dtype.h"
#include "kernels/simt/sm90_pdl.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// One warpgroup, whose first thread fills the stages too.  kN columns, of kUnits units.
template <int kN_, int kUnits_, int kStages_>
struct FusedWgmmaTile {
  static constexpr int kM = 64, kN = kN_, kK = 64, kUnits = kUnits_;
  static constexpr int kStages = kStages_;
  static constexpr bool kPingPong = false;
  static constexpr int kConsumers = 1, kThreads = kWarpgroup, kRows = kM;
  static constexpr int kStagingBuffers = 0;  // nothing leaves through TMA
  static constexpr int kBytesA = kM * kK * 2, kBytesB = kN * kK * 2;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kPitch = kN + 8;                                       ///< of the sums
  static constexpr size_t kSmemBytes = size_t{1024} + kStages * kStageBytes;  // 1024: to align
  // Sums lie where stages were.
  static_assert(kM * kPitch * int{sizeof(float)} <= kStages * kStageBytes);

  using Tiles = FusedTiles<kM, kUnits>;
};

/// Forward: 64 units, or as many as leave room for two blocks on an SM, that of the next step too.
template <class Cell>
constexpr int kFusedWgmmaUnits = Cell::kGates == 4 ? 32 : 64;
template <class Cell>
using FusedWgmmaForwardTile =
    FusedWgmmaTile<Cell::kGates * kFusedWgmmaUnits<Cell>, kFusedWgmmaUnits<Cell>,
                   Cell::kGates == 1   ? 6
                   : Cell::kGates == 3 ? 3
                                       : 4>;
using FusedWgmmaBackwardTile = FusedWgmmaTile<64, 64, 6>;

/// The inside of a block: the product of its part of k, and then the sums of all parts.
///
/// Of the two operands W_hh is the larger one, and no step writes it.  So a step that follows another one starts to load
/// it while that one is still at work (sm90_pdl.h); each leaves room on its SM for the next.
template <class A, class B, class Tile>
class FusedWgmmaBlock {
  using Multiplier = WgmmaMultiplier<Tile>;
  using Ring = typename Multiplier::Ring;
  using Accumulators = typename Multiplier::Accumulators;

 public:
  /// Every thread says it first: smem is there for the whole cluster when it returns.
  MP_DEVICE FusedWgmmaBlock(std::byte *unaligned_smem, uint64_t *barrier_smem)
      : smem_(aligned_stages(unaligned_smem)), barriers_(shuffle(smem_address(barrier_smem), 0)) {
    if (thread_index() == 0) barriers_.init(1);
    cluster_sync();
  }

  /// By all threads: this block's part of `k_tiles`, of which each part has one at least.
  ///
  ///     loads.weights(tile, b, full), loads.rows(tile, a, full)     start the copies of a k-tile
  ///
  /// @param loads_before_wait  whether the kernel before this one is a step, too
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
      if (thread_index() != 0) return;
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
    if (thread_index() == 0)
      for (int s = 0; s < next - first; s++)
        loads.rows(first + s, stages + static_cast<SmemAddress>(s * Tile::kStageBytes),
                   barriers_.full(s));
    warp_sync();
    Accumulators acc;
    const auto fill_one = [&] {
      if (next == end) return;
      if (thread_index() == 0)
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
    block_sync();  // the last stage has been read by all warps
    store_accumulators<Tile::kPitch, Tile::kN / 2>(sums() + warp_index() * 16 * Tile::kPitch,
                                                   acc[0]);
  }

  /// apply(row of the tile, unit of it, valid units, sums) for what lies in the state, `rows` by `units` from the
  /// tile's corner on, and falls to this block; the sums are zeros where nothing was multiplied.
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
    cluster_sync();  // other blocks may still read this one's sums
  }

 private:
  /// As load_smem_run, of the block that has that part.
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

/// A cluster for every tile, and a block of it for every part of k.
template <class Tile, class Args>
LaunchShape fused_launch_shape(const Device &device, const Args &args, int64_t k_tiles) {
  constexpr int kMaxParts = 8;  // what a cluster may have on every device
  const int64_t in_row = Tile::Tiles::per_row(args.steps[0].hidden);
  int parts = kMaxParts;
  while (parts > 1 && (parts > k_tiles || in_row * parts > device.num_sms)) parts /= 2;
  return {Tile::Tiles::count(args) * parts, Tile::kThreads, Tile::kSmemBytes, parts, true};
}

/// Of a part of a matrix, in boxes of 64 x 64.
inline TensorMap fused_map(mp_dtype_t dtype, const Rows &matrix, int64_t row, int64_t column,
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
