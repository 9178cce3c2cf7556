// Work tiles of the WMMA and CUDA-core kernels.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/ragged.h"

namespace mp::MP_TARGET {

/// Tile of D over one slice of k.  Rows end with the group of mp_gemm_ragged, or with D.
struct GemmWork {
  int64_t m0, m_end;
  int64_t n0;
  int64_t k0, k_end;
  int64_t batch_item;
  int slice;

  /// Returns whether the number is beyond the last tile.
  MP_DEVICE bool is_none() const { return m0 >= m_end; }
};

template <class Tile>
MP_DEVICE GemmWork work_of_batch(const GemmArgs &args, int64_t number) {
  const GemmProblem &p = args.problem;
  const WorkTile tile = args.scheduler(number);
  const int64_t k0 = tile.slice * args.slice_k;
  return {
      tile.tile_m * Tile::kM, p.out.m,   tile.tile_n * Tile::kN, k0, min_of(k0 + args.slice_k, p.k),
      tile.batch_item,        tile.slice};
}

/// Returns the work tile of a ragged GEMM.  The scheduler has enough tiles for any group sizes, so
/// the last ones may not exist.
template <class Tile>
MP_DEVICE GemmWork work_of_ragged(const GemmArgs &args, int64_t number) {
  const GemmProblem &p = args.problem;
  const uint32_t tiles_n = args.scheduler.tiles_n;
  if (args.ragged == MP_RAGGED_K) {
    GemmWork work = work_of_batch<Tile>(args, number);
    RaggedWarp warp(args.ends, p.out.batch_count, p.k, Tile::kK);
    const RaggedGroup group = warp.find_group(work.batch_item);
    work.k0 = group.begin;
    work.k_end = group.end;
    return work;
  }
  RaggedWarp warp(args.ends, p.out.batch_count, p.out.m, Tile::kM);
  RaggedGroup group;
  if (!warp.find_tile(static_cast<uint32_t>(number) / tiles_n, &group)) return {};
  const TileScheduler in_group{static_cast<uint32_t>(ceil_div(group.end - group.begin, Tile::kM)),
                               tiles_n, 1, 1, args.scheduler.group};
  const WorkTile tile = in_group(number - int64_t{group.first_tile} * tiles_n);
  return {group.begin + tile.tile_m * Tile::kM,
          group.end,
          tile.tile_n * Tile::kN,
          0,
          p.k,
          group.index,
          0};
}

/// Returns the work tile of that number; called by all threads of the block.
template <class Tile>
MP_DEVICE GemmWork gemm_work(const GemmArgs &args, int64_t number, bool is_ragged) {
  return is_ragged ? work_of_ragged<Tile>(args, number) : work_of_batch<Tile>(args, number);
}

}  // namespace mp::MP_TARGET
