// What the wgmma kernels are launched with.
#pragma once

#include "kernels/gemm/dbias.h"
#include "kernels/gemm/operand.h"
#include "kernels/gemm/tile_scheduler.h"
#include "kernels/gemm/wgmma_store.h"
#include "kernels/gemm/workspace.h"
#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

/// One product of a group.
struct GroupEntryShape {
  const void *a_data, *b_data, *c_data;
  void *d_data;
  int64_t lda, ldb, ldc, ldd;
  int32_t m0, k0;       ///< where its rows and its k begin: not at 0 in mp_gemm_ragged alone
  int32_t m, n, k;      ///< where its rows, columns and k end
  uint32_t first_tile;  ///< number of tiles of the products before this one
};

/// One product of several that have no common stride: a batch item behind pointers, or a product
/// of a group.  In workspace; of a batch item there are the maps alone.
struct GroupEntry : GroupEntryShape {
  TensorMap a, b, d;
};
static_assert(sizeof(GroupEntry) <= kWgmmaItemBytes);

/// The header of the table.
struct WgmmaTableHeader {
  uint32_t misaligned;  ///< an item cannot be loaded by TMA: another kernel does it all
  uint32_t num_tiles;   ///< of all products, where the device alone knows
};

struct WgmmaArgs {
  GemmProblem problem;
  TileScheduler scheduler;  ///< of tiles, or of pairs of tiles where blocks work in clusters
  TileDivisors divisors;    ///< of the scheduler
  uint32_t num_work_tiles;  ///< of all blocks: one tile or pair of tiles, over one slice of k
  int32_t slice_k;
  int32_t common_k_tiles;  ///< of every work tile; 0 where they differ
  StorePath store;
  EpilogueSource source;  ///< with StorePath::tma
  bool source_is_shared;  ///< by all batch items
  TensorMap a, b, d;      ///< of the whole batch, or patterns of a table's; d with StorePath::tma
  TensorMap source_map;   ///< of the epilogue source
  std::byte *table;  ///< header, then GroupEntry of every product, kWgmmaItemBytes apart; or NULL
  int32_t group_count;  ///< products of a group; 0 = not a group
  bool tiles_in_table;  ///< num_work_tiles is no more than a bound: the header has the number
  int64_t
      slice_bytes;  ///< with split k, from the sums of a slice, which take the place of D, to those of the next
  ColumnPartials column_partials;  ///< of D, stored with StorePath::tma unless base is NULL

  /// The length of the sum of a batch item.
  MP_HD int32_t k_of(int32_t) const { return static_cast<int32_t>(problem.k); }
  MP_DEVICE GroupEntry &item(int64_t index) const {
    return *in_gmem(reinterpret_cast<GroupEntry *>(table + kWgmmaTableHeaderBytes +
                                                   static_cast<size_t>(index) * kWgmmaItemBytes));
  }
  MP_HD WgmmaTableHeader &header() const { return *reinterpret_cast<WgmmaTableHeader *>(table); }
};

}  // namespace mp::MP_TARGET
