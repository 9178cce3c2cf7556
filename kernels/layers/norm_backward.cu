// Layer and RMS normalization, backward: see mp_norm_backward.
//
//      xhat = (r - mean) rstd,  g = dy gamma
//      dr = rstd (g - mean of g - xhat mean of (g xhat))
//      dgamma = sum dy xhat,  dbeta = sum dy
//
// A block processes a range of vectors and sums dy xhat and dy of its columns.  A second kernel
// adds the ranges.  By length of the vectors, registers contain
//
//      one tile                  xhat, g and the column sums
//      two to three tiles        the column sums; the second sweep reads the vector again, from L1
//      more, 12289 columns on    one tile; the column sums are in the workspace
//
// Source: Ba, Kiros & Hinton, Layer Normalization, 2016; Zhang & Sennrich, Root Mean Square Layer
// Normalization, 2019.
#include "kernels/layers/batch_norm.h"
#include "kernels/layers/norm_vector.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

namespace {

struct GradientArgs : NormKernelArgs {
  NormPartition partition{vectors, call.desc.columns};

  /// Returns the sums of dy xhat and of dy of a range, one per column.
  MP_DEVICE float *gamma_sums(int64_t range) const {
    return call.workspace + range * call.desc.columns;
  }
  MP_DEVICE float *beta_sums(int64_t range) const { return gamma_sums(partition.ranges + range); }
  MP_DEVICE bool has_sums() const { return call.dgamma != nullptr || call.dbeta != nullptr; }
};

/// Column sums of a thread in one tile.
template <class Team>
struct ColumnSums {
  TileElements<Team> gamma = {}, beta = {};
};

/// Number of tiles of a vector if their column sums are in the workspace.
constexpr int kAnyTiles = 0;

/// Adds the sums of the teams of a block in ascending order and stores them.
template <class Team>
MP_DEVICE void store_sums(float *sums, int columns, const TileElements<Team> &own) {
  if constexpr (Team::kTeams == 1) {
    for_each_run<Team>(columns, [&](int run, int valid) {
      store_vector(sums + Team::column(run), own[run], valid);
    });
  } else {
    MP_SHARED(Quad, by_team, [Team::kTeams][Team::kTile / kQuad]);
    block_sync();  // a previous call may still read by_team
    unroll<Team::kRuns>([&](int run) {
      store_smem_run(by_team[Team::index()][Team::column(run) / kQuad].x, own[run]);
    });
    block_sync();
    for (int column = thread_index(); column < columns; column += Team::kThreads) {
      float sum = by_team[0][column / kQuad].x[column % kQuad];
      MP_UNROLL
      for (int team = 1; team < Team::kTeams; team++)
        sum += by_team[team][column / kQuad].x[column % kQuad];
      sums[column] = sum;
    }
  }
}

/// Gradients of the vector of a team.
/// @tparam kTiles  maximum number of tiles, or kAnyTiles
template <class Team, int kTiles>
class VectorGradient {
 public:
  MP_DEVICE VectorGradient(const GradientArgs &args, uint64_t offset, const NormVector &v)
      : args_(args), offset_(offset), v_(v) {}

  /// Computes dr and stores dresidual and dx.
  /// @param accumulate  (number of a tile, xhat, dy): adds to the column sums
  template <class Accumulate>
  MP_DEVICE void compute(const Accumulate &accumulate, AmaxTracker &tracker) {
    float sum[kVec] = {}, sum_xhat[kVec] = {};  // sums of g and of g xhat
    for_each_tile([&](int number) {
      load(number * Team::kTile);
      accumulate(number, xhat_, g_);
      multiply_by_factors(number * Team::kTile);
      unroll<Team::kRuns, kVec>([&](int run, int i) {
        sum[i] += g_[run][i];
        sum_xhat[i] = fmaf(g_[run][i], xhat_[run][i], sum_xhat[i]);
      });
    });
    const auto count = static_cast<float>(args_.columns());
    const float mean_g = args_.has_mean() ? Team::sum(sum_of(sum)) / count : 0.0f;
    const float mean_g_xhat = Team::sum(sum_of(sum_xhat)) / count;
    for_each_tile([&](int number) {
      if constexpr (kTiles != 1) {
        load(number * Team::kTile);
        multiply_by_factors(number * Team::kTile);
      }
      store(number * Team::kTile, mean_g, mean_g_xhat, tracker);
    });
  }

 private:
  template <class Visit>
  MP_DEVICE void for_each_tile(const Visit &visit) const {
    if constexpr (kTiles == kAnyTiles) {
      for (int number = 0; number * Team::kTile < v_.columns; number++) visit(number);
    } else {
      unroll<kTiles>([&](int number) {
        if (number * Team::kTile < v_.columns) visit(number);
      });
    }
  }

  /// Loads xhat, and dy into g.  Elements past the last column become 0.
  MP_DEVICE void load(int tile) {
    const NormArgs &t = args_.call;
    if (t.sum != nullptr)
      load_tile<Team>(xhat_, t.desc.dtype_residual, t.sum, v_.dense + tile, v_.columns - tile);
    else
      load_dropped<Team>(xhat_, args_, offset_, v_, tile);
    load_tile<Team>(g_, t.desc.dtype, t.dy, v_.y + tile, v_.columns - tile);
    for_each_run<Team>(v_.columns - tile, [&](int run, int valid) {
      unroll<kVec>(
          [&](int i) { xhat_[run][i] = i < valid ? (xhat_[run][i] - mean_) * rstd_ : 0.0f; });
    });
  }

  /// g = dy gamma.
  MP_DEVICE void multiply_by_factors(int tile) {
    for_each_run<Team>(v_.columns - tile, [&](int run, int valid) {
      float factor[kVec];
      load_factors(factor, args_, tile + Team::column(run), valid);
      unroll<kVec>([&](int i) { g_[run][i] = i < valid ? g_[run][i] * factor[i] : 0.0f; });
    });
  }

  MP_DEVICE void store(int tile, float mean_g, float mean_g_xhat, AmaxTracker &tracker) {
    const NormArgs &t = args_.call;
    const mp_dtype_t dtype = t.desc.dtype, dtype_residual = t.desc.dtype_residual;
    TileElements<Team> dsum;
    if (t.dsum != nullptr)
      load_tile<Team>(dsum, dtype_residual, t.dsum, v_.dense + tile, v_.columns - tile);
    for_each_run<Team>(v_.columns - tile, [&](int run, int valid) {
      const int column = tile + Team::column(run);
      float dr[kVec];
      unroll<kVec>([&](int i) {
        dr[i] = rstd_ * fmaf(-xhat_[run][i], mean_g_xhat, g_[run][i] - mean_g);
        if (t.dsum != nullptr) dr[i] += dsum[run][i];
      });
      if (t.dresidual != nullptr) {
        store_vector(dtype_residual, t.dresidual, v_.dense + column, dr, valid);
        tracker.see_largest(dtype_residual, dr, valid);
      }
      if (t.dx == nullptr) return;
      if (args_.keep_factor != 0.0f) drop_run(dr, args_, offset_, v_.dense + column);
      store_vector(dtype, t.dx, v_.x + column, dr, valid);
      tracker.see_largest(dtype, dr, valid);
    });
  }

  const GradientArgs &args_;
  const uint64_t offset_;
  const NormVector &v_;
  const float mean_ = args_.has_mean() ? args_.call.mean[v_.number] : 0.0f;
  const float rstd_ = args_.call.rstd[v_.number];
  TileElements<Team> xhat_, g_;
};

/// Adds a tile to column sums in registers.
template <class Team>
MP_DEVICE void add_to(ColumnSums<Team> &sums, const TileElements<Team> &xhat,
                      const TileElements<Team> &dy) {
  unroll<Team::kRuns, kVec>([&](int run, int i) {
    sums.gamma[run][i] = fmaf(dy[run][i], xhat[run][i], sums.gamma[run][i]);
    sums.beta[run][i] += dy[run][i];
  });
}

/// Adds a tile of `columns` columns to column sums in the workspace.
/// @param is_first  true if they have no value yet
template <class Team>
MP_DEVICE void add_to(float *gamma, float *beta, int columns, bool is_first,
                      const TileElements<Team> &xhat, const TileElements<Team> &dy) {
  ColumnSums<Team> sums;
  if (!is_first) {
    load_tile<Team>(sums.gamma, gamma, columns);
    load_tile<Team>(sums.beta, beta, columns);
  }
  add_to<Team>(sums, xhat, dy);
  for_each_run<Team>(columns, [&](int run, int valid) {
    store_vector(gamma + Team::column(run), sums.gamma[run], valid);
    store_vector(beta + Team::column(run), sums.beta[run], valid);
  });
}

template <class Team, int kTiles>
MP_KERNEL(Team::kThreads, 1)
norm_gradients(MP_PARAM(GradientArgs) args) {
  constexpr int kTilesInRegisters = max_of(kTiles, 1);
  wait_for_previous_kernel();
  const uint64_t offset = args.offset();
  const int columns = args.columns();
  const int64_t range = block_index(), begin = range * args.partition.vectors_per_range;
  const int64_t end = min_of(begin + args.partition.vectors_per_range, args.vectors);
  float *const gamma_sums = args.gamma_sums(range), *const beta_sums = args.beta_sums(range);
  AmaxTracker tracker(args.call.stats);
  [[maybe_unused]] ColumnSums<Team> sums[kTilesInRegisters];
  for (int64_t first = begin; first < end; first += Team::kTeams) {
    const NormVector v(args, first + Team::index(), end);
    VectorGradient<Team, kTiles> gradient(args, offset, v);
    gradient.compute(
        [&](int number, const TileElements<Team> &xhat, const TileElements<Team> &dy) {
          const int tile = number * Team::kTile;
          if constexpr (kTiles != kAnyTiles)
            add_to<Team>(sums[number], xhat, dy);
          else if (args.has_sums())
            add_to<Team>(gamma_sums + tile, beta_sums + tile, columns - tile, first == begin, xhat,
                         dy);
        },
        tracker);
  }
  if (kTiles != kAnyTiles && args.has_sums()) {
    unroll<kTilesInRegisters>([&](int number) {
      const int tile = number * Team::kTile;
      store_sums<Team>(gamma_sums + tile, columns - tile, sums[number].gamma);
      store_sums<Team>(beta_sums + tile, columns - tile, sums[number].beta);
    });
  }
  tracker.finish();
}

// ---------------------------------------------------------------------------- dgamma, dbeta

MP_KERNEL(ColumnPartition::kThreads, 1)
combine_ranges(MP_PARAM(GradientArgs) args) {
  const NormArgs &call = args.call;
  AmaxTracker tracker(call.stats);
  const auto store = [&](float *gradient, int64_t column, double sum) {
    if (gradient == nullptr) return;
    const bool adds = (call.desc.flags & MP_NORM_FLAG_ACCUMULATE) != 0;
    const auto value = static_cast<float>(adds ? sum + static_cast<double>(gradient[column]) : sum);
    gradient[column] = value;
    tracker.see<float>(value);
  };
  combine_chunks<GradientSums<double>>(
      args.partition.ranges, call.desc.columns,
      [&](int64_t range, int64_t column) {
        return GradientSums<double>{args.beta_sums(range)[column], args.gamma_sums(range)[column]};
      },
      [&](int64_t column, const GradientSums<double> &all) {
        store(call.dgamma, column, all.gamma);
        store(call.dbeta, column, all.beta);
      });
  if (warp_index() == 0) tracker.finish();
}

template <class Team, int kTiles = 1>
void launch_ranges(const Device &device, const GradientArgs &args, mp_stream_t stream) {
  launch("norm_backward", norm_gradients<Team, kTiles>, device,
         {.num_blocks = args.partition.ranges, .num_threads = Team::kThreads, .uses_pdl = true},
         stream, args);
}

}  // namespace

/// Selects the team by the number of columns only, because it determines the order of the sums.
void norm_backward(const Device &device, const NormArgs &call, mp_stream_t stream) {
  const GradientArgs args{{call}};
  using HalfWarp = Team<kWarpSize / 2, 2>;
  using Warp = Team<kWarpSize, 4>;
  using SmallBlock = Team<256, 2>;
  using LargeBlock = Team<512, 2>;
  using TiledBlock = Team<512, 1>;  // small tiles leave registers for the column sums
  const int64_t columns = call.desc.columns;
  if (columns <= HalfWarp::kTile)
    launch_ranges<HalfWarp>(device, args, stream);
  else if (columns <= Warp::kTile)
    launch_ranges<Warp>(device, args, stream);
  else if (columns <= SmallBlock::kTile)
    launch_ranges<SmallBlock>(device, args, stream);
  else if (columns <= LargeBlock::kTile)
    launch_ranges<LargeBlock>(device, args, stream);
  else if (columns <= 3 * TiledBlock::kTile)
    launch_ranges<TiledBlock, 3>(device, args, stream);
  else
    launch_ranges<TiledBlock, kAnyTiles>(device, args, stream);
  if (call.dgamma == nullptr && call.dbeta == nullptr) return;
  launch_combine("norm_combine", combine_ranges, device, call.desc.columns, args, stream);
}

}  // namespace mp::MP_TARGET
