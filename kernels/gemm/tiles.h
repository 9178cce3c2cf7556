// Shapes of the GEMM tiles: known to the kernels at compile time, to selection as data.
#pragma once

#include <cstddef>

namespace mp {

/// A WMMA tile: kM x kN of D per block, kWarpM x kWarpN per warp, kK of k per stage.
template <int kM_, int kN_, int kWarpM_, int kWarpN_, int kStages_, int kMinBlocks_>
struct WmmaTile {
  static constexpr int kM = kM_, kN = kN_, kK = 32;
  static constexpr int kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kStages = kStages_;
  static constexpr int kMinBlocks = kMinBlocks_;  ///< per SM; bounds the registers
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kPad = 8;  ///< elements added to every row in smem

  /// Elements in smem of one stage of an operand that has `extent` rows or columns beside k.
  static constexpr int stage_elems(int extent, bool k_is_contiguous) {
    return k_is_contiguous ? extent * (kK + kPad) : kK * (extent + kPad);
  }
  static constexpr size_t smem_bytes(bool a_by_k, bool b_by_k) {
    return size_t{2} * kStages * (stage_elems(kM, a_by_k) + stage_elems(kN, b_by_k));
  }
};

// 64 x 64 per warp keeps the tensor cores busy: each fragment read from smem is used four times.
using WmmaTile256x128 = WmmaTile<256, 128, 64, 64, 3, 1>;
using WmmaTile128x128 = WmmaTile<128, 128, 64, 64, 3, 2>;  // 60 KiB: fits sm_75 too
using WmmaTile64x64 = WmmaTile<64, 64, 32, 32, 4, 4>;

/// A CUDA-core tile: every thread owns kPerThread x kPerThread elements of D.
template <int kM_, int kN_>
struct SimtTile {
  static constexpr int kM = kM_, kN = kN_, kK = 16;
  static constexpr int kPerThread = 8;
  static constexpr int kThreads = kM / kPerThread * (kN / kPerThread);
};

using SimtTile128x128 = SimtTile<128, 128>;
using SimtTile64x64 = SimtTile<64, 64>;

}  // namespace mp
