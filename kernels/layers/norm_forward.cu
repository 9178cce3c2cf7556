// Layer and RMS normalization, forward: see mp_norm_forward.
//
// The mean is computed relative to the first element, because a sum of equal numbers could round or
// overflow.  Squared deviations from the mean are summed in a second sweep over the registers.
//
// Source: Ba, Kiros & Hinton, Layer Normalization, 2016; Zhang & Sennrich, Root Mean Square Layer
// Normalization, 2019.
#include "kernels/layers/batch_norm.h"
#include "kernels/layers/norm_vector.h"

namespace mp::MP_TARGET {

namespace {

/// Loads r, rounded to dtype_residual if there is a residual.
template <class Team>
MP_DEVICE void load_r(TileElements<Team> &r, const NormKernelArgs &args, uint64_t offset,
                      const NormVector &v, int tile) {
  load_dropped<Team>(r, args, offset, v, tile);
  if (args.call.residual == nullptr) return;
  const mp_dtype_t dtype_residual = args.call.desc.dtype_residual;
  TileElements<Team> residual;
  load_tile<Team>(residual, dtype_residual, args.call.residual, v.dense + tile, v.columns - tile);
  with_type(dtype_residual, [&]<class T>(std::type_identity<T>) {
    unroll<Team::kRuns, kVec>(
        [&](int run, int i) { r[run][i] = to_float(round_to<T>(residual[run][i] + r[run][i])); });
  });
}

/// Stores r and y of a tile.
template <class Team>
MP_DEVICE void store_tile(const NormKernelArgs &args, const NormVector &v, int tile,
                          const TileElements<Team> &r, float mean, float rstd) {
  for_each_run<Team>(v.columns - tile, [&](int run, int valid) {
    const int column = tile + Team::column(run);
    if (args.call.sum != nullptr)
      store_vector(args.call.desc.dtype_residual, args.call.sum, v.dense + column, r[run], valid);
    float factor[kVec], shift[kVec] = {}, y[kVec];
    load_factors(factor, args, column, valid);
    if (args.call.beta != nullptr) load_vector(shift, args.call.beta + column, valid);
    unroll<kVec>([&](int i) { y[i] = fmaf((r[run][i] - mean) * rstd, factor[i], shift[i]); });
    store_vector(args.call.desc.dtype, args.call.y, v.y + column, y, valid);
  });
}

/// Sweeps over the tiles of a vector.  The first is omitted without a mean.
enum Sweep { kSumMean, kSumSquares, kStore };

/// Normalizes the vector of a team.
template <class Team, bool kIsTiled>
MP_DEVICE void normalize_vector(const NormKernelArgs &args, uint64_t offset, const NormVector &v) {
  TileElements<Team> r;
  float origin = 0.0f, mean = 0.0f, rstd = 0.0f, sums[kVec] = {};
  const auto sum_up = [&](int tile, float center, const auto &add) {
    for_each_run<Team>(v.columns - tile, [&](int run, int valid) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) sums[i] = add(sums[i], i < valid ? r[run][i] - center : 0.0f);
    });
  };
  const auto visit = [&](int sweep, int tile) {
    if (sweep == kStore) return store_tile<Team>(args, v, tile, r, mean, rstd);
    if (sweep == kSumSquares)
      return sum_up(tile, mean, [](float sum, float x) { return fmaf(x, x, sum); });
    if (tile == 0) origin = Team::first(r[0][0]);
    sum_up(tile, origin, [](float sum, float x) { return sum + x; });
  };
  const auto finish = [&](int sweep) {
    if (sweep == kStore) return;
    const float average = Team::sum(sum_of(sums)) / static_cast<float>(args.columns());
    if (sweep == kSumMean)
      mean = origin + average;
    else
      rstd = inverse_std(average, args.call.desc.epsilon);
    unroll<kVec>([&](int i) { sums[i] = 0.0f; });
  };

  const int first_sweep = args.has_mean() ? kSumMean : kSumSquares;
  if constexpr (kIsTiled) {
    MP_NO_UNROLL
    for (int sweep = first_sweep; sweep <= kStore; sweep++) {
      for (int tile = 0; tile < v.columns; tile += Team::kTile) {
        load_r<Team>(r, args, offset, v, tile);
        visit(sweep, tile);
      }
      finish(sweep);
    }
  } else {
    load_r<Team>(r, args, offset, v, 0);
    MP_UNROLL
    for (int sweep = kSumMean; sweep <= kStore; sweep++) {
      if (sweep < first_sweep) continue;
      visit(sweep, 0);
      finish(sweep);
    }
  }
  if (Team::rank() != 0 || v.columns == 0) return;
  if (args.has_mean() && args.call.mean != nullptr) args.call.mean[v.number] = mean;
  if (args.call.rstd != nullptr) args.call.rstd[v.number] = rstd;
}

template <class Team, bool kIsTiled>
MP_KERNEL(Team::kThreads, 640 / Team::kThreads)
norm_vectors(MP_PARAM(NormKernelArgs) args) {
  wait_for_previous_kernel();
  const uint64_t offset = args.offset();
  for (int64_t first = block_index() * Team::kTeams; first < args.vectors;
       first += grid_size() * Team::kTeams)
    normalize_vector<Team, kIsTiled>(args, offset,
                                     NormVector(args, first + Team::index(), args.vectors));
}

template <class Team, bool kIsTiled = false>
void launch_vectors(const Device &device, const NormArgs &args, mp_stream_t stream) {
  const int64_t blocks = ceil_div<int64_t>(args.num_vectors(), Team::kTeams);
  launch(
      "norm_forward", norm_vectors<Team, kIsTiled>, device,
      {.num_blocks = min_of(blocks, kMaxBlocks), .num_threads = Team::kThreads, .uses_pdl = true},
      stream, NormKernelArgs{args});
}

}  // namespace

/// Selects the team by the number of columns only, because it determines the order of the sums.
void norm_forward(const Device &device, const NormArgs &args, mp_stream_t stream) {
  using HalfWarp = Team<kWarpSize / 2, 2>;
  using Warp = Team<kWarpSize, 4>;
  using SmallBlock = Team<256, 2>;
  using LargeBlock = Team<512, 4>;
  const int64_t columns = args.desc.columns;
  if (columns <= HalfWarp::kTile)
    launch_vectors<HalfWarp>(device, args, stream);
  else if (columns <= Warp::kTile)
    launch_vectors<Warp>(device, args, stream);
  else if (columns <= SmallBlock::kTile)
    launch_vectors<SmallBlock>(device, args, stream);
  else if (columns <= LargeBlock::kTile)
    launch_vectors<LargeBlock>(device, args, stream);
  else
    launch_vectors<LargeBlock, true>(device, args, stream);
}

}  // namespace mp::MP_TARGET
