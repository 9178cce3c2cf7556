// Tiles of the attention kernels on tensor cores (mma.h), for FP16 and BF16.
//
// A block of four warps computes a tile of rows; each warp has kRowTiles x 16 of them, and all
// columns of a tile of scores.  So the softmax of a row needs only the four lanes that share it,
// and p and ds stay in registers between two products:
//
//     copy_rows      rows of a tensor to shared memory, asynchronously
//     dot_products   scores or dp of a tile: the rows of two tensors in shared memory
//     add_weighted   sums += weights x rows in shared memory; the weights are the accumulators of
//                    dot_products, rounded to the type
//     store_sums     sums to gmem, through shared memory, in units of 16 bytes
//
// Row r of a lane, of 2 kRowTiles, is row 8 r + lane / 4 of its warp.
//
// Instances for head dimensions up to 64, 128 and 256 are compiled.  Other dimensions use the next
// larger one, which wastes registers and shared memory, but no copies or products.
#pragma once

#include "kernels/attention/attention_units.h"
#include "kernels/simt/mma.h"
#include "kernels/simt/sm80.h"

namespace mp::MP_TARGET {

constexpr int kAttentionWarps = kAttentionThreads / kWarpSize;

/// Tile of scores or of an output of a warp.
template <int kRowTiles, int kColumnTiles>
using MmaSums = mma::Accumulator[kRowTiles][kColumnTiles];

template <int kRowTiles>
constexpr int kMmaRows = kAttentionWarps *kRowTiles *mma::kRows;  // of a block

/// Returns the first row of this warp.
template <int kRowTiles>
MP_DEVICE int first_warp_row() {
  return warp_index() * kRowTiles * mma::kRows;
}
/// Returns row r of this lane, in the tile of the block.
template <int kRowTiles>
MP_DEVICE int lane_row(int r) {
  return first_warp_row<kRowTiles>() + 8 * r + mma::fragment_row();
}

// ---------------------------------------------------------------------------- shared memory

/// Rows of kDim elements in shared memory.  In each 128 bytes, the 16-byte unit u is stored at
/// u ^ (row % 8), so that the same unit of eight rows is in different banks.
template <class T, int kDim>
struct MmaTile {
  static constexpr int kUnits = kDim / mma::kUnit;
  T *first;

  MP_DEVICE T *unit(int row, int u) const {
    return first + row * kDim + (u ^ (row % 8)) * mma::kUnit;
  }

  /// Starts to copy kRows rows from x0 on.  Rows past the end and columns up to a multiple of 16
  /// become zeros: 0 times another sequence could be NaN.
  template <int kRows>
  MP_DEVICE void copy_rows(const HeadRows<const T> &from, int x0) const {
    constexpr int kStep = kAttentionThreads / kUnits;
    const int u = thread_index() % kUnits, row0 = thread_index() / kUnits;
    if (u >= ceil_div(from.width, mma::kDepth) * (mma::kDepth / mma::kUnit)) return;
    const int valid = u * mma::kUnit < from.width ? from.rows - x0 : 0;
    const T *source = from.row(x0 + row0) + u * mma::kUnit;
    MP_NO_UNROLL
    for (int row = row0; row < kRows; row += kStep) {
      copy_async_16(unit(row, u), source, row < valid ? 16 : 0);
      source += kStep * from.stride;
    }
  }
};

// ---------------------------------------------------------------------------- products

// The first unit u of a product is even, so u ^ 1 is u + 1.

/// Returns lane_index().  The addresses that derive from it are recomputed for each tile: otherwise
/// the compiler keeps those of all units in registers.
MP_DEVICE int lane_for_addresses() {
  return pin_to_register(lane_index());
}

template <int kRowTiles, int kColumnTiles>
MP_DEVICE void clear(MmaSums<kRowTiles, kColumnTiles> &sums) {
  unroll<kRowTiles, kColumnTiles, 4>([&](int i, int j, int e) { sums[i][j][e] = 0.0f; });
}

/// dots = the products of `width` elements of the rows of this warp and the rows of `columns`.
template <int kRowTiles, int kColumnTiles, class T, int kDim>
MP_DEVICE void dot_products(MmaSums<kRowTiles, kColumnTiles> &dots, const MmaTile<T, kDim> &rows,
                            const MmaTile<T, kDim> &columns, int width) {
  clear(dots);
  const int lane = lane_for_addresses();
  MP_UNROLL
  for (int u = 0; u < rows.kUnits; u += 2) {
    if (u * mma::kUnit >= width) break;
    mma::Pairs<T> a[kRowTiles];
    MP_UNROLL
    for (int i = 0; i < kRowTiles; i++)
      mma::load(a[i], lane, [&](int l) {
        return rows.unit(first_warp_row<kRowTiles>() + i * mma::kRows + l % 16, u ^ l / 16);
      });
    MP_UNROLL
    for (int j = 0; j < kColumnTiles; j += 2) {
      mma::Pairs<T> b;
      mma::load(b, lane, [&](int l) {
        return columns.unit(j * mma::kColumns + l / 16 * 8 + l % 8, u ^ l / 8 % 2);
      });
      MP_UNROLL
      for (int i = 0; i < kRowTiles; i++) {
        mma::multiply_add(dots[i][j], a[i], b, 0);
        mma::multiply_add(dots[i][j + 1], a[i], b, 1);
      }
    }
  }
}

/// sums += weights, rounded to T, times the first `width` elements of the rows of `values`.
template <int kRowTiles, int kColumnTiles, class T, int kDim>
MP_DEVICE void add_weighted(MmaSums<kRowTiles, kDim / mma::kColumns> &sums,
                            MmaSums<kRowTiles, kColumnTiles> &weights,
                            const MmaTile<T, kDim> &values, int width) {
  const int lane = lane_for_addresses();
  MP_UNROLL
  for (int j = 0; j < kColumnTiles; j += 2) {
    mma::Pairs<T> a[kRowTiles];
    unroll<kRowTiles, 4>([&](int i, int pair) {
      mma::Accumulator &weight = weights[i][j + pair / 2];
      a[i].set(pair, weight[pair % 2 * 2], weight[pair % 2 * 2 + 1]);
    });
    MP_UNROLL
    for (int u = 0; u < values.kUnits; u += 2) {
      if (u * mma::kUnit >= width) break;
      mma::Pairs<T> b;
      mma::load_transposed(
          b, lane, [&](int l) { return values.unit(j * mma::kColumns + l % 16, u ^ l / 16); });
      MP_UNROLL
      for (int i = 0; i < kRowTiles; i++) {
        mma::multiply_add(sums[i][u], a[i], b, 0);
        mma::multiply_add(sums[i][u + 1], a[i], b, 1);
      }
    }
  }
}

// ---------------------------------------------------------------------------- rows and elements

/// Reduction over the four lanes that share a row, in a fixed order.
template <class Op>
MP_DEVICE float reduce_row(float value, Op op) {
  value = op(value, shuffle_xor(value, 1));
  return op(value, shuffle_xor(value, 2));
}

/// Replaces scores of the tile at (x0, y0) that `band` hides.
template <int kRowTiles, int kColumnTiles>
MP_DEVICE void hide(MmaSums<kRowTiles, kColumnTiles> &scores, const Band &band, int x0, int y0,
                    float value) {
  const int y = y0 + mma::fragment_column();
  MP_UNROLL
  for (int r = 0; r < 2 * kRowTiles; r++) {
    const int x = x0 + lane_row<kRowTiles>(r);
    const int first = band.first(x), end = band.end(x);
    unroll<kColumnTiles, 2>([&](int j, int c) {
      const int column = y + j * mma::kColumns + c;
      if (column < first || column >= end) scores[r / 2][j][r % 2 * 2 + c] = value;
    });
  }
}

/// Returns the elements of two adjacent fragments of scores that dropout clears: bit 4 s + e for
/// element e of fragment s.
/// @param x, y     first row and column of the fragments
/// @tparam kByKey  rows are keys and columns queries
template <bool kByKey>
MP_DEVICE uint32_t dropped_elements(const ScoreDropout &dropout, int x, int y) {
  uint32_t mask = 0;
  if (!dropout.is_enabled()) return mask;
  const auto row = static_cast<uint32_t>(x + mma::fragment_row());
  const auto column = static_cast<uint32_t>(y + mma::fragment_column());
  const PhiloxWords bytes = kByKey ? dropout.bytes_of(column, row) : dropout.bytes_of(row, column);
  const bool is_odd = row % 2 != 0;
  unroll<2, 4>([&](int s, int e) {
    const int h = e / 2, c = e % 2;  // row + 8 h, column + 8 s + c
    const bool drops = kByKey
                           ? dropout.drops(bytes.x[2 * s + c], 2 * h + (is_odd ? 1 : 0))
                           : dropout.drops(is_odd ? bytes.x[2 * h + 1] : bytes.x[2 * h], 2 * s + c);
    mask |= static_cast<uint32_t>(drops) << (4 * s + e);
  });
  return mask;
}

/// Calls f(tile of rows, tile of columns, element, is dropped) for the scores of this lane.
template <int kRowTiles, int kColumnTiles, bool kByKey, class F>
MP_DEVICE void for_each_score(const ScoreDropout &dropout, int x0, int y0, const F &f) {
  MP_UNROLL
  for (int i = 0; i < kRowTiles; i++) {
    MP_UNROLL
    for (int j = 0; j < kColumnTiles; j += 2) {
      const uint32_t dropped = dropped_elements<kByKey>(
          dropout, x0 + first_warp_row<kRowTiles>() + i * mma::kRows, y0 + j * mma::kColumns);
      unroll<8>([&](int e) { f(i, j + e / 4, e % 4, (dropped >> e & 1) != 0); });
    }
  }
}

// ---------------------------------------------------------------------------- outputs

/// Stores factor x sums of the tile of rows at x0.  Rows that see nothing become 0, even if
/// the sums, which contain 0 times hidden values, are NaN.
/// @param smem  kMmaRows rows; each warp uses only its own, so warp barriers suffice
template <int kRowTiles, class T, int kDim>
MP_DEVICE void store_sums(const HeadRows<T> &out, int x0,
                          MmaSums<kRowTiles, kDim / mma::kColumns> &sums, float factor,
                          const Band &band, AmaxTracker &tracker, const MmaTile<T, kDim> &smem) {
  constexpr int kUnits = kDim / mma::kUnit, kRowStep = max_of(kWarpSize / kUnits, 1);
  warp_sync();  // all lanes have read the rows
  MP_UNROLL
  for (int r = 0; r < 2 * kRowTiles; r++) {
    const int x = x0 + lane_row<kRowTiles>(r);
    const bool exists = x < out.rows, is_empty = band.is_empty(x);
    MP_UNROLL
    for (int u = 0; u < kUnits; u++) {
      if (u * mma::kUnit >= out.width) break;
      mma::Accumulator &sum = sums[r / 2][u];
      float values[2];
      unroll<2>([&](int c) { values[c] = is_empty ? 0.0f : factor * sum[r % 2 * 2 + c]; });
      mma::store_pair(smem.unit(lane_row<kRowTiles>(r), u) + mma::fragment_column(), values[0],
                      values[1]);
      if (exists) tracker.see<T>(values, 2);
    }
  }
  warp_sync();
  const int u = lane_index() % kUnits;
  if (u * mma::kUnit >= out.width) return;
  for (int row = lane_index() / kUnits; row < kRowTiles * mma::kRows; row += kRowStep) {
    const int in_tile = first_warp_row<kRowTiles>() + row;
    if (x0 + in_tile >= out.rows) break;
    store_pack(out.row(x0 + in_tile) + u * mma::kUnit,
               *reinterpret_cast<const Pack<T, mma::kUnit> *>(smem.unit(in_tile, u)));
  }
}

// ---------------------------------------------------------------------------- instances

/// False if the target architecture cannot run an instance, whose body is then empty.
template <class T, class Smem>
MP_HD constexpr bool is_mma_supported() {
  constexpr size_t kStaticBytes = 1024;  // the unit and reductions, up to the alignment of Smem
  return mma::supported<T, sizeof(Smem) + kStaticBytes>();
}

/// Calls f<T, kDim, kIsSmall>() for the instance of a call, an MmaInstance.
template <class F>
void with_mma_instance(const mp_attention_desc_t &d, const Device &device, const F &f) {
  const MmaInstance instance = mma_instance(d, device);
  with_half_type(d.dtype, [&]<class T>(std::type_identity<T>) {
    if (instance.dim == 64) return f.template operator()<T, 64, false>();
    if (instance.dim == 256) return f.template operator()<T, 256, false>();
    if constexpr (kFloatType<T>.tensor_core_arch < 80) {
      if (instance.is_small) return f.template operator()<T, 128, true>();
    }
    f.template operator()<T, 128, false>();
  });
}

}  // namespace mp::MP_TARGET
