// Launch arguments of the wgmma kernels.
#pragma once

#include "kernels/gemm/operand.h"
#include "kernels/gemm/tile_scheduler.h"
#include "kernels/gemm/wgmma_store.h"
#include "kernels/gemm/workspace.h"
#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

/// Shape and data of one GEMM of a group.
struct GroupEntryShape {
  const void *a_data, *b_data, *c_data;
  void *d_data;
  int64_t ld_a, ld_b, ld_c, ld_d;
  int32_t m0, k0;       ///< first row and first k; nonzero only in mp_gemm_ragged
  int32_t m, n, k;      ///< end of the rows, columns and k
  uint32_t first_tile;  ///< tiles of the entries before this one
};

/// Table entry in the workspace, for GEMMs without common strides: a GEMM of a group, or a batch
/// item behind pointers.  Only the tensor maps of a batch item are set.
struct GroupEntry : GroupEntryShape {
  TensorMap a, b, d;
};
static_assert(sizeof(GroupEntry) <= kWgmmaItemBytes);

/// Header of the table.
struct WgmmaTableHeader {
  uint32_t misaligned;  ///< nonzero if TMA cannot load an item: another kernel computes the batch
  uint32_t num_tiles;   ///< tiles of all entries, if only the device can count them
};

struct WgmmaArgs {
  GemmProblem problem;
  TileScheduler scheduler;  ///< counts tiles; with clusters, pairs of tiles
  TileDivisors divisors;    ///< divisors of `scheduler`
  uint32_t num_work_tiles;  ///< tiles or pairs of tiles, times slices of k
  int32_t slice_k;
  int32_t common_k_tiles;  ///< k-tiles of every work tile; 0 if they differ
  StorePath store;
  EpilogueSource source;  ///< used with StorePath::tma
  bool source_is_shared;  ///< all batch items have the same source
  TensorMap a, b, d;      ///< maps of the full batch, or templates for the table; d: StorePath::tma
  TensorMap source_map;   ///< map of the epilogue source
  std::byte *table;       ///< header, then one GroupEntry per kWgmmaItemBytes; or NULL
  int32_t group_count;    ///< GEMMs of a group; 0 = not a group
  bool tiles_in_table;    ///< num_work_tiles is an upper bound; the table header has the number
  int64_t slice_bytes;    ///< split-k: stride of the partial sums, which replace D
  ColumnPartials column_partials;  ///< partial sums of D if base is not NULL; StorePath::tma

  /// Returns the length of the sums of a batch item.
  MP_HD int32_t k_of(int32_t) const { return static_cast<int32_t>(problem.k); }
  MP_DEVICE GroupEntry &item(int64_t index) const {
    return *in_gmem(reinterpret_cast<GroupEntry *>(table + kWgmmaTableHeaderBytes +
                                                   static_cast<size_t>(index) * kWgmmaItemBytes));
  }
  MP_HD WgmmaTableHeader &header() const { return *reinterpret_cast<WgmmaTableHeader *>(table); }
};

}  // namespace mp::MP_TARGET
