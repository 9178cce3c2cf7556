// Shared code of the fused WMMA steps: loaders of W_hh into shared memory, tile sizes, iteration
// over the units of a patch, launch.
#pragma once

#include "kernels/gemm/wmma_loop.h"
#include "kernels/rnn/fused.h"
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

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
        place_(Chunks::smem_offset()),
        vectorized_(is_aligned_16(w) && hidden % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const int valid = static_cast<int>(min_of<int64_t>(max_of<int64_t>(k_left_, 0), kVec));
    T *target = smem + place_;
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
  const int place_;
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
        place_(pin_to_register(row() * kPitch + col())),
        vectorized_(is_aligned_16(w) && hidden % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const int valid = rows_left_ > 0 ? valid_ : 0;
    T *const target = smem + place_;
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
  const int valid_, place_;
  const bool vectorized_;
};

// ---------------------------------------------------------------------------- tiles

/// Forward: kM rows; more gates leave room for fewer units.
template <class Cell>
constexpr int kFusedForwardUnits = Cell::kGates == 1 ? 32 : 16;
template <class Cell, int kM>
using FusedForwardTile = WmmaTile<kM, Cell::kGates * kFusedForwardUnits<Cell>, kM / 2,
                                  Cell::kGates * kFusedForwardUnits<Cell>, 6, 1>;
/// Backward: kM rows and kUnits units of dh.
template <int kM, int kUnits>
using FusedBackwardTile = WmmaTile<kM, kUnits, kM / 2, kUnits, 6, 1>;

/// Vectors of units of a warp, patch by patch.  The inputs of the first are loaded before the
/// products.
template <class Loop, int kUnits, class Inputs, class Args, class Step>
class UnitVectors {
 public:
  MP_DEVICE UnitVectors(const Args &args, const FusedCoord &place, const Step &step)
      : args_(args), place_(place), step_(step) {}

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
  /// Calls visit(row of the state, unit, valid units, place in the patch) for vector `i` of a patch
  /// that begins at row `row0` of the tile, if the vector is in bounds.
  template <class Visit>
  MP_DEVICE void visit_one(int i, int row0, const Visit &visit) const {
    // Adjacent lanes have adjacent rows: no bank conflicts, and two lanes fill a sector.
    const int row = i % wmma::kTile, in_tile = i / wmma::kTile * kVec;
    const int64_t n = place_.m0 + row0 + row, unit = place_.u0 + in_tile;
    const int valid = static_cast<int>(min_of<int64_t>(step_.hidden - unit, kVec));
    if (n < args_.rows && valid > 0) visit(n, unit, valid, row * Loop::kPatchPitch + in_tile);
  }

  const Args &args_;
  const FusedCoord &place_;
  const Step &step_;
  Inputs in_;
};

/// Launches one block per tile of Work.
template <class Work, class Args>
void launch_fused_tiles(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                        const Args &args, mp_stream_t stream) {
  launch(name, kernel, device,
         {.num_blocks = Work::Tiles::count(args),
          .num_threads = Work::Tile::kThreads,
          .smem_bytes = Work::kSmemBytes,
          .uses_pdl = true},
         stream, args);
}

}  // namespace mp::MP_TARGET
