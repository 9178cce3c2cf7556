// What the wgmma kernels are launched with.
#pragma once

#include "kernels/gemm/operand.h"
#include "kernels/gemm/tile_scheduler.h"
#include "kernels/gemm/wgmma_store.h"
#include "kernels/gemm/workspace.h"
#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

/// One product of several that have no common stride: a batch item behind pointers, or a product
/// of a group.  In workspace; `m` to `first_tile` count for groups alone.
struct WgmmaItem {
  TensorMap a, b, d;
  const void *c_data;
  void *d_data;
  int64_t ldc, ldd;
  int32_t m, n, k;
  uint32_t first_tile;  ///< number of tiles of the products before this one
};
static_assert(sizeof(WgmmaItem) <= kWgmmaItemBytes);

/// The table begins with a header of that many bytes: a flag that an item is misaligned.
constexpr size_t kWgmmaTableHeaderBytes = 256;

struct WgmmaArgs {
  GemmProblem problem;
  TileScheduler scheduler;  ///< of tiles, or of pairs of tiles where blocks work in clusters
  uint32_t num_work_tiles;  ///< of all blocks: one tile or pair of tiles, over one slice of k
  int32_t slice_k;
  StorePath store;
  SideMatrix side;      ///< with StorePath::strips
  bool side_is_shared;  ///< by all batch items
  TensorMap a, b, d;  ///< of the whole batch, or of a table's first item; d with StorePath::strips
  TensorMap beside;   ///< of the side matrix
  std::byte *table;   ///< header, then WgmmaItem of every product, kWgmmaItemBytes apart; or NULL
  int32_t group_count;  ///< products of a group; 0 = not a group
  uint32_t *tickets;    ///< with split k, kTicketsPerTile per tile, 0 before and after
  float *partials;      ///< with split k

  MP_HD WgmmaItem &item(int64_t index) const {
    return *reinterpret_cast<WgmmaItem *>(table + kWgmmaTableHeaderBytes +
                                          static_cast<size_t>(index) * kWgmmaItemBytes);
  }
  /// Set where an item of the table cannot be loaded by TMA; then another kernel does it all.
  MP_HD uint32_t *misaligned() const { return reinterpret_cast<uint32_t *>(table); }
};

}  // namespace mp::MP_TARGET
