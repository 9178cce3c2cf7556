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
template <class Team, class T>
MP_DEVICE void load_r(TileElements<Team> &r, const NormKernelArgs &args, uint64_t offset,
                      const NormVector &v, int tile) {
  load_dropped<Team, T>(r, args, offset, v, tile);
  if (args.call.residual == nullptr) return;
  const bool is_wide = args.call.desc.dtype_residual == MP_FP32;
  TileElements<Team> residual;
  load_residual<Team, T>(residual, args, args.call.residual, v.dense + tile, v.columns - tile);
  MP_UNROLL
  for (int run = 0; run < Team::kRuns; run++) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) {
      const float sum = residual[run][i] + r[run][i];
      r[run][i] = is_wide ? sum : to_float(round_to<T>(sum));
    }
  }
}

/// Stores r and y of a tile.
template <class Team, class T>
MP_DEVICE void store_tile(const NormKernelArgs &args, const NormVector &v, int tile,
                          const TileElements<Team> &r, float mean, float rstd) {
  for_each_run<Team>(v.columns - tile, [&](int run, int valid) {
    const int column = tile + Team::column(run);
    if (args.call.sum != nullptr)
      store_residual<T>(args, args.call.sum, v.dense + column, r[run], valid);
    float factor[kVec], shift[kVec] = {}, y[kVec];
    load_factors(factor, args, column, valid);
    if (args.call.beta != nullptr) load_vector(shift, args.call.beta + column, valid);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) y[i] = fmaf((r[run][i] - mean) * rstd, factor[i], shift[i]);
    store_vector(static_cast<T *>(args.call.y) + v.y + column, y, valid);
  });
}

/// Normalizes the vector of a team.
template <class T, class Team, bool kIsTiled>
MP_DEVICE void normalize_vector(const NormKernelArgs &args, uint64_t offset, const NormVector &v) {
  TileElements<Team> r;
  load_r<Team, T>(r, args, offset, v, 0);
  const auto for_each_tile = [&](const auto &visit) {
    if constexpr (kIsTiled) {
      for (int tile = 0; tile < v.columns; tile += Team::kTile) {
        load_r<Team, T>(r, args, offset, v, tile);
        visit(tile);
      }
    } else {
      visit(0);
    }
  };
  const auto count = static_cast<float>(args.columns());

  float mean = 0.0f;
  if (args.has_mean()) {
    const float origin = Team::first(r[0][0]);
    float above[kVec] = {};
    for_each_tile([&](int tile) {
      for_each_run<Team>(v.columns - tile, [&](int run, int valid) {
        MP_UNROLL
        for (int i = 0; i < kVec; i++) above[i] += i < valid ? r[run][i] - origin : 0.0f;
      });
    });
    mean = origin + Team::sum(sum_of(above)) / count;
  }
  float squares[kVec] = {};
  for_each_tile([&](int tile) {
    for_each_run<Team>(v.columns - tile, [&](int run, int valid) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) {
        const float deviation = i < valid ? r[run][i] - mean : 0.0f;
        squares[i] = fmaf(deviation, deviation, squares[i]);
      }
    });
  });
  const float rstd = inverse_std(Team::sum(sum_of(squares)) / count, args.call.desc.epsilon);

  for_each_tile([&](int tile) { store_tile<Team, T>(args, v, tile, r, mean, rstd); });
  if (Team::rank() != 0 || v.columns == 0) return;
  if (args.has_mean() && args.call.mean != nullptr) args.call.mean[v.number] = mean;
  if (args.call.rstd != nullptr) args.call.rstd[v.number] = rstd;
}

template <class T, class Team, bool kIsTiled>
MP_KERNEL(Team::kThreads, 512 / Team::kThreads)
norm_vectors(MP_PARAM(NormKernelArgs) args) {
  wait_for_previous_kernel();
  const uint64_t offset = args.offset();
  for (int64_t first = block_index() * Team::kTeams; first < args.vectors;
       first += grid_size() * Team::kTeams)
    normalize_vector<T, Team, kIsTiled>(args, offset,
                                        NormVector(args, first + Team::index(), args.vectors));
}

template <class T, class Team, bool kIsTiled = false>
void launch_vectors(const Device &device, const NormArgs &args, mp_stream_t stream) {
  const int64_t blocks = ceil_div<int64_t>(args.num_vectors(), Team::kTeams);
  launch(
      "norm_forward", norm_vectors<T, Team, kIsTiled>, device,
      {.num_blocks = min_of(blocks, kMaxBlocks), .num_threads = Team::kThreads, .uses_pdl = true},
      stream, NormKernelArgs(args));
}

/// Selects the team by the number of columns only, because it determines the order of the sums.
template <class T>
void launch_teams(const Device &device, const NormArgs &args, mp_stream_t stream) {
  using HalfWarp = Team<kWarpSize / 2, 2>;
  using Warp = Team<kWarpSize, 4>;
  using SmallBlock = Team<256, 2>;
  using LargeBlock = Team<512, 4>;
  const int64_t columns = args.desc.columns;
  if (columns <= HalfWarp::kTile)
    launch_vectors<T, HalfWarp>(device, args, stream);
  else if (columns <= Warp::kTile)
    launch_vectors<T, Warp>(device, args, stream);
  else if (columns <= SmallBlock::kTile)
    launch_vectors<T, SmallBlock>(device, args, stream);
  else if (columns <= LargeBlock::kTile)
    launch_vectors<T, LargeBlock>(device, args, stream);
  else
    launch_vectors<T, LargeBlock, true>(device, args, stream);
}

}  // namespace

void norm_forward(const Device &device, const NormArgs &args, mp_stream_t stream) {
  with_type(args.desc.dtype,
            [&](auto type) { launch_teams<typename decltype(type)::type>(device, args, stream); });
}

}  // namespace mp::MP_TARGET
