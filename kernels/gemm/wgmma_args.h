// Arguments of the wgmma kernels, their table of group entries, and the functions that make and
// launch them.
#pragma once

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tile_scheduler.h"
#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/tensor_map.h"

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
  TileScheduler scheduler;        ///< counts tiles; with clusters, pairs of tiles
  TileDivisors divisors;          ///< divisors of `scheduler`
  uint32_t num_work_tiles;        ///< tiles or pairs of tiles, times slices of k
  uint32_t tiles_per_series = 1;  ///< see WgmmaTileScheduler; a power of two
  int32_t multicast_blocks = 1;   ///< blocks of a cluster that share an operand
  int32_t parts = 1;              ///< blocks of a cluster that split k and add their sums
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
  int64_t slice_bytes;    ///< stride of the partial sums in workspace, which replace D
  ColumnPartials column_partials;  ///< partial sums of D if base is not NULL; StorePath::tma

  /// Returns the length of the sums of a batch item.
  MP_HD int32_t k_of(int32_t) const { return static_cast<int32_t>(problem.k); }
  MP_DEVICE GroupEntry &item(int64_t index) const {
    return *in_gmem(reinterpret_cast<GroupEntry *>(table + kWgmmaTableHeaderBytes +
                                                   static_cast<size_t>(index) * kWgmmaItemBytes));
  }
  MP_HD WgmmaTableHeader &header() const { return *reinterpret_cast<WgmmaTableHeader *>(table); }
};

/// Tile of D over one slice of k.
struct WgmmaWorkTile {
  int32_t m0, n0;       ///< first row and column in D
  int32_t k0, k_tiles;  ///< first k, and number of k-tiles; none if the sum is empty
  int32_t batch_item;
  int32_t slice;             ///< index of the partial sums in workspace
  const GroupEntry *item;    ///< NULL if the batch items have common strides
  uint32_t index_in_series;  ///< see WgmmaTileScheduler
  bool in_bounds;            ///< the tile overlaps D
};

// ---------------------------------------------------------------------------- table of a group

// Filled on the device: each entry has separate tensor maps, made from the templates of
// make_wgmma_group_args.

/// Describes a matrix.  `ld` is ignored if there is only one row.
MP_DEVICE TensorMapMatrix map_matrix(const void *base, int32_t rows, int32_t cols, int64_t ld) {
  constexpr int64_t kElemBytes = 2, kRowUnit = 8;  // elements: 16 bytes
  const int64_t step = rows > 1 ? ld : ceil_div<int64_t>(cols, kRowUnit) * kRowUnit;
  return {base, cols, rows, step * kElemBytes};
}

/// Fills one entry, in one thread.  Even if m0 or k0 is nonzero, the maps begin at row and k 0;
/// they stop at the end of the entry.
MP_DEVICE void store_group_entry(const WgmmaArgs &args, int64_t index,
                                 const GroupEntryShape &product) {
  GroupEntry &item = args.item(index);
  static_cast<GroupEntryShape &>(item) = product;
  const auto operand = [&](const void *base, int32_t mn, int64_t ld, bool by_k) {
    return map_matrix(base, by_k ? mn : product.k, by_k ? product.k : mn, ld);
  };
  const GemmProblem &p = args.problem;
  tensor_map_copy_with_matrix(&item.a, args.a,
                              operand(product.a_data, product.m, product.ld_a, p.op_a == MP_OP_N));
  tensor_map_copy_with_matrix(&item.b, args.b,
                              operand(product.b_data, product.n, product.ld_b, p.op_b == MP_OP_T));
  if (args.store == StorePath::tma)
    tensor_map_copy_with_matrix(&item.d, args.d,
                                map_matrix(product.d_data, product.m, product.n, product.ld_d));
  tensor_map_release();
}

// ---------------------------------------------------------------------------- launch, on the host

/// Problem, scheduler and slices of k, without maps and workspace.
WgmmaArgs make_wgmma_args(const GemmPlan &, const GemmArgs &);

/// Maps of the whole batch, in boxes of the kernel's tile.  k > 0.
TensorMap wgmma_map_a(const GemmProblem &, const GemmPlan &);
TensorMap wgmma_map_b(const GemmProblem &, const GemmPlan &);

/// Sets the store path of the plan, and its maps if that is TMA.
void set_wgmma_store(const GemmPlan &, const TensorMapSpec &d, const TensorMapSpec &source,
                     WgmmaArgs *);
/// Sets the destination of split-k: partial sums of each slice in place of `d`, for
/// launch_split_k_sum.
void set_wgmma_slices(const Output &d, float *partial_sums, WgmmaArgs *);

/// Arguments of one launch for the products of a group: store path, patterns of the maps of a
/// product, and the address of the table, which is not yet filled.
WgmmaArgs make_wgmma_group_args(const Device &, const GemmProblem &common, int64_t count,
                                const GemmPlan &, std::byte *workspace);

/// The kernel alone, as launch_wmma.
void launch_wgmma_kernel(const GemmPlan &, const Device &, const WgmmaArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
