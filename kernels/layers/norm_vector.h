// Threads that share a vector, in normalization and softmax; common parts of layer and RMS
// normalization: the layout of a vector in memory, dropout, and dispatch by size.
//
// A vector of up to 256 columns belongs to half a warp, one of up to 1024 columns to a warp, a
// longer one to a block.  Its elements stay in registers, so each tensor is read once.  Vectors
// that exceed the registers of a block are read again by each sweep over their tiles, from L2.
//
// Kernels read the types at run time: bytes bound the speed, and instances for each type would take
// twice as much code.
#pragma once

#include "kernels/layers/layer_args.h"
#include "kernels/simt/random.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// kSize threads that share a vector.  Each has up to kNumRuns runs of kVec adjacent columns; runs
/// of adjacent threads are contiguous.
template <int kTeamSize, int kNumRuns>
struct Team {
  static constexpr int kSize = kTeamSize, kRuns = kNumRuns;
  static constexpr int kThreads = max_of(kSize, 128);  ///< threads of a block
  static constexpr int kTeams = kThreads / kSize;      ///< teams of a block
  static constexpr int kStep = kSize * kVec;           ///< columns from run to run
  static constexpr int kTile = kStep * kRuns;          ///< columns in registers

  static MP_DEVICE int index() { return thread_index() / kSize; }
  static MP_DEVICE int rank() { return thread_index() % kSize; }
  static MP_DEVICE int column(int run) { return run * kStep + rank() * kVec; }
  /// Number of elements of a run that belong to a tile of `columns` columns.
  static MP_DEVICE int valid(int columns, int run) {
    return max_of(min_of(columns - column(run), kVec), 0);
  }

  /// Reduces over the team, in a fixed order.  All threads of the team's warps must call it.
  template <class Op>
  static MP_DEVICE float reduce(float value, Op op = {}) {
    if constexpr (kSize > kWarpSize) {
      return block_reduce<kThreads, Op>(value);
    } else if constexpr (kSize == kWarpSize) {
      return warp_reduce<Op>(value);
    } else {
      MP_UNROLL
      for (int distance = kSize / 2; distance > 0; distance /= 2)
        value = op(value, shuffle_xor(value, distance));
      return value;
    }
  }
  static MP_DEVICE float sum(float value) { return reduce<Sum>(value); }

  /// Returns the value of the first thread.  A call of sum() must separate two calls.
  static MP_DEVICE float first(float value) {
    if constexpr (kSize > kWarpSize) {
      MP_SHARED(float, of_first, [1]);
      if (rank() == 0) of_first[0] = value;
      block_sync();
      return of_first[0];
    } else {
      return shuffle(value, lane_index() - lane_index() % kSize);
    }
  }
};

/// Elements of a thread in a tile.
template <class Team>
using TileElements = float[Team::kRuns][kVec];

/// Calls visit(run, number of valid elements) for the runs of this thread.
template <class Team, class Visit>
MP_DEVICE void for_each_run(int columns, Visit visit) {
  unroll<Team::kRuns>([&](int run) { visit(run, Team::valid(columns, run)); });
}

/// Returns the sum of the kVec independent sums of a thread.
MP_DEVICE float sum_of(const float (&x)[kVec]) {
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/// Loads a tile of `columns` columns; elements past its end become 0.
template <class Team, class T>
MP_DEVICE void load_tile(TileElements<Team> &x, const T *tile, int columns) {
  if (columns % kVec == 0) {
    load_rows(x, tile + Team::column(0), Team::kStep, Team::kStep, columns - Team::column(0), kVec);
    return;
  }
  for_each_run<Team>(
      columns, [&](int run, int valid) { load_vector(x[run], tile + Team::column(run), valid); });
}

/// Same for a run-time type; `index` in elements.
template <class Team>
MP_DEVICE void load_tile(TileElements<Team> &x, mp_dtype_t dtype, const void *base, int64_t index,
                         int columns) {
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    load_tile<Team>(x, static_cast<const T *>(base) + index, columns);
  });
}

/// Kernel arguments: strides are not 0.
struct NormKernelArgs {
  NormArgs call;
  int64_t vectors = call.num_vectors();
  float keep_factor = keep_factor_of(call.desc.dropout);  ///< 1 / (1 - dropout); 0: no dropout
  uint32_t threshold = drop_threshold(call.desc.dropout);

  MP_DEVICE int columns() const { return static_cast<int>(call.desc.columns); }
  MP_DEVICE bool has_mean() const { return call.desc.kind == MP_NORM_LAYER; }
  MP_DEVICE uint64_t offset() const {
    return keep_factor != 0.0f && call.dropout_offset != nullptr ? *call.dropout_offset : 0;
  }
};

/// Vector of a team: offsets of its first element.
struct NormVector {
  int64_t number;
  int64_t x, y, dense;  ///< in tensors with the layout of x, of y, in dense tensors
  int columns;          ///< 0: the team has no vector, but takes part in collectives

  MP_DEVICE NormVector(const NormKernelArgs &args, int64_t number_, int64_t end)
      : number(number_ < end ? number_ : 0), columns(number_ < end ? args.columns() : 0) {
    const mp_norm_desc_t &desc = args.call.desc;
    const int64_t row = desc.groups == 1 ? number : number / desc.groups;
    const int64_t group = number - row * desc.groups;
    x = row * desc.x_row + group * desc.x_group;
    y = row * desc.y_row + group * desc.y_group;
    dense = number * desc.columns;
  }
};

// ---------------------------------------------------------------------------- dropout

/// Multiplies 8 elements by their mask, that of mp_dropout.
/// @param first  index of the first element, of any alignment
MP_DEVICE void drop_run(float (&x)[kVec], const NormKernelArgs &args, uint64_t offset,
                        int64_t first) {
  constexpr int kWords = kVec + kQuad;
  const auto quad = static_cast<uint64_t>(first) / kQuad;
  const int shift = static_cast<int>(first % kQuad);
  uint32_t words[kWords] = {};
  unroll<kWords / kQuad>([&](int q) {
    if (q * kQuad >= kVec + shift) return;
    const PhiloxWords random =
        draw_quad(args.call.desc.dropout_seed, offset, 0, quad + static_cast<uint64_t>(q));
    unroll<kQuad>([&](int i) { words[q * kQuad + i] = random.x[i]; });
  });
  unroll<kVec>([&](int i) {
    const uint32_t even = shift >= 2 ? words[i + 2] : words[i];
    const uint32_t odd = shift >= 2 ? words[i + 3] : words[i + 1];
    const uint32_t word = shift % 2 != 0 ? odd : even;
    x[i] = word < args.threshold ? 0.0f : reproducible::product(x[i], args.keep_factor);
  });
}

/// Loads a tile of dropout(x).
template <class Team>
MP_DEVICE void load_dropped(TileElements<Team> &x, const NormKernelArgs &args, uint64_t offset,
                            const NormVector &v, int tile) {
  load_tile<Team>(x, args.call.desc.dtype, args.call.x, v.x + tile, v.columns - tile);
  if (args.keep_factor == 0.0f) return;
  for_each_run<Team>(v.columns - tile, [&](int run, int) {
    drop_run(x[run], args, offset, v.dense + tile + Team::column(run));
  });
}

// ---------------------------------------------------------------------------- gamma

/// Loads the factors of a run: gamma, 1 + gamma, or 1 without gamma.
MP_DEVICE void load_factors(float (&factor)[kVec], const NormKernelArgs &args, int column,
                            int valid) {
  MP_UNROLL
  for (float &value : factor) value = 1.0f;
  if (args.call.gamma == nullptr) return;
  load_vector(factor, args.call.gamma + column, valid);
  if ((args.call.desc.flags & MP_NORM_FLAG_ZERO_CENTERED) == 0) return;
  MP_UNROLL
  for (float &value : factor) value += 1.0f;
}

}  // namespace mp::MP_TARGET
